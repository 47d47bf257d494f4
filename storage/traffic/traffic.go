// Package traffic sums calls by minute, channel and model, for charts of the last day. What is charged stands in the ledger.
package traffic

import (
	"cmp"
	"context"
	"crypto/rand"
	"encoding/json"
	"errors"
	"log/slog"
	"net/url"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// The keys:
//
//	traffic:<minute>       hash    "<model> <channel> <counter>" -> sum; the minute is Unix time / 60
//	traffic-seq:<process>  string  the last batch of one process, so that none counts twice
func minuteKey(minute int64) string {
	return storage.Prefix + "traffic:" + strconv.FormatInt(minute, 10)
}
func sequenceKey(process string) string { return storage.Prefix + "traffic-seq:" + process }

const (
	// Kept is how long a minute is kept: a day, and what a chart of one needs beside it.
	Kept = 26 * time.Hour
	// rowsMost is how many rows of a minute each process writes, and fieldsMost how many fields a minute may have in all. What
	// finds no room counts as OtherModel of its channel, so that a day of minutes full of names stays below 100 MB.
	rowsMost   = 100
	fieldsMost = 1200
	// waitingMost is how many rows wait for a Redis that is away; then the oldest minute goes.
	waitingMost = 10_000
	flushEvery  = time.Second
	sendTries   = 10
)

// OtherModel is the model of the rows that count what has no row of its own.
const OtherModel = "other"

// Buckets are the upper bounds of the times to a first byte but for the last, which has none.
func Buckets() [7]time.Duration {
	return [...]time.Duration{
		100 * time.Millisecond, 250 * time.Millisecond, 500 * time.Millisecond, time.Second, 2500 * time.Millisecond, 5 * time.Second, 15 * time.Second,
	}
}

// Sums are what is counted of calls.
type Sums struct {
	Requests, Failed, Tokens int64
	Cost                     int64 // in billionths of the currency
	// First counts calls by the time to their first byte, in the order of Buckets; calls without one are in none.
	First [8]int64
}

// Add adds others.
func (s *Sums) Add(other Sums) {
	s.Requests += other.Requests
	s.Failed += other.Failed
	s.Tokens += other.Tokens
	s.Cost += other.Cost
	for i, n := range other.First {
		s.First[i] += n
	}
}

// Quantile is the time to a first byte within which so large a share of the calls came, to the upper bound of its bucket and
// linear within it; 0 where there was none. What lies beyond the last bound is that bound.
func (s *Sums) Quantile(share float64) time.Duration {
	var all int64
	for _, n := range s.First {
		all += n
	}
	if all == 0 {
		return 0
	}
	want, bounds := share*float64(all), Buckets()
	var below float64
	var from time.Duration
	for i, bound := range bounds {
		n := float64(s.First[i])
		if n > 0 && below+n >= want {
			return from + time.Duration((want-below)/n*float64(bound-from))
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
	// First is how long its first byte took, 0 where there was none.
	First time.Duration
}

// Options may be nil.
type Options struct {
	// Known tells whether a model has rows of its own; others, which clients make up, count as OtherModel. nil: none has.
	Known      func(model string) bool
	FlushEvery time.Duration // default one second
	Log        *slog.Logger  // nil: silent
}

// Traffic counts until Close. Safe for concurrent use. While Redis is away the sums wait.
type Traffic struct {
	client  redis.UniversalClient
	log     *slog.Logger
	out     storage.Outage
	script  *redis.Script
	known   func(string) bool
	process string

	mu   sync.Mutex
	sums map[place]Sums
	rows map[int64]int // of each minute in sums

	sending sync.Mutex // held while flushing
	batch   []row      // on its way, nil for none
	number  int64
	refused int

	loop *storage.Loop
}

type place struct {
	minute         int64
	model, channel string
}

type row struct {
	place
	Sums
}

// New starts to count. The client stays the caller's.
func New(client redis.UniversalClient, opts *Options) *Traffic {
	if opts == nil {
		opts = &Options{}
	}
	t := &Traffic{
		client: client, log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)), script: redis.NewScript(addScript), known: opts.Known,
		process: rand.Text()[:12], sums: make(map[place]Sums), rows: make(map[int64]int), loop: storage.NewLoop(),
	}
	if t.known == nil {
		t.known = func(string) bool { return false }
	}
	t.out = storage.Outage{Log: t.log, What: "traffic: kept until it is back"}
	t.loop.Start(cmp.Or(opts.FlushEvery, flushEvery), func(ctx context.Context, _ bool) {
		_ = t.Flush(ctx) // what failed is sent again, and stands in the log
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

// dropOldest forgets the oldest minute that waits.
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

// Close writes a last time and stops. The error says what could not be written; it is lost then.
func (t *Traffic) Close(ctx context.Context) error {
	t.loop.Stop()
	return t.Flush(ctx)
}

// Flush writes what was counted. What Redis did not take is sent again.
func (t *Traffic) Flush(ctx context.Context) error {
	t.sending.Lock()
	defer t.sending.Unlock()
	for range 2 { // what is left of the last time, then what was counted since
		if t.batch == nil {
			t.cut()
		}
		if len(t.batch) == 0 {
			t.batch = nil
			return nil
		}
		err := t.out.Note(ctx, time.Now(), t.send(ctx))
		if err != nil {
			if t.refused++; errors.Is(err, storage.ErrUnavailable) || ctx.Err() != nil || t.refused < sendTries {
				return err
			}
			t.log.LogAttrs(ctx, slog.LevelError, "redis refuses sums of traffic", slog.Int("rows", len(t.batch)), slog.Any("error", err))
		}
		t.batch, t.refused = nil, 0
	}
	return nil
}

// cut takes the sums out of the way of Add.
func (t *Traffic) cut() {
	t.mu.Lock()
	sums := t.sums
	t.sums = make(map[place]Sums, min(len(sums), rowsMost))
	clear(t.rows)
	t.mu.Unlock()
	for at, sum := range sums {
		t.batch = append(t.batch, row{at, sum})
	}
	t.number++
}

// addScript adds a batch unless its number was added before. A row that finds its minute full counts as another model.
//
//	KEYS  sequence, then for each row its minute
//	ARGV  number, expiry in s, most fields, the row of models that have none, then for each row: its name, JSON [counter, n, …]
const addScript = `
if tonumber(redis.call('GET', KEYS[1]) or 0) >= tonumber(ARGV[1]) then return 0 end
redis.call('SET', KEYS[1], ARGV[1], 'EX', 86400)
for k = 2, #KEYS do
	local name, counters = ARGV[2 * k + 1], cjson.decode(ARGV[2 * k + 2])
	if redis.call('HLEN', KEYS[k]) >= tonumber(ARGV[3]) and redis.call('HEXISTS', KEYS[k], name .. 'requests') == 0 then
		name = ARGV[4] .. string.sub(name, string.find(name, ' ', 1, true), -1)
	end
	for c = 1, #counters, 2 do redis.call('HINCRBY', KEYS[k], name .. counters[c], counters[c + 1]) end
	redis.call('EXPIRE', KEYS[k], ARGV[2])
end
return #KEYS - 1
`

// counterNames end the fields of a minute.
const counterNames = "requests failed tokens cost 0 1 2 3 4 5 6 7"

// counters are the sums in the order of counterNames.
func (s *Sums) counters() [12]*int64 {
	all := [12]*int64{&s.Requests, &s.Failed, &s.Tokens, &s.Cost}
	for i := range s.First {
		all[4+i] = &s.First[i]
	}
	return all
}

func (t *Traffic) send(ctx context.Context) error {
	keys := []string{sequenceKey(t.process)}
	args := []any{t.number, int64(Kept / time.Second), fieldsMost, url.QueryEscape(OtherModel)}
	names := strings.Fields(counterNames)
	for _, row := range t.batch {
		var add []any
		for i, n := range row.counters() {
			if *n != 0 {
				add = append(add, names[i], strconv.FormatInt(*n, 10)) // Lua's numbers would round
			}
		}
		text, err := json.Marshal(add)
		if err != nil {
			return err
		}
		keys = append(keys, minuteKey(row.minute))
		args = append(args, url.QueryEscape(row.model)+" "+url.QueryEscape(row.channel)+" ", text)
	}
	return storage.RedisError("write traffic", t.script.Run(ctx, t.client, keys, args...).Err())
}
