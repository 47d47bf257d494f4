package calllog

import (
	"cmp"
	"context"
	"errors"
	"log/slog"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

const (
	// sendTries is how often a block is sent that Redis refuses as a whole.
	sendTries = 10
	// flushEvery is how long a record waits for company.
	flushEvery = time.Second
)

// Options may be nil.
type Options struct {
	// Recent is how many calls the log keeps, about; default DefaultRecent.
	Recent int
	// FlushEvery is how long a record waits for company; default one second.
	FlushEvery time.Duration
	// History takes every record's line once, in blocks of lines that each end with a line feed, one block at a time; the bytes are
	// the log's again when it returns. written is when Redis took them, by its clock and in ms; 0: it did not, and will not.
	// nil: there is none.
	History func(lines []byte, written int64)
	Log     *slog.Logger // nil: silent
}

// DefaultRecent is how many calls the log keeps where nobody says otherwise.
const DefaultRecent = 100_000

// Log writes the log until Close. Safe for concurrent use.
//
// A record is written within about a second. While Redis is away records wait in memory; a process that is killed loses
// those that wait.
type Log struct {
	log     *slog.Logger
	out     storage.Outage
	history func(lines []byte, written int64)

	mu       sync.Mutex
	waiting  queue
	refusals refusals

	sending sync.Mutex // held while flushing
	writer  writer
	lines   []byte // of a block for the history

	dropped atomic.Int64
	loop    *storage.Loop // woken when a block is full
}

// New starts a log. The client stays the caller's.
func New(client redis.UniversalClient, opts *Options) *Log {
	if opts == nil {
		opts = &Options{}
	}
	l := &Log{
		log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)), history: opts.History,
		waiting: queue{filling: newBlock(), keepsLost: opts.History != nil}, refusals: make(refusals),
		writer: newWriter(client, cmp.Or(opts.Recent, DefaultRecent)), loop: storage.NewLoop(),
	}
	l.out = storage.Outage{Log: l.log, What: "calls: the newest wait until it is back"}
	l.loop.Start(cmp.Or(opts.FlushEvery, flushEvery), func(ctx context.Context, ticked bool) {
		if ticked {
			l.nextSecond()
		}
		_ = l.send(ctx, ticked) // what failed is sent again, and stands in the log
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
	b := l.waiting.filling
	b.packed = packNumber(r.pack(b.packed), packSkipped, r.Skipped)
	l.ended()
}

// ended notes the end of a record.
func (l *Log) ended() {
	dropped, full := l.waiting.ended()
	l.dropped.Add(int64(dropped))
	if full {
		l.loop.Wake()
	}
}

// nextSecond writes what stands for the refused calls that were skipped, and begins to count again.
func (l *Log) nextSecond() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range l.refusals {
		if who.skipped > 0 {
			b := l.waiting.filling
			b.packed = packNumber(append(b.packed, who.last...), packSkipped, who.skipped-1)
			l.ended()
		}
	}
	clear(l.refusals)
}

// Close writes what waits and stops. The error says what could not be written; it is lost then.
func (l *Log) Close(ctx context.Context) error {
	l.loop.Stop()
	err := l.Flush(ctx)
	if err != nil && l.history != nil {
		l.sending.Lock()
		defer l.sending.Unlock()
		for b := l.take(true); b != nil; b = l.take(true) {
			l.tell(b, 0)
			l.writer.unsure = nil
		}
	}
	return err
}

// Flush writes what waits.
func (l *Log) Flush(ctx context.Context) error {
	l.nextSecond()
	return l.send(ctx, true)
}

// Away tells whether Redis did not answer last time.
func (l *Log) Away() bool { return l.out.Away() }

// Dropped counts the records that were lost, because too many waited or because Redis refuses them.
func (l *Log) Dropped() int64 { return l.dropped.Load() }

// send writes the blocks that are full, and with all what is in the one that is not.
func (l *Log) send(ctx context.Context, all bool) error {
	l.sending.Lock()
	defer l.sending.Unlock()
	l.tellLost()
	for {
		b := l.take(all)
		if b == nil {
			return nil
		}
		written, err := l.writer.write(ctx, b)
		err = l.out.Note(ctx, time.Now(), err)
		if err != nil && (errors.Is(err, storage.ErrUnavailable) || ctx.Err() != nil) {
			return err
		}
		if err != nil {
			if b.refused++; b.refused < sendTries {
				return err
			}
			l.dropped.Add(int64(len(b.ends)))
			l.log.LogAttrs(ctx, slog.LevelError, "redis refuses calls of the log", slog.Int("calls", len(b.ends)), slog.Any("error", err))
		}
		if l.history != nil {
			l.tell(b, written)
		}
		l.writer.unsure = nil
		l.mu.Lock()
		l.waiting.recycle(b)
		l.mu.Unlock()
	}
}

// tellLost gives the history what Redis will not have.
func (l *Log) tellLost() {
	l.mu.Lock()
	lost := l.waiting.lost
	l.waiting.lost = nil
	l.mu.Unlock()
	for _, b := range lost {
		l.tell(b, 0)
	}
}

// tell gives the history the lines of a block.
func (l *Log) tell(b *block, written int64) {
	l.lines = b.unpack(l.lines[:0])
	l.history(l.lines, written)
}

// take returns the block that is sent next, nil for none. It stays the next one until it was sent.
func (l *Log) take(all bool) *block {
	if l.writer.unsure != nil {
		return l.writer.unsure
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if b := l.waiting.take(all); b != nil {
		l.writer.unsure = b
		l.writer.number++
	}
	return l.writer.unsure
}
