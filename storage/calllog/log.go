package calllog

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/klauspost/compress/zstd"
	"github.com/redis/go-redis/v9"

	"modelrelay/storage/outbox"
)

// flushEvery is how long a record waits for other records.
const flushEvery = time.Second

// Options may be nil.
type Options struct {
	// Recent is the approximate number of calls that Redis stores; default DefaultRecent.
	Recent int
	// FlushEvery is how long a record waits for other records; default one second.
	FlushEvery time.Duration
	// History receives every record's line once, in blocks of lines with line feeds, one block at a time. It must not retain the slice. id
	// is the block's id in Redis; "": Redis does not get the block. nil: there is no history.
	History func(lines []byte, id string)
	Log     *slog.Logger // nil: silent
}

// DefaultRecent is the default number of stored calls.
const DefaultRecent = 100_000

// Log writes the log until Close. It is safe for concurrent use.
//
// A record is written within about a second. While Redis is unavailable, records wait in memory; a killed process loses them.
type Log struct {
	*outbox.Outbox[*block]

	log     *slog.Logger
	history func(lines []byte, id string) // nil: there is none
	recent  int
	zstd    *zstd.Encoder

	mu       sync.Mutex
	filling  *block
	refusals refusals

	dropped atomic.Int64
}

// New starts a log over the client, which the caller closes.
func New(client redis.UniversalClient, opts *Options) *Log {
	opts = cmp.Or(opts, new(Options))
	l := &Log{
		log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)), history: opts.History, recent: cmp.Or(opts.Recent, DefaultRecent),
		zstd: newEncoder(), filling: new(block), refusals: make(refusals),
	}
	l.Outbox = outbox.New(client, outbox.Options[*block]{
		Name: "calls", Script: addScript, Part: "calls: the newest wait until it is back", Log: l.log,
		Every: cmp.Or(opts.FlushEvery, flushEvery), Most: waitingMost / blockRecords,
		Cut: l.cut, Encode: l.encode, Applied: l.done, Lost: l.lost,
	})
	return l
}

// Add adds a record. It does not retain it, and never waits for Redis.
func (l *Log) Add(r *Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Failed() && len(r.Tries) == 0 && l.refusals.skip(r) {
		return
	}
	l.end(r.appendOpen(l.filling.lines), r.Skipped)
}

// end ends a line that was appended to the block. The caller holds mu.
func (l *Log) end(lines []byte, skipped int64) {
	b := l.filling
	b.lines = appendEnd(lines, skipped)
	if b.records++; b.full() {
		l.filling = new(block)
		l.Outbox.Add(b)
	}
}

// cut adds each token's last skipped refusal, resets the counts of refusals, and returns the open block.
func (l *Log) cut() []*block {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, of := range l.refusals {
		if of.skipped > 0 {
			l.end(append(l.filling.lines, of.last...), of.skipped-1)
		}
	}
	clear(l.refusals)
	b := l.filling
	if b.records == 0 {
		return nil
	}
	l.filling = new(block)
	return []*block{b}
}

// lost passes a block that Redis does not get to the history.
func (l *Log) lost(ctx context.Context, b *block, err error) {
	l.dropped.Add(int64(b.records))
	if !errors.Is(err, outbox.ErrFull) {
		l.log.LogAttrs(ctx, slog.LevelError, "redis refuses calls of the log", slog.Int("calls", b.records), slog.Any("error", err))
	}
	l.done(ctx, b, "")
}

// done passes a block's lines to the history, with its id in Redis.
func (l *Log) done(_ context.Context, b *block, id string) {
	if l.history != nil {
		l.history(b.lines, id)
	}
}

// Close flushes and stops. Its error means that Redis lacks the waiting records; the history gets them.
func (l *Log) Close(ctx context.Context) error {
	err := l.Outbox.Close(ctx)
	for _, b := range l.Rest() {
		l.done(ctx, b, "")
	}
	return err
}

// Dropped returns the number of records that Redis did not get, because too many waited or Redis refused them.
func (l *Log) Dropped() int64 { return l.dropped.Load() }
