package edge

import (
	"context"
	"errors"
	"net/netip"
	"strconv"
	"sync"
	"time"

	"modelrelay/providers"
	"modelrelay/storage/fair"
	"modelrelay/storage/tokens"
)

const (
	// CallerCheck is how often requests under way are asked whether their token still may be used. Tokens learns of a
	// revocation within half a second, so that both together make one.
	CallerCheck = 500 * time.Millisecond
	// watchRetry is the Retry-After of a client that has too many streams and waits open. A wait lasts for a minute at
	// most.
	watchRetry = 5 * time.Second
)

// callers knows which tokens have requests under way in this process, and ends those of a token that may no longer be used for them. All
// of them share one timer, which runs while there are any. What it keeps of a token is bounded by the token's requests under way, and
// ends with the first sweep after the last of them.
type callers struct {
	mu     sync.Mutex
	tokens map[string]*callerState // by presence.id
	timed  bool                    // the next sweep is set
	// find returns the token of a key, as Edge.callerOf does.
	find func(ctx context.Context, key string, inside *InternalCaller) (*tokens.Token, error)
}

// callerState is one token.
type callerState struct {
	first *presence // its requests under way
}

// openKind is a kind of what a token may have open at a time, other than calls.
type openKind int

const (
	openWatch    openKind = iota // a stream of events, or a wait
	openDownload                 // a file that is sent
	openKinds    = iota
)

// presence is one request under way, a part of its Request. The fields below next are guarded by callers.mu.
type presence struct {
	state      *callerState
	prev, next *presence

	caller     *tokens.Token
	key        string
	inside     *InternalCaller // nil for a client
	permission string
	source     netip.Addr
	ctx        context.Context //nolint:containedctx // it lives within one request, as http.Request's own does
	// end ends the request's context with a cause. midway: it may be called now.
	end    context.CancelCauseFunc
	midway bool
	// lost is why the request may not go on, nil as long as it may.
	lost *providers.Fault
}

// id is the id of the request's token. Reads of an internal caller in its place are counted apart.
func (p *presence) id() string {
	if p.inside.impersonates() {
		return p.caller.ID + " looks" // is no id
	}
	return p.caller.ID
}

func newCallers(find func(context.Context, string, *InternalCaller) (*tokens.Token, error)) *callers {
	return &callers{tokens: make(map[string]*callerState), find: find}
}

// join notes a request whose caller was found and may do this. leave must follow.
func (c *callers) join(p *presence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := p.id()
	state, ok := c.tokens[id]
	if !ok {
		state = new(callerState)
		c.tokens[id] = state
	}
	p.state, p.next = state, state.first
	if p.next != nil {
		p.next.prev = p
	}
	state.first = p
	c.sweepLater()
}

// setPermission notes which word of a token's operations the request turned out to belong to.
func (c *callers) setPermission(p *presence, permission string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.permission = permission
}

// leave notes that the request has ended. One that never joined may leave.
func (c *callers) leave(p *presence) {
	if p.state == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.prev == nil {
		p.state.first = p.next
	} else {
		p.prev.next = p.next
	}
	if p.next != nil {
		p.next.prev = p.prev
	}
	p.state, p.prev, p.next, p.midway = nil, nil, nil, false
}

// hold lets the request be ended midway from now on: its context then ends with a fault as its cause. The error is that
// fault where the time for it has come already, as it may while a body was read.
func (c *callers) hold(p *presence) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.lost != nil {
		return p.lost
	}
	p.midway = true
	return nil
}

// sweepLater sets the next sweep. The caller holds the lock.
func (c *callers) sweepLater() {
	if !c.timed {
		c.timed = true
		time.AfterFunc(CallerCheck, c.sweep)
	}
}

// inquiry is a key whose holders are looked after.
type inquiry struct {
	state  *callerState
	key    string
	inside *InternalCaller
	ctx    context.Context //nolint:containedctx // it lives within one sweep
}

// sweep looks after all requests under way: those whose token may no longer be used for them are ended.
func (c *callers) sweep() {
	for _, asked := range c.inquiries() {
		caller, err := c.find(asked.ctx, asked.key, asked.inside)
		fault, refused := errors.AsType[*providers.Fault](err)
		refused = refused && fault.Kind == providers.Unauthenticated
		if err != nil && !refused {
			continue // only a clear refusal counts: a store that is unavailable ends nothing
		}
		c.judge(asked, caller)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timed = false
	if len(c.tokens) > 0 {
		c.sweepLater()
	}
}

// inquiries lists the keys that requests under way came with, and forgets the tokens that have none.
func (c *callers) inquiries() []inquiry {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []inquiry
	for id, state := range c.tokens {
		if state.first == nil {
			delete(c.tokens, id)
		}
		from := len(list)
		for p := state.first; p != nil; p = p.next {
			known := false
			for _, asked := range list[from:] { // one, or two after a rotation
				known = known || asked.key == p.key
			}
			if !known {
				list = append(list, inquiry{state, p.key, p.inside, context.WithoutCancel(p.ctx)})
			}
		}
	}
	return list
}

// judge ends the requests of a key that its caller, nil for none, may not go on with.
func (c *callers) judge(asked inquiry, caller *tokens.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := asked.state.first; p != nil; p = p.next {
		switch {
		case p.key != asked.key || p.lost != nil || p.caller == caller:
			continue
		case caller == nil:
			p.lost = providers.Faultf(providers.Unauthenticated, "The API key may no longer be used.")
		case p.background(): // its create was checked
			continue
		case caller.ID != p.caller.ID || caller.Group != p.caller.Group || !p.admits(caller) || p.permission != "" && !caller.Permits(p.permission):
			p.lost = providers.Faultf(providers.Forbidden, "The API key may no longer be used for this.")
		default:
			continue
		}
		if p.midway {
			p.end(p.lost)
		}
	}
}

// WhilePermitted lets the request be ended midway, by its context, when its token may no longer be used for it. The error
// says that this is so already.
func (x *Request) WhilePermitted() error { return x.edge.callers.hold(&x.presence) }

// TakeReads takes n of the caller's reads: of tasks, and of what else costs something and is not a call. A page of a list may take the last
// ones and more: the next reads wait for that.
func (x *Request) TakeReads(n int) error {
	if x.presence.inside.impersonates() {
		return nil
	}
	limit := x.Caller.Reads()
	if limit <= 0 {
		return nil
	}
	wait := x.edge.reads.Take(x.Caller.ID, n, fair.Quota{Units: limit, Per: time.Minute}, time.Now())
	if wait == 0 {
		return nil
	}
	x.Outcome.Refused = LimitReads
	return &providers.Fault{Kind: providers.RateLimited, RetryAfter: wait, Message: "Rate limit reached: " + strconv.Itoa(limit) + " reads per minute."}
}

// Watch counts one more stream of events or wait of the caller's, for a task or an upstream, until done is called.
func (x *Request) Watch() (done func(), err error) {
	return x.open(openWatch, x.Caller.Watchers(), "Rate limit reached: too many open event streams and waits.")
}

// Download counts one more file that the caller is sent, until done is called.
func (x *Request) Download() (done func(), err error) {
	return x.open(openDownload, x.Caller.Downloads(), "Rate limit reached: too many open downloads.")
}

// open counts one more of what the caller has open; refusal is the message beyond most; 0: any number.
func (x *Request) open(kind openKind, most int, refusal string) (done func(), err error) {
	key, all := x.presence.id(), x.edge.open[kind]
	if all.TryShare(key, 1, int64(most)) != nil {
		x.Outcome.Refused = LimitWatchers
		return nil, &providers.Fault{Kind: providers.RateLimited, RetryAfter: watchRetry, Message: refusal}
	}
	return func() { all.Release(key, 1) }, nil
}
