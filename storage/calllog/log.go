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

// flushEvery is how long a record waits for company.
const flushEvery = time.Second

// Options may be nil.
type Options struct {
	// Recent is how many calls the log keeps, about; default DefaultRecent.
	Recent int
	// FlushEvery is how long a record waits for company; default one second.
	FlushEvery time.Duration
	// History takes every record's line once, in blocks of lines that each end with a line feed, one block at a time; the bytes are
	// the log's again when it returns. id is that of their block in Redis; "": there is none, and will be none.
	// nil: there is no history.
	History func(lines []byte, id string)
	Log     *slog.Logger // nil: silent
}

// DefaultRecent is how many calls the log keeps by default.
const DefaultRecent = 100_000

// Log writes the log until Close. Safe for concurrent use.
//
// A record is written within about a second. While Redis is away records wait in memory; a process that is killed loses
// those that wait.
type Log struct {
	*outbox.Outbox[*block]

	log     *slog.Logger
	history func(lines []byte, id string) // nil: there is none
	recent  int
	zstd    *zstd.Encoder
	packed  []byte // of the block that is sent

	mu       sync.Mutex
	filling  *block
	free     []*block
	refusals refusals

	dropped atomic.Int64
}

// New starts a log. The client stays the caller's.
func New(client redis.UniversalClient, opts *Options) *Log {
	opts = cmp.Or(opts, new(Options))
	l := &Log{
		log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)), history: opts.History, recent: cmp.Or(opts.Recent, DefaultRecent),
		zstd: newEncoder(), filling: new(block), refusals: make(refusals),
	}
	l.Outbox = outbox.New(client, outbox.Options[*block]{
		Name: "calls", Script: addScript, Part: "calls: the newest wait until it is back", Log: l.log,
		Every: cmp.Or(opts.FlushEvery, flushEvery), Most: waitingMost / blockRecords,
		Cut: l.cut, Encode: l.encode, Applied: l.pass, Lost: l.lost,
	})
	return l
}

// Add takes a record, of which it keeps nothing but what it writes. It never waits for Redis.
func (l *Log) Add(r *Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Failed() && len(r.Tries) == 0 && l.refusals.skip(r) {
		return
	}
	l.ended(r.appendOpen(l.filling.lines), r.Skipped)
}

// ended ends a line that was appended to the block. The caller holds mu.
func (l *Log) ended(lines []byte, skipped int64) {
	b := l.filling
	b.lines = appendEnd(lines, skipped)
	if b.records++; b.full() {
		l.next()
		l.Outbox.Add(b)
	}
}

// next begins another block. The caller holds mu.
func (l *Log) next() {
	if n := len(l.free); n > 0 {
		l.filling, l.free = l.free[n-1], l.free[:n-1]
	} else {
		l.filling = new(block)
	}
}

// cut adds the last refused calls that were skipped, begins to count refused calls again, and ends the block that is filled.
func (l *Log) cut() []*block {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range l.refusals {
		if who.skipped > 0 {
			l.ended(append(l.filling.lines, who.last...), who.skipped-1)
		}
	}
	clear(l.refusals)
	b := l.filling
	if b.records == 0 {
		return nil
	}
	l.next()
	return []*block{b}
}

// lost gives a block that Redis does not get to the history.
func (l *Log) lost(ctx context.Context, b *block, err error) {
	l.dropped.Add(int64(b.records))
	if !errors.Is(err, outbox.ErrFull) {
		l.log.LogAttrs(ctx, slog.LevelError, "redis refuses calls of the log", slog.Int("calls", b.records), slog.Any("error", err))
	}
	l.pass(ctx, b, "")
}

// pass gives a block's lines to the history, with its id in Redis, and keeps its memory for later.
func (l *Log) pass(_ context.Context, b *block, id string) {
	if l.history != nil {
		l.history(b.lines, id)
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.free) < freeMost {
		b.lines, b.records = b.lines[:0], 0
		l.free = append(l.free, b)
	}
}

// Close writes what waits and stops. The error says what could not be written: only the history gets it.
func (l *Log) Close(ctx context.Context) error {
	err := l.Outbox.Close(ctx)
	for _, b := range l.Rest() {
		l.pass(ctx, b, "")
	}
	return err
}

// Dropped counts the records that were lost, because too many waited or because Redis refuses them.
func (l *Log) Dropped() int64 { return l.dropped.Load() }
