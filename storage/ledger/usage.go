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

// UsageOptions configure a Usage.
type UsageOptions struct {
	FlushEvery time.Duration // default 1 s
	Log        *slog.Logger  // nil: silent
}

// Usage is the ledger of what tokens used, summed by day (UTC), token, model and channel. It is safe for concurrent use.
//
// Entries are summed in memory and added to Redis every FlushEvery. Nothing is lost while Redis is unavailable: the waiting sums are
// bounded by the distinct keys, and Redis counts each batch once. Close returns an error if sums could not be written; they are lost then.
// What Redis refuses is lost and logged; later rows are still written. A killed process loses what it had not flushed. For tokens with a
// budget, the reservations of those calls stay, since a batch ends them in the step that counts them.
//
// Every entry's cost also counts as spent of the token's budget, even without one: a later budget includes what was spent before.
type Usage struct {
	*outbox.Outbox[[]usageRow]

	log *slog.Logger

	mu   sync.Mutex
	sums map[rowName]tally
	rows map[string]int // of each token in sums

	refused atomic.Int64
}

// Entry is what one call used.
type Entry struct {
	Token   string    // id
	Model   string    // public name
	Channel string    // empty if no channel accepted the call
	At      time.Time // zero: now

	Requests     int64 // 1 for a call; 0 for an addition to a counted call
	InputTokens  int64 // including the cached ones
	CachedTokens int64
	OutputTokens int64
	Images       int64
	Audio        time.Duration // input or output
	Failed       bool          // the requests failed

	Cost int64 // in billionths of the currency
	// Reservation is the Grant.Reservation of a settled call; it ends when the entry is written.
	Reservation string
}

// Row is the sum of one day, token, model and channel.
type Row struct {
	Day     string `json:"day,omitempty" doc:"Day in UTC; absent if the sums are not by day. Likewise token, model and channel"`
	Token   string `json:"token,omitempty" doc:"Token id"`
	Model   string `json:"model,omitempty" doc:"Public model name"`
	Channel string `json:"channel,omitempty" doc:"Channel that answered"`

	Requests     int64         `json:"requests" doc:"Relayed calls, including failed calls"`
	Tasks        int64         `json:"tasks" doc:"Video tasks that ended"`
	Failed       int64         `json:"failed" doc:"Requests and tasks that failed"`
	InputTokens  int64         `json:"input_tokens" doc:"Input tokens, including cached tokens"`
	CachedTokens int64         `json:"cached_tokens" doc:"Input tokens that the vendor served from its cache"`
	OutputTokens int64         `json:"output_tokens"`
	Images       int64         `json:"images"`
	Audio        time.Duration `json:"-"`
	Video        time.Duration `json:"-"`
	Cost         int64         `json:"-"` // in billionths of the currency
}

// tally is what was recorded for one key and is not written yet.
type tally struct {
	sums         counters
	reservations []string
}

// counters are the sums of one key in the order of counterNames.
type counters [10]int64

// OtherModel is the model of rows beyond the bounds.
const OtherModel = "other"

const (
	// usageRowsMost bounds the rows of a token between two flushes, usageFieldsMost the fields of its day, of which each row has up to ten.
	// Clients may choose names of models if a channel accepts every name: names beyond the bound count as OtherModel, with their channel.
	usageRowsMost   = 200
	usageFieldsMost = "2000"
	// sumFieldsMost is how many fields the sums of a day's models, and those of its channels, may have; the others count as OtherModel.
	sumFieldsMost = "200000"
)

// NewUsage starts a ledger that flushes until Close; opts may be nil. The caller closes the client.
func NewUsage(client redis.UniversalClient, opts *UsageOptions) *Usage {
	opts = cmp.Or(opts, new(UsageOptions))
	u := &Usage{
		log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)), sums: make(map[rowName]tally), rows: make(map[string]int),
	}
	u.Outbox = outbox.New(client, outbox.Options[[]usageRow]{
		Name: "usage", Script: usageScript, Part: "usage: stored in memory until it answers", Log: u.log,
		Every: cmp.Or(opts.FlushEvery, time.Second), Cut: u.cut, Encode: encode, Applied: u.applied, Lost: u.lost,
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
	key := rowName{dayOf(at), e.Token, e.Model, e.Channel}
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

// Refused returns the number of parts of rows that Redis refused. They are logged, and not sent again.
func (u *Usage) Refused() int64 { return u.refused.Load() }
