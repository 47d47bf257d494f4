// Package limits enforces each token's requests and tokens per minute, concurrent calls and budget, over all processes that share one
// Redis. It reserves money in the ledger's budgets in the same step. It depends on a token's allowance only.
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
	settleAfter = 10 * time.Millisecond // the longest wait of a release for a batch
	admitMost   = 256                   // calls in one round trip
	// thisSecond is later than any clock: what is counted for a future second counts for the current one, by any clock.
	thisSecond = 1 << 52
)

// The keys:
//
//	limit:<token id>     hash    the request and token windows, a minute after the last call
//	leases:<token id>    zset    concurrent calls -> expiry in ms, a minute after the last renewal
//	admitted:<process>   string  the number of the process's last batch and its answer, ten minutes
func windowKey(tokenID string) string   { return storage.Prefix + "limit:" + tokenID }
func leasesKey(tokenID string) string   { return storage.Prefix + "leases:" + tokenID }
func admittedKey(process string) string { return storage.Prefix + "admitted:" + process }

// Options configure a Limiter.
type Options struct {
	Lease time.Duration // how long the calls of a crashed process count as concurrent; default 1 min
	Log   *slog.Logger  // nil: silent
}

// Limiter enforces each token's requests and tokens per minute, concurrent calls and budget over all processes of one Redis.
//
// The window slides by the second: any sixty seconds admit at most the limit. While Redis is away each process enforces it alone.
//
// A call of a token with a budget is admitted if the spent and the reserved money and its own estimate stay within the budget. So a budget
// is exceeded at most by the difference between calls' costs and their estimates. A reservation, at the call's true cost once that is
// known, lasts until the ledger has the call: see Usage. While Redis is unavailable, each process uses the last known values.
type Limiter struct {
	client redis.UniversalClient
	log    *slog.Logger
	out    storage.Outage
	lease  time.Duration

	admissions storage.Batch[*admission]
	pool       sync.Pool // of *admission
	batch      batch     // of the current round trip; only admit uses it
	memory     *memory

	process  string        // the random name of this process
	leases   atomic.Uint64 // number of leases
	failures atomic.Int64

	loop *storage.Loop // of upkeep
}

// Cost is what one call requests.
type Cost struct {
	Requests int // usually 1
	Tokens   int // estimated model tokens; 0: unknown, counted when the call is released
	// Money is what the call may cost, in billionths of the currency. It is reserved if the token has a budget.
	Money int64
	Model string // public model, shown with a reservation
}

// Window is the state of one limit after a call, as answers report it.
type Window struct {
	Limit     int           // 0: the token has no such limit, and the other fields are 0 too
	Remaining int           // never negative
	Reset     time.Duration // until the window is unused, without further calls
}

// Grant is the answer of Admit. It may be copied.
type Grant struct {
	Allowed    bool
	Spent      bool          // refused because of the budget; waiting does not help
	Busy       bool          // refused because of the concurrent calls
	RetryAfter time.Duration // if refused: when to retry at the earliest; never 0
	Requests   Window
	Tokens     Window

	// Left is the rest of the token's budget without its other calls and tasks, but including this call's reservation; 0 without a budget.
	Left int64

	held *held // nil: nothing to release
}

// held is what an admitted call occupies until it is released.
type held struct {
	limits   *Limiter
	token    storage.Allowance
	lease    string // empty: neither a limit of concurrent calls nor a budget
	second   int64
	estimate int
	reserved int64
	local    bool // counted in this process only
	spent    atomic.Int64
	released atomic.Bool
}

// admission is one call that waits for its grant. With settle, it only causes a round trip for settlements.
type admission struct {
	token  storage.Allowance
	cost   Cost
	lease  string
	settle bool
	wake   chan bool
	grant  Grant
}

// New starts a Limiter over the client, which the caller closes. opts may be nil. Close ends it.
func New(client redis.UniversalClient, opts *Options) *Limiter {
	opts = cmp.Or(opts, new(Options))
	l := &Limiter{
		client:  client,
		log:     cmp.Or(opts.Log, slog.New(slog.DiscardHandler)),
		lease:   cmp.Or(opts.Lease, time.Minute),
		memory:  newMemory(),
		process: rand.Text()[:ledger.ProcessLetters],
		loop:    storage.NewLoop(),
	}
	l.batch = newBatch(l.process, l.lease)
	l.out = storage.Outage{Log: l.log, What: "limits: each process enforces its own"}
	l.admissions = storage.Batch[*admission]{Most: admitMost, Work: l.admit}
	l.loop.Start(l.lease/3, l.upkeep)
	return l
}

// Admit decides whether a call of this token may continue. It waits for at most one round trip, shared with concurrent calls, and not at
// all if the token has no limits or is known to be refused. An allowed call must be released. The only error is the caller's own
// cancellation: if Redis is unavailable, the process's own limits decide.
func (l *Limiter) Admit(ctx context.Context, token storage.Allowance, cost Cost) (Grant, error) {
	if err := ctx.Err(); err != nil {
		return Grant{}, err
	}
	token.RequestsPerMinute, token.TokensPerMinute = max(0, token.RequestsPerMinute), max(0, token.TokensPerMinute)
	token.Concurrency = max(0, token.Concurrency)
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

// Resume returns the grant of a call that has been admitted before, with so many tokens. Spend counts what it uses beyond them.
func (l *Limiter) Resume(token storage.Allowance, tokens int) Grant {
	only := storage.Allowance{Token: token.Token, TokensPerMinute: max(0, token.TokensPerMinute)}
	return Grant{Allowed: true, held: &held{limits: l, token: only, estimate: tokens, second: time.Now().Unix()}}
}

// ask admits a call together with concurrent ones.
func (l *Limiter) ask(ctx context.Context, token storage.Allowance, cost Cost, now time.Time) Grant {
	a, ok := l.pool.Get().(*admission)
	if !ok {
		a = &admission{wake: make(chan bool, 1)}
	}
	a.token, a.cost, a.lease, a.grant = token, cost, "", Grant{}
	if token.Concurrency > 0 || token.Budget > 0 {
		a.lease = l.newLease()
	}
	if l.out.CoolingDown(now) {
		l.admitHere(now, a)
	} else {
		l.admissions.Do(ctx, a, a.wake)
	}
	grant := a.grant
	a.grant = Grant{}
	l.pool.Put(a)
	return grant
}

func (l *Limiter) newLease() string {
	return l.process + strconv.FormatUint(l.leases.Add(1), 36)
}

// Release ends the call: it no longer counts as concurrent, and the number of used tokens replaces the estimate; a negative number is
// unknown and keeps the estimate. It releases the reservation. It does not block, and a second Release does nothing. A client that sends
// its next call after the last byte of an answer expects a free place, so the caller must release before it sends that byte.
func (g Grant) Release(tokens int) { g.end(tokens, refund) }

// Settle is Release for a call in the ledger: the reservation becomes its cost, and lasts until Usage has written the entry that names it.
func (g Grant) Settle(tokens int, cost int64) { g.end(tokens, storage.BoundAmount(cost)) }

// refund is the cost of a call that leaves no reservation.
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
		l.loop.Wake()
	}
}

// Reservation returns what the ledger's entry of a settled call must name; "" if nothing is reserved.
func (g Grant) Reservation() string {
	if g.held == nil || g.held.token.Budget == 0 || g.held.local {
		return ""
	}
	return g.held.lease
}

// Spend counts tokens of a continuing call, such as a conversation of an hour, in the minute in which they are used. The total that Release
// gets includes them. It does not block, and after Release does nothing; the two must not be called concurrently.
func (g Grant) Spend(tokens int) {
	h := g.held
	if h == nil || h.token.TokensPerMinute == 0 || tokens <= 0 || h.released.Load() {
		return
	}
	h.spent.Add(int64(tokens))
	h.limits.settle(h, settlement{token: h.token, second: thisSecond, delta: tokens})
}

// Overdrawn reports whether a call's token exceeds its budget without this call's reservation. It blocks as Admit, not without a budget.
func (g Grant) Overdrawn(ctx context.Context) bool {
	h := g.held
	if h == nil || h.token.Budget == 0 || h.released.Load() {
		return false
	}
	now := h.limits.ask(ctx, storage.Allowance{Token: h.token.Token, Budget: storage.BoundAmount(h.token.Budget + h.reserved)}, Cost{},
		time.Now())
	now.Release(0)
	return now.Spent
}

// Away reports whether Redis did not answer last time, so that each process enforces the limits for itself.
func (l *Limiter) Away() bool { return l.out.Away() }

// Failures returns the number of failed round trips. Their settlements are sent again.
func (l *Limiter) Failures() int64 { return l.failures.Load() }
