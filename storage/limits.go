package storage

import (
	"context"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"
)

const (
	settleAfter = 10 * time.Millisecond // releases wait so long for company, unless a call takes them along sooner
	admitMost   = 256                   // calls in one round trip
	// thisSecond is past any clock: what is counted for a second to come counts for the one that is, whoever's clock says
	// which.
	thisSecond = 1 << 52
)

// LimitsOptions may be nil.
type LimitsOptions struct {
	Lease  time.Duration // a crashed process holds the places of its calls so long; default 1 min
	Log    *slog.Logger  // nil: silent
	Prefix string        // of every key; empty: DefaultPrefix
}

// Limits holds each token to its requests per minute, tokens per minute and calls in flight, over all processes
// that share one Redis. Safe for concurrent use.
//
// The window slides in steps of a second and is never wider open than its limit: in any sixty seconds at most that
// many requests are admitted. While Redis is away each process keeps the same rule for itself.
type Limits struct {
	client *redis.Client
	keys   keys
	log    *slog.Logger
	out    outage
	lease  time.Duration
	script *redis.Script

	admissions batch[*admission]
	pool       sync.Pool // of *admission
	building   building  // scratch of the batch at work

	mu      sync.Mutex
	settles []settlement                     // not yet sent
	running map[bucketed]map[string]struct{} // leases of calls in flight in this process
	refused map[bucketed]refusal             // tokens whose requests are used up
	local   map[string]*window               // by token id, while Redis is away

	process string
	leases  atomic.Uint64

	settle chan struct{}
	stop   chan struct{}
	done   chan struct{}

	stopOnce sync.Once
}

// bucketed is a token with its limits: what shares one window. New limits are not confused with the old ones.
type bucketed struct {
	id               string
	rpm, tpm, atOnce int
}

// Cost is what one call asks for.
type Cost struct {
	Requests int // usually 1
	Tokens   int // estimated model tokens; 0: unknown, counted when the call is released
}

// Window is the state of one limit after a call, as answers show it.
type Window struct {
	Limit     int           // 0: the token has no such limit, and the rest is 0 too
	Remaining int           // never negative
	Reset     time.Duration // until nothing of the window is used, if nothing more comes
}

// Grant is the answer to Admit. It may be copied.
type Grant struct {
	Allowed    bool
	RetryAfter time.Duration // when not allowed: no use in trying sooner; never 0 then
	Requests   Window
	Tokens     Window

	held *held // nil: nothing to release
}

// held is what an admitted call holds until it is released.
type held struct {
	limits   *Limits
	token    bucketed
	lease    string // empty: no limit of calls in flight
	second   int64
	estimate int
	local    bool // counted in this process only
	spent    atomic.Int64
	released atomic.Bool
}

// refusal is an answer that stays true for a while, because used requests come back by time alone.
type refusal struct {
	grant Grant
	at    time.Time
}

// admission is one call that waits to be admitted; with settle it only makes sure that settlements are sent.
type admission struct {
	token  bucketed
	cost   Cost
	lease  string
	settle bool
	wake   chan bool
	grant  Grant
}

// NewLimits starts the upkeep of calls in flight until Close. The client stays the caller's.
func NewLimits(client *redis.Client, opts *LimitsOptions) *Limits {
	if opts == nil {
		opts = &LimitsOptions{}
	}
	l := &Limits{
		client:  client,
		keys:    newKeys(opts.Prefix),
		log:     orDiscard(opts.Log),
		lease:   opts.Lease,
		script:  redis.NewScript(admitScript),
		running: make(map[bucketed]map[string]struct{}),
		refused: make(map[bucketed]refusal),
		local:   make(map[string]*window),
		process: randomLetters(8),
		settle:  make(chan struct{}, 1),
		stop:    make(chan struct{}),
		done:    make(chan struct{}),
	}
	if l.lease <= 0 {
		l.lease = time.Minute
	}
	l.out = outage{log: l.log, what: "limits: each process keeps its own"}
	l.admissions = batch[*admission]{most: admitMost, work: l.admit}
	l.building.at = make(map[bucketed]int)
	go l.upkeep()
	return l
}

// Admit asks whether a call of this token may go on. It waits for at most one round trip, shared with the calls of
// the same moment, and for none at all when the token has no limits or is known to be refused. An allowed call must
// be released. The error is only the caller's own cancellation: Redis being away is none, then the process's own
// limits answer.
func (l *Limits) Admit(ctx context.Context, t *Token, cost Cost) (Grant, error) {
	if err := ctx.Err(); err != nil {
		return Grant{}, err
	}
	token := bucketed{t.ID, max(0, t.RequestsPerMinute), max(0, t.TokensPerMinute), max(0, t.Concurrency)}
	if token.rpm == 0 && token.tpm == 0 && token.atOnce == 0 {
		return Grant{Allowed: true}, nil
	}
	cost.Requests, cost.Tokens = max(0, cost.Requests), max(0, cost.Tokens)
	now := time.Now()
	if grant, refused := l.refusedAlready(token, cost, now); refused {
		return grant, nil
	}

	a, ok := l.pool.Get().(*admission)
	if !ok {
		a = &admission{wake: make(chan bool, 1)}
	}
	a.token, a.cost, a.lease, a.grant = token, cost, "", Grant{}
	if token.atOnce > 0 {
		a.lease = l.process + strconv.FormatUint(l.leases.Add(1), 36)
	}
	if l.out.resting(now) {
		l.admitLocally(a, now)
	} else {
		l.admissions.do(ctx, a, a.wake)
	}
	grant := a.grant
	a.grant = Grant{}
	l.pool.Put(a)
	return grant, nil
}

// Release ends the call: its place is free, and the estimate of its tokens is replaced by what it used; negative
// means unknown and leaves the estimate. It does not wait, and a second Release does nothing. A client that sends
// its next call after the last byte of an answer expects its place to be free: release before sending that byte.
func (g Grant) Release(tokens int) {
	h := g.held
	if h == nil || h.released.Swap(true) {
		return
	}
	delta := 0
	if h.token.tpm > 0 && tokens >= 0 {
		delta = tokens - h.estimate - int(h.spent.Load())
	}
	h.limits.release(h, delta)
}

// Spend counts tokens of a call that goes on, such as a conversation of an hour, in the minute they are used. The whole that
// Release is told includes them. It does not wait, and after Release does nothing; the two are not called at once.
func (g Grant) Spend(tokens int) {
	h := g.held
	if h == nil || h.token.tpm == 0 || tokens <= 0 || h.released.Load() {
		return
	}
	h.spent.Add(int64(tokens))
	h.limits.correct(h, settlement{token: h.token, second: thisSecond, delta: tokens})
}

// refusedAlready answers for a token whose requests are used up.
func (l *Limits) refusedAlready(token bucketed, cost Cost, now time.Time) (Grant, bool) {
	if token.rpm == 0 || cost.Requests != 1 {
		return Grant{}, false
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	r, ok := l.refused[token]
	if !ok {
		return Grant{}, false
	}
	past := now.Sub(r.at)
	if past >= r.grant.RetryAfter {
		delete(l.refused, token)
		return Grant{}, false
	}
	r.grant.RetryAfter -= past
	r.grant.Requests.Reset = max(0, r.grant.Requests.Reset-past)
	r.grant.Tokens.Reset = max(0, r.grant.Tokens.Reset-past)
	return r.grant, true
}
