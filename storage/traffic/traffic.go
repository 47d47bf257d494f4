// Package traffic sums calls by minute, channel and model, for charts of the last day. Charged amounts are in the ledger.
package traffic

import (
	"cmp"
	"context"
	"encoding/json"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/outbox"
)

// The keys:
//
//	traffic:<minute>       hash    "<model> <channel> <counter>" -> sum; the minute is Unix time / 60
//	traffic-seq:<process>  string  the last batch of one process, see outbox
func minuteKey(minute int64) string {
	return storage.Prefix + "traffic:" + strconv.FormatInt(minute, 10)
}

const (
	// Kept is how long a minute is stored: a day, and the margin of a chart of one.
	Kept = 26 * time.Hour
	// rowsMost bounds the rows of a minute that each process writes, fieldsMost the fields of a minute. Further models count as OtherModel
	// of their channel, so a day of full minutes stays below 100 MB.
	rowsMost   = 100
	fieldsMost = 1200
	// waitingMost is the number of rows that wait while Redis is unavailable; then the oldest minute is dropped.
	waitingMost = 10_000
	flushEvery  = time.Second
)

// OtherModel is the model of rows beyond the bounds, and of unknown models.
const OtherModel = "other"

// Buckets returns the upper bounds of the buckets of times to the first byte, except the last bucket, which has none.
func Buckets() [7]time.Duration {
	return [...]time.Duration{
		100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second,
		15 * time.Second,
	}
}

// Sums are the sums of calls.
type Sums struct {
	Requests, Failed, Tokens int64
	Cost                     int64 // in billionths of the currency
	// First counts calls by the time to their first byte, in the order of Buckets; calls without one are in none.
	First [8]int64
}

// Add adds other to s.
func (s *Sums) Add(other Sums) {
	s.Requests += other.Requests
	s.Failed += other.Failed
	s.Tokens += other.Tokens
	s.Cost += other.Cost
	for i, n := range other.First {
		s.First[i] += n
	}
}

// Quantile returns the quantile of the times to the first byte for a share from 0 to 1, interpolated linearly within a bucket. It is 0
// without calls, and at most the last bound.
func (s *Sums) Quantile(share float64) time.Duration {
	var all int64
	for _, n := range s.First {
		all += n
	}
	if all == 0 {
		return 0
	}
	rank, bounds := share*float64(all), Buckets()
	var below float64
	var from time.Duration
	for i, bound := range bounds {
		n := float64(s.First[i])
		if n > 0 && below+n >= rank {
			return from + time.Duration((rank-below)/n*float64(bound-from))
		}
		below, from = below+n, bound
	}
	return from
}

// Entry is one call.
type Entry struct {
	At             time.Time // when it ended
	Model, Channel string    // Channel "": none answered
	Failed         bool
	Tokens, Cost   int64
	// First is the time to its first byte; 0: there was none.
	First time.Duration
}

// Options may be nil.
type Options struct {
	// Known reports whether a model has its own rows; other names, which clients may invent, count as OtherModel. nil: no model has.
	Known      func(model string) bool
	FlushEvery time.Duration // default one second
	Log        *slog.Logger  // nil: silent
}

// Traffic counts calls until Close, whose error reports that sums are lost. While Redis is unavailable, sums wait in memory. It is safe for
// concurrent use.
type Traffic struct {
	*outbox.Outbox[[]row]

	known func(string) bool

	mu   sync.Mutex
	sums map[place]Sums
	rows map[int64]int // of each minute in sums
}

type place struct {
	minute         int64
	model, channel string
}

type row struct {
	place
	Sums
}

// New starts a Traffic over the client, which the caller closes.
func New(client redis.UniversalClient, opts *Options) *Traffic {
	opts = cmp.Or(opts, new(Options))
	t := &Traffic{known: opts.Known, sums: make(map[place]Sums), rows: make(map[int64]int)}
	if t.known == nil {
		t.known = func(string) bool { return false }
	}
	log := cmp.Or(opts.Log, slog.New(slog.DiscardHandler))
	t.Outbox = outbox.New(client, outbox.Options[[]row]{
		Name: "traffic", Script: addScript, Part: "traffic: stored in memory until it answers", Log: log, Every: cmp.Or(opts.FlushEvery, flushEvery),
		Cut: t.cut, Encode: encode,
		Lost: func(ctx context.Context, rows []row, err error) {
			log.LogAttrs(ctx, slog.LevelError, "redis refuses sums of traffic", slog.Int("rows", len(rows)), slog.Any("error", err))
		},
	})
	return t
}

// Add counts a call. It never waits for Redis.
func (t *Traffic) Add(e Entry) {
	at := place{e.At.Unix() / secondsOfMinute, e.Model, e.Channel}
	if at.model != "" && !t.known(at.model) {
		at.model = OtherModel
	}
	add := Sums{Requests: 1, Tokens: e.Tokens, Cost: storage.BoundAmount(e.Cost)}
	if e.Failed {
		add.Failed = 1
	}
	if e.First > 0 {
		add.First[bucketOf(e.First)] = 1
	}
	t.mu.Lock()
	defer t.mu.Unlock()
	sum, known := t.sums[at]
	if !known && t.rows[at.minute] >= rowsMost {
		at.model = OtherModel
		sum, known = t.sums[at]
	}
	if !known {
		if len(t.sums) >= waitingMost {
			t.dropOldest()
		}
		t.rows[at.minute]++
	}
	sum.Add(add)
	t.sums[at] = sum
}

const secondsOfMinute = 60

func bucketOf(first time.Duration) int {
	bounds := Buckets()
	for i, bound := range bounds {
		if first <= bound {
			return i
		}
	}
	return len(bounds)
}

// dropOldest drops the oldest waiting minute.
func (t *Traffic) dropOldest() {
	oldest := int64(-1)
	for minute := range t.rows {
		if oldest < 0 || minute < oldest {
			oldest = minute
		}
	}
	for at := range t.sums {
		if at.minute == oldest {
			delete(t.sums, at)
		}
	}
	delete(t.rows, oldest)
}

// cut moves the sums into a batch, without blocking Add for long.
func (t *Traffic) cut() [][]row {
	t.mu.Lock()
	sums := t.sums
	t.sums = make(map[place]Sums, min(len(sums), rowsMost))
	clear(t.rows)
	t.mu.Unlock()
	if len(sums) == 0 {
		return nil
	}
	rows := make([]row, 0, len(sums))
	for at, sum := range sums {
		rows = append(rows, row{at, sum})
	}
	return [][]row{rows}
}

// addScript adds a batch of an outbox. A new row of a full minute counts as OtherModel.
//
//	KEYS  the outbox's, then for each row its minute
//	ARGV  the outbox's, expiry in s, most fields, OtherModel, then for each row: its name, JSON [counter, n, …]
const addScript = `
applied('')
for k = 2, #KEYS do
	local name, counters = ARGV[2 * k + 1], cjson.decode(ARGV[2 * k + 2])
	if redis.call('HLEN', KEYS[k]) >= tonumber(ARGV[3]) and redis.call('HEXISTS', KEYS[k], name .. 'requests') == 0 then
		name = ARGV[4] .. string.sub(name, string.find(name, ' ', 1, true), -1)
	end
	for c = 1, #counters, 2 do redis.call('HINCRBY', KEYS[k], name .. counters[c], counters[c + 1]) end
	redis.call('EXPIRE', KEYS[k], ARGV[2])
end
return ''
`

// counterNames end the fields of a minute.
const counterNames = "requests failed tokens cost 0 1 2 3 4 5 6 7"

// counters returns the sums in the order of counterNames.
func (s *Sums) counters() [12]*int64 {
	all := [12]*int64{&s.Requests, &s.Failed, &s.Tokens, &s.Cost}
	for i := range s.First {
		all[4+i] = &s.First[i]
	}
	return all
}

// encode returns the keys and arguments of addScript.
func encode(rows []row) (keys []string, args []any) {
	args = []any{int64(Kept / time.Second), fieldsMost, url.QueryEscape(OtherModel)}
	names := strings.Fields(counterNames)
	for _, row := range rows {
		var add []string
		for i, n := range row.counters() {
			if *n != 0 {
				add = append(add, names[i], strconv.FormatInt(*n, 10)) // Lua's numbers would round
			}
		}
		text, _ := json.Marshal(add) // texts are marshaled without an error
		keys = append(keys, minuteKey(row.minute))
		args = append(args, url.QueryEscape(row.model)+" "+url.QueryEscape(row.channel)+" ", text)
	}
	return keys, args
}
