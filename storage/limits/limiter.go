// Package limits holds each token to its requests and tokens per minute, its calls in flight and its budget, over all processes
// that share one Redis. It reserves money in the ledger's budgets in the same step, and knows tokens by their allowance alone.
package limits

import (
	"cmp"
	"context"
	"crypto/rand"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
)

const (
	settleAfter = 10 * time.Millisecond // releases wait so long for company, unless a call takes them along sooner
	admitMost   = 256                   // calls in one round trip
	// thisSecond is past any clock: what is counted for a second to come counts for the one that is, by whichever clock.
	thisSecond = 1 << 52
)

// The keys:
//
//	limit:<token id>     hash    the request and token windows, a minute after the last call
//	leases:<token id>    zset    calls in flight -> expiry in ms, a minute after the last renewal
//	admitted:<process>   string  the number of its last batch of admissions, and what that was answered, ten minutes
func windowKey(tokenID string) string   { return storage.Prefix + "limit:" + tokenID }
func leasesKey(tokenID string) string   { return storage.Prefix + "leases:" + tokenID }
func admittedKey(process string) string { return storage.Prefix + "admitted:" + process }

// Options may be nil.
type Options struct {
	Lease time.Duration // a crashed process holds the places of its calls so long; default 1 min
	Log   *slog.Logger  // nil: silent
}

// Limiter holds each token to its requests per minute, tokens per minute, calls in flight and budget, over all processes
// that share one Redis. Safe for concurrent use.
//
// The window slides in steps of a second and is never wider open than its limit: in any sixty seconds at most that
// many requests are admitted. While Redis is away each process keeps the same rule for itself.
//
// A call of a token with a budget is admitted as long as what was spent, what is reserved and its own estimate together
// stay within it. So a budget is exceeded at most by what calls cost beyond their estimates. A reservation stands, at
// the call's true cost once that is known, until the ledger has the call: see Usage. While Redis is away each process
// goes by what it last knew.
type Limiter struct {
	client redis.UniversalClient
	log    *slog.Logger
	out    storage.Outage
	lease  time.Duration

	admissions storage.Batch[*admission]
	pool       sync.Pool // of *admission
	batch      batch     // the one at work; nothing else touches it
	memory     *memory

	process  string        // the name of this process
	leases   atomic.Uint64 // named so far
	failures atomic.Int64

	wake chan struct{} // there is something to settle
	// timed: the upkeep will look for what is to be settled by itself, so that the next call need not wake it.
	timed atomic.Bool
	stop  context.CancelFunc
	done  chan struct{} // closed when the upkeep has ended
}

// Cost is what one call asks for.
type Cost struct {
	Requests int // usually 1
	Tokens   int // estimated model tokens; 0: unknown, counted when the call is released
	// Money is what the call may cost, in billionths of the currency. It is reserved where the token has a budget.
	Money int64
	Model string // public name, which a reservation that stays behind is listed with
}

// Window is the state of one limit after a call, as answers show it.
type Window struct {
	Limit     int           // 0: the token has no such limit, and the other fields are 0 too
	Remaining int           // never negative
	Reset     time.Duration // until nothing of the window is used, if nothing more comes
}

// Grant is the answer to Admit. It may be copied.
type Grant struct {
	Allowed    bool
	Spent      bool          // not allowed because of the budget, which no waiting brings back
	Busy       bool          // not allowed because of the calls in flight
	RetryAfter time.Duration // when not allowed: no use in trying sooner; never 0 then
	Requests   Window
	Tokens     Window

	// Left is what is left of the token's budget beside its other calls and tasks, this one's reservation included; 0
	// without a budget.
	Left int64

	held *held // nil: nothing to release
}

// held is what an admitted call holds until it is released.
type held struct {
	limits   *Limiter
	token    storage.Allowance
	lease    string // empty: neither a limit of calls in flight nor a budget
	second   int64
	estimate int
	reserved int64
	local    bool // counted in this process only
	spent    atomic.Int64
	released atomic.Bool
}

// admission is one call that waits to be admitted; with settle it only makes sure that settlements are sent.
type admission struct {
	token  storage.Allowance
	cost   Cost
	lease  string
	settle bool
	wake   chan bool
	grant  Grant
}

// New starts the upkeep of calls in flight until Close. The client stays the caller's.
func New(client redis.UniversalClient, opts *Options) *Limiter {
	if opts == nil {
		opts = &Options{}
	}
	ctx, stop := context.WithCancel(context.Background()) //nolint:forbidigo // the upkeep's own, which ends with Close
	l := &Limiter{
		client:  client,
		log:     cmp.Or(opts.Log, slog.New(slog.DiscardHandler)),
		lease:   opts.Lease,
		memory:  newMemory(),
		process: rand.Text()[:ledger.ProcessLetters],
		wake:    make(chan struct{}, 1),
		stop:    stop,
		done:    make(chan struct{}),
	}
	if l.lease <= 0 {
		l.lease = time.Minute
	}
	l.batch = newBatch(l.process, l.lease)
	l.out = storage.Outage{Log: l.log, What: "limits: each process keeps its own"}
	l.admissions = storage.Batch[*admission]{Most: admitMost, Work: l.admit}
	go l.upkeep(ctx)
	return l
}

// Admit asks whether a call of this token may go on. It waits for at most one round trip, shared with the calls of
// the same moment, and for none at all when the token has no limits or is known to be refused. An allowed call must
// be released. The error is only the caller's own cancellation: Redis being away is none, then the process's own
// limits answer.
func (l *Limiter) Admit(ctx context.Context, token storage.Allowance, cost Cost) (Grant, error) {
	if err := ctx.Err(); err != nil {
		return Grant{}, err
	}
	token.RequestsPerMinute, token.TokensPerMinute, token.Concurrency = max(0, token.RequestsPerMinute), max(0, token.TokensPerMinute), max(0, token.Concurrency)
	token.Budget = storage.BoundAmount(token.Budget)
	if token.RequestsPerMinute == 0 && token.TokensPerMinute == 0 && token.Concurrency == 0 && token.Budget == 0 {
		return Grant{Allowed: true}, nil
	}
	cost.Requests, cost.Tokens, cost.Money = max(0, cost.Requests), max(0, cost.Tokens), storage.BoundAmount(cost.Money)
	now := time.Now()
	if grant, refused := l.memory.refusal(token, cost, now); refused {
		return grant, nil
	}
	return l.ask(ctx, token, cost, now), nil
}

// ask admits a call together with those of the same moment.
func (l *Limiter) ask(ctx context.Context, token storage.Allowance, cost Cost, now time.Time) Grant {
	a, ok := l.pool.Get().(*admission)
	if !ok {
		a = &admission{wake: make(chan bool, 1)}
	}
	a.token, a.cost, a.lease, a.grant = token, cost, "", Grant{}
	if token.Concurrency > 0 || token.Budget > 0 {
		a.lease = l.newLease()
	}
	if l.out.Resting(now) {
		l.admitHere(now, a)
	} else {
		l.admissions.Do(ctx, a, a.wake)
	}
	grant := a.grant
	a.grant = Grant{}
	l.pool.Put(a)
	return grant
}

// newLease names a call in flight, or a reservation.
func (l *Limiter) newLease() string {
	return l.process + strconv.FormatUint(l.leases.Add(1), 36)
}

// Release ends the call: its place is free, and the estimate of its tokens is replaced by what it used; negative
// means unknown and leaves the estimate. What was reserved of a budget is given back. It does not wait, and a second
// Release does nothing. A client that sends its next call after the last byte of an answer expects its place to be
// free: release before sending that byte.
func (g Grant) Release(tokens int) { g.end(tokens, refund) }

// Settle is Release for a call that goes into the ledger: the reservation now is the call's cost, and stands until
// Usage has written the entry that names it.
func (g Grant) Settle(tokens int, cost int64) { g.end(tokens, storage.BoundAmount(cost)) }

// refund stands for the cost of a call that leaves no reservation behind.
const refund = -1

func (g Grant) end(tokens int, cost int64) {
	h := g.held
	if h == nil || h.released.Swap(true) {
		return
	}
	delta := 0
	if h.token.TokensPerMinute > 0 && tokens >= 0 {
		delta = tokens - h.estimate - int(h.spent.Load())
	}
	h.limits.settle(h, settlement{
		token: h.token, lease: h.lease, second: h.second, delta: delta, cost: cost, money: h.token.Budget > 0 && cost != h.reserved,
	})
}

func (l *Limiter) settle(h *held, s settlement) {
	if l.memory.settle(h, s) {
		l.wakeUpkeep()
	}
}

// Reservation is what the ledger's entry of a settled call names; "" where nothing is reserved.
func (g Grant) Reservation() string {
	if g.held == nil || g.held.token.Budget == 0 || g.held.local {
		return ""
	}
	return g.held.lease
}

// Spend counts tokens of a call that goes on, such as a conversation of an hour, in the minute they are used. The whole that
// Release gets includes them. It does not wait, and after Release does nothing; the two are not called at once.
func (g Grant) Spend(tokens int) {
	h := g.held
	if h == nil || h.token.TokensPerMinute == 0 || tokens <= 0 || h.released.Load() {
		return
	}
	h.spent.Add(int64(tokens))
	h.limits.settle(h, settlement{token: h.token, second: thisSecond, delta: tokens})
}

// Overdrawn reports of a call that goes on whether its token's budget is exceeded, by what the ledger has and what others
// have reserved; this call's own reservation is not counted. It waits as Admit does, and without a budget not at all.
func (g Grant) Overdrawn(ctx context.Context) bool {
	h := g.held
	if h == nil || h.token.Budget == 0 || h.released.Load() {
		return false
	}
	now := h.limits.ask(ctx, storage.Allowance{Token: h.token.Token, Budget: storage.BoundAmount(h.token.Budget + h.reserved)}, Cost{}, time.Now())
	now.Release(0)
	return now.Spent
}

// Away reports whether Redis did not answer last time: each process keeps to the limits for itself.
func (l *Limiter) Away() bool { return l.out.Away() }

// Failures counts the batches of admissions and settlements that Redis did not take. Settlements are sent again.
func (l *Limiter) Failures() int64 { return l.failures.Load() }
