package edge

import (
	"context"
	"net/netip"
	"slices"
	"strconv"
	"sync"
	"time"

	"modelrelay/providers"
	"modelrelay/storage/fair"
	"modelrelay/storage/tokens"
)

const (
	// CallerCheck is the interval of the checks of running requests' tokens. With that of Tokens, a request ends within 1 s of a revocation.
	CallerCheck = 500 * time.Millisecond
	// watchRetry is the Retry-After of a client with too many open streams and waits. A wait takes at most a minute.
	watchRetry = 5 * time.Second
)

// callers holds the running requests of this process by token, and ends those whose token may no longer be used for them. One timer
// serves all; it runs while there are requests. The state of a token is removed at the first sweep after its last request.
type callers struct {
	mu     sync.Mutex
	tokens map[string]*callerState // by presence.id
	timed  bool                    // the next sweep is set
	// find returns the token of a key, as Edge.callerNow does.
	find func(ctx context.Context, key string, internal *InternalCaller) (*tokens.Token, error)
}

// callerState is one token with running requests.
type callerState struct {
	running map[*presence]struct{}
}

// openKind is a kind of long request, other than calls, of which a token may have a bounded number open.
type openKind int

const (
	openWatch    openKind = iota // a stream of events, or a wait
	openDownload                 // a file that is sent
	openKinds    = iota
)

// presence is the part of a running Request that callers use. callers.mu guards state, permission, endable and refusal.
type presence struct {
	state *callerState // nil before join, and after leave

	caller     *tokens.Token
	key        string
	internal   *InternalCaller // nil for a client
	permission string
	source     netip.Addr
	ctx        context.Context //nolint:containedctx // it lives within one request, as http.Request's own does
	// end ends the request's context with a cause. endable: a sweep may call it.
	end     context.CancelCauseFunc
	endable bool
	// refusal is the reason why the request must end; nil: it may continue.
	refusal *providers.Fault
}

// id returns the id of the request's token. Requests of an impersonating operator count separately.
func (p *presence) id() string {
	if p.internal.impersonates() {
		return p.caller.ID + " looks" // no token has this id
	}
	return p.caller.ID
}

// join adds a request whose caller was found and has the permission. leave must follow.
func (c *callers) join(p *presence) {
	c.mu.Lock()
	defer c.mu.Unlock()
	id := p.id()
	state, ok := c.tokens[id]
	if !ok {
		state = &callerState{running: make(map[*presence]struct{})}
		c.tokens[id] = state
	}
	p.state = state
	state.running[p] = struct{}{}
	c.sweepLater()
}

func (c *callers) setPermission(p *presence, permission string) {
	c.mu.Lock()
	defer c.mu.Unlock()
	p.permission = permission
}

// leave removes a request that has ended. It does nothing for a request that never joined.
func (c *callers) leave(p *presence) {
	if p.state == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(p.state.running, p)
	p.state, p.endable = nil, false
}

// hold permits a sweep to end the request from now on: its context then ends with a fault as the cause. The error is that fault if the
// token was refused before, for example while the body was read.
func (c *callers) hold(p *presence) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if p.refusal != nil {
		return p.refusal
	}
	p.endable = true
	return nil
}

// sweepLater schedules the next sweep. The caller holds the lock.
func (c *callers) sweepLater() {
	if !c.timed {
		c.timed = true
		time.AfterFunc(CallerCheck, c.sweep)
	}
}

type keyCheck struct {
	state    *callerState
	key      string
	internal *InternalCaller
	ctx      context.Context //nolint:containedctx // it lives within one sweep
}

// sweep checks the keys of all running requests, and ends the requests whose token may no longer be used for them.
func (c *callers) sweep() {
	for _, check := range c.keyChecks() {
		if caller, err := c.find(check.ctx, check.key, check.internal); err == nil { // an unavailable store ends no request
			c.endRefused(check, caller)
		}
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.timed = false
	if len(c.tokens) > 0 {
		c.sweepLater()
	}
}

// keyChecks returns the keys of the running requests, and removes tokens without requests.
func (c *callers) keyChecks() []keyCheck {
	c.mu.Lock()
	defer c.mu.Unlock()
	var list []keyCheck
	for id, state := range c.tokens {
		if len(state.running) == 0 {
			delete(c.tokens, id)
		}
		from := len(list)
		for p := range state.running {
			// one key, or two after a rotation
			if !slices.ContainsFunc(list[from:], func(check keyCheck) bool { return check.key == p.key }) {
				list = append(list, keyCheck{state, p.key, p.internal, context.WithoutCancel(p.ctx)})
			}
		}
	}
	return list
}

// endRefused ends the requests of a key that its present token does not permit. caller is nil if the key is no longer valid.
func (c *callers) endRefused(check keyCheck, caller *tokens.Token) {
	c.mu.Lock()
	defer c.mu.Unlock()
	for p := range check.state.running {
		switch {
		case p.key != check.key || p.refusal != nil || p.caller == caller:
			continue
		case caller == nil:
			p.refusal = providers.Faultf(providers.Unauthenticated, "The API key may no longer be used.")
		case p.background(): // its create was checked
			continue
		case caller.ID != p.caller.ID || caller.Group != p.caller.Group || !p.admits(caller) || p.permission != "" &&
			!caller.Permits(p.permission):
			p.refusal = providers.Faultf(providers.Forbidden, "The API key may no longer be used for this.")
		default:
			continue
		}
		if p.endable {
			p.end(p.refusal)
		}
	}
}

// WhilePermitted ends the request's context when its token may no longer be used for it. It returns the fault if that is already so.
func (x *Request) WhilePermitted() error { return x.edge.callers.hold(&x.presence) }

// TakeReads counts n reads of the caller: of tasks, and of other requests that cost something and are not calls. A page of a list may
// exceed the limit; the next reads then wait longer.
func (x *Request) TakeReads(n int) error {
	if x.presence.internal.impersonates() {
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
	return &providers.Fault{
		Kind: providers.RateLimited, RetryAfter: wait,
		Message: "Rate limit reached: " + strconv.Itoa(limit) + " reads per minute.",
	}
}

// Watch counts an event stream or wait of the caller, for a task or an upstream, until done is called.
func (x *Request) Watch() (done func(), err error) {
	return x.open(openWatch, x.Caller.Watchers(), "Rate limit reached: too many open event streams and waits.")
}

// Download counts a download of the caller until done is called.
func (x *Request) Download() (done func(), err error) {
	return x.open(openDownload, x.Caller.Downloads(), "Rate limit reached: too many open downloads.")
}

// open counts an open request of the kind until done is called. Above most it returns a fault with the message refusal; 0: no limit.
func (x *Request) open(kind openKind, most int, refusal string) (done func(), err error) {
	key, all := x.presence.id(), x.edge.open[kind]
	if all.TryShare(key, 1, int64(most)) != nil {
		x.Outcome.Refused = LimitWatchers
		return nil, &providers.Fault{Kind: providers.RateLimited, RetryAfter: watchRetry, Message: refusal}
	}
	return func() { all.Release(key, 1) }, nil
}
