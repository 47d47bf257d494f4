package ledger

import (
	"cmp"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/outbox"
)

// UsageOptions may be nil.
type UsageOptions struct {
	FlushEvery time.Duration // default 1 s
	Log        *slog.Logger  // nil: silent
}

// Usage is the ledger of what tokens used, summed by day (UTC), token, model and channel. Safe for concurrent use.
//
// Entries are summed in memory and added to Redis every FlushEvery. Nothing is lost while Redis is away: what waits is bounded by
// the distinct keys, and Redis counts each batch once. Close returns the error of what could not be written; it is lost then. What
// Redis refuses, because another program has written to a key, is lost and logged; it stops nothing after it. A process that is
// killed loses what it had not flushed; of tokens with a budget the reservations of those calls stay, since a batch ends them in
// the same step in which it counts them.
//
// Every entry's cost also counts as spent of the token's budget, whether it has one or not: one that is given later
// covers what was spent before.
type Usage struct {
	*outbox.Outbox[[]usageRow]

	client redis.UniversalClient
	log    *slog.Logger

	mu   sync.Mutex
	sums map[usageKey]tally
	rows map[string]int // of each token in sums

	refused atomic.Int64
}

// Entry is what one call used.
type Entry struct {
	Token   string    // id
	Model   string    // public name
	Channel string    // empty when no channel took the call
	At      time.Time // zero: now

	Requests     int64 // 1 for a call; 0 for what is added to a call that was counted before
	InputTokens  int64 // all of the input, cached ones too
	CachedTokens int64
	OutputTokens int64
	Images       int64
	Audio        time.Duration // heard or made
	Failed       bool          // the requests failed

	Cost int64 // in billionths of the currency
	// Reservation is Grant.Reservation of a call that was settled: it ends when the entry is written.
	Reservation string
}

// Row is the sum of one day, token, model and channel.
type Row struct {
	Day     string // 2026-01-31, UTC
	Token   string // id
	Model   string // public name
	Channel string

	Requests     int64 // calls
	Tasks        int64 // that ended
	Failed       int64 // of calls and tasks
	InputTokens  int64
	CachedTokens int64 // of the input tokens
	OutputTokens int64
	Images       int64
	Audio, Video time.Duration
	Cost         int64 // in billionths of the currency
}

type usageKey struct{ day, token, model, channel string }

// tally is what is recorded of one key and not yet written.
type tally struct {
	sums         counters
	reservations []string
}

// counters are the sums of one key in the order of counterNames.
type counters [10]int64

// OtherModel is the model of the rows that count what has no room for a row of its own.
const OtherModel = "other"

const (
	// usageRowsMost is how many rows a token may have between two flushes, usageFieldsMost how many fields in a day, of which
	// each row has up to ten. Names of models may be of clients' making, where a channel is open to every name: what has none
	// of the first so many names counts as OtherModel, with its channel.
	usageRowsMost   = 200
	usageFieldsMost = "2000"
	// sumFieldsMost is how many fields the sums of a day's models, and those of its channels, may have; the others count as OtherModel.
	sumFieldsMost = "200000"
)

// NewUsage starts a ledger that flushes until Close. The client stays the caller's.
func NewUsage(client redis.UniversalClient, opts *UsageOptions) *Usage {
	if opts == nil {
		opts = &UsageOptions{}
	}
	u := &Usage{
		client: client, log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)),
		sums: make(map[usageKey]tally), rows: make(map[string]int),
	}
	u.Outbox = outbox.New(client, outbox.Options[[]usageRow]{
		Name: "usage", Script: usageScript, Part: "usage: kept until it is back", Log: u.log, Every: cmp.Or(opts.FlushEvery, time.Second),
		Cut: u.cut, Encode: encode, Applied: u.applied, Lost: u.lost,
	})
	return u
}

// Record adds an entry. It never waits for Redis.
func (u *Usage) Record(e Entry) {
	at := e.At
	if at.IsZero() {
		at = time.Now()
	}
	add := counters{
		inRequests: e.Requests, inInput: e.InputTokens, inCached: e.CachedTokens, inOutput: e.OutputTokens,
		inImages: e.Images, inAudio: e.Audio.Milliseconds(), inCost: storage.BoundAmount(e.Cost),
	}
	if e.Failed {
		add[inFailed] = e.Requests
	}
	key := usageKey{dayOf(at), e.Token, e.Model, e.Channel}
	u.mu.Lock()
	defer u.mu.Unlock()
	sum, known := u.sums[key]
	if !known && u.rows[e.Token] >= usageRowsMost {
		key.model = OtherModel
		sum, known = u.sums[key]
	}
	if !known {
		u.rows[e.Token]++
	}
	for i, n := range add {
		sum.sums[i] += n
	}
	if e.Reservation != "" {
		sum.reservations = append(sum.reservations, e.Reservation)
	}
	u.sums[key] = sum
}

// Refused counts the parts of the ledger's rows that Redis refused. They are logged, and not sent again.
func (u *Usage) Refused() int64 { return u.refused.Load() }
