package calllog

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// The keys:
//
//	calls                stream  field "c": one call as a line of JSON, the newest last
//	calls-seq:<process>  string  the number and place of one process's last batch, so that none is written twice
const streamKey = storage.Prefix + "calls"

func sequenceKey(process string) string { return storage.Prefix + "calls-seq:" + process }

const (
	// blockRecords are written in one step, which holds Redis for about a millisecond.
	blockRecords = 250
	// waitingMost is how many records wait for a Redis that is away; then the oldest go.
	waitingMost = 10_000
	// refusedMost is how many refused calls that no upstream saw each token, and nobody's as one, may have in the log in a
	// second, in each process: who calls in a loop must not push the calls of others out of it.
	refusedMost = 10
	// refusersMost is how many tokens are told apart for that; others count as nobody's.
	refusersMost = 1000
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
	client  redis.UniversalClient
	log     *slog.Logger
	out     storage.Outage
	script  *redis.Script
	recent  int
	history func(lines []byte, written int64)
	process string

	mu       sync.Mutex
	filling  *block
	full     []*block // the oldest first
	lost     []*block // that the history does not have, where there is one; few
	free     []*block
	refusers map[string]*refuser

	sending sync.Mutex // held while flushing
	unsure  *block     // whose answer did not come; it is sent again
	number  int64

	dropped atomic.Int64
	wake    chan struct{} // a block is full
	stop    func()
	done    chan struct{}
}

// block is records on their way, as lines.
type block struct {
	lines   []byte
	ends    []int // of each line, its line feed included
	refused int   // times
}

// refuser is a token whose calls were refused in this second.
type refuser struct {
	kept    int
	skipped int64
	last    []byte // the last one skipped, without its end
}

// New starts a log. The client stays the caller's.
func New(client redis.UniversalClient, opts *Options) *Log {
	if opts == nil {
		opts = &Options{}
	}
	l := &Log{
		client: client, log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)), script: redis.NewScript(addScript),
		recent: cmp.Or(opts.Recent, DefaultRecent), history: opts.History, process: rand.Text()[:12],
		filling: newBlock(), refusers: make(map[string]*refuser), wake: make(chan struct{}, 1), done: make(chan struct{}),
	}
	l.out = storage.Outage{Log: l.log, What: "calls: the newest wait until it is back"}
	ctx, cancel := context.WithCancel(context.Background()) //nolint:forbidigo // the goroutine's own, ended by Close
	l.stop = cancel
	go l.run(ctx, cmp.Or(opts.FlushEvery, flushEvery))
	return l
}

func newBlock() *block { return &block{ends: make([]int, 0, blockRecords)} }

// Add takes a record, of which it keeps nothing but what it writes. It never waits for Redis.
func (l *Log) Add(r *Record) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if r.Failed() && len(r.Tries) == 0 && l.skips(r) {
		return
	}
	l.filling.lines = end(r.append(l.filling.lines), r.Skipped)
	l.ended()
}

// ended notes the end of a line.
func (l *Log) ended() {
	b := l.filling
	b.lines = append(b.lines, '\n')
	if b.ends = append(b.ends, len(b.lines)); len(b.ends) == blockRecords {
		l.next()
		select {
		case l.wake <- struct{}{}:
		default:
		}
	}
}

// next begins another block. Of too many that wait the oldest goes.
func (l *Log) next() {
	l.full = append(l.full, l.filling)
	if len(l.full) > waitingMost/blockRecords {
		oldest := l.full[0]
		l.full = append(l.full[:0], l.full[1:]...)
		l.dropped.Add(int64(len(oldest.ends)))
		if l.history != nil && len(l.lost) < lostMost {
			l.lost = append(l.lost, oldest)
		} else {
			l.recycle(oldest)
		}
	}
	if n := len(l.free); n > 0 {
		l.filling, l.free = l.free[n-1], l.free[:n-1]
	} else {
		l.filling = newBlock()
	}
}

// lostMost is how many blocks that Redis will not have wait for the history, which looks for them each second.
const lostMost = waitingMost / blockRecords

// freeMost is how many blocks are kept for later.
const freeMost = 4

func (l *Log) recycle(b *block) {
	if len(l.free) < freeMost {
		b.lines, b.ends, b.refused = b.lines[:0], b.ends[:0], 0
		l.free = append(l.free, b)
	}
}

// skips tells whether a refused call has no record of its own.
func (l *Log) skips(r *Record) bool {
	token := r.Token
	who, known := l.refusers[token]
	if !known && len(l.refusers) >= refusersMost {
		token = ""
		who, known = l.refusers[token]
	}
	if !known {
		who = new(refuser)
		l.refusers[token] = who
	}
	if who.kept < refusedMost {
		who.kept++
		return false
	}
	who.skipped++
	who.last = r.append(who.last[:0])
	return true
}

// nextSecond writes what stands for the refused calls that were skipped, and begins to count again.
func (l *Log) nextSecond() {
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, who := range l.refusers {
		if who.skipped > 0 {
			l.filling.lines = end(append(l.filling.lines, who.last...), who.skipped-1)
			l.ended()
		}
	}
	clear(l.refusers)
}

func (l *Log) run(ctx context.Context, every time.Duration) {
	defer close(l.done)
	tick := time.NewTicker(every)
	defer tick.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			_ = l.send(ctx, false) // what failed is sent again, and stands in the log
		case <-tick.C:
			l.nextSecond()
			_ = l.send(ctx, true)
		}
	}
}

// Close writes what waits and stops. The error says what could not be written; it is lost then.
func (l *Log) Close(ctx context.Context) error {
	l.stop()
	<-l.done
	err := l.Flush(ctx)
	if err != nil && l.history != nil {
		l.sending.Lock()
		defer l.sending.Unlock()
		for b := l.take(true); b != nil; b = l.take(true) {
			l.history(b.lines, 0)
			l.unsure = nil
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
		written, err := l.write(ctx, b)
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
			l.history(b.lines, written)
		}
		l.unsure = nil
		l.mu.Lock()
		l.recycle(b)
		l.mu.Unlock()
	}
}

// tellLost gives the history what Redis will not have.
func (l *Log) tellLost() {
	l.mu.Lock()
	lost := l.lost
	l.lost = nil
	l.mu.Unlock()
	for _, b := range lost {
		l.history(b.lines, 0)
	}
}

// take returns the block that is sent next, nil for none. It stays the next one until it was sent.
func (l *Log) take(all bool) *block {
	if l.unsure != nil {
		return l.unsure
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.full) == 0 && all && len(l.filling.ends) > 0 {
		l.next()
	}
	if len(l.full) == 0 {
		return nil
	}
	l.unsure = l.full[0]
	l.full = append(l.full[:0], l.full[1:]...)
	l.number++
	return l.unsure
}

// addScript adds a batch unless its number was added before. Its answer is the last place of the batch, whose calls all have one
// time: that is how the history knows what Redis still has.
//
//	KEYS  the stream, the sequence
//	ARGV  number, how many calls are kept, then the lines
const addScript = `
local number, place = string.match(redis.call('GET', KEYS[2]) or '0', '^(%d+) ?(.*)$')
if tonumber(number or 0) >= tonumber(ARGV[1]) then return place end
local id = '*'
for i = 3, #ARGV do
  place = redis.call('XADD', KEYS[1], 'MAXLEN', '~', ARGV[2], id, 'c', ARGV[i])
  local time, of = string.match(place, '^(%d+)-(%d+)$')
  id = time .. '-' .. string.format('%d', of + 1)
end
redis.call('SET', KEYS[2], ARGV[1] .. ' ' .. place, 'EX', 86400)
return place
`

// write gives a block to Redis. written is when it took it, in ms.
func (l *Log) write(ctx context.Context, b *block) (written int64, err error) {
	args := make([]any, 0, len(b.ends)+2)
	args = append(args, strconv.FormatInt(l.number, 10), strconv.Itoa(l.recent))
	from := 0
	for _, at := range b.ends {
		args = append(args, b.lines[from:at-1])
		from = at
	}
	place, err := l.script.Run(ctx, l.client, []string{streamKey, sequenceKey(l.process)}, args...).Text()
	if err != nil {
		return 0, storage.RedisError("write calls", err)
	}
	if at, ok := writtenAt(place); ok {
		written = at.UnixMilli()
	}
	return written, nil
}
