// Package outbox sends batches to Redis, each of which Redis applies once. It does not interpret batches.
package outbox

import (
	"cmp"
	"context"
	"crypto/rand"
	"errors"
	"log/slog"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// prelude begins every script. It returns the answer of the last batch if the batch was applied before. The script must call applied once,
// with its answer, a text: before its first other write, or after all of them.
//
//	KEYS  1: the sequence, "<number of the last batch> <its answer>"
//	ARGV  1: the batch's number
const prelude = `
local last, before = string.match(redis.call('GET', KEYS[1]) or '', '^(%d+) ?(.*)$')
if tonumber(last or 0) >= tonumber(ARGV[1]) then return before end
local function applied(answer)
	redis.call('SET', KEYS[1], ARGV[1] .. ' ' .. answer, 'EX', 604800)
	return answer
end
`

// refusedMost is the number of tries for a batch that Redis refuses as a whole, one with each flush.
const refusedMost = 10

// Options configure an outbox whose batches are of type B. Functions are called by one goroutine at a time, except Cut.
type Options[B any] struct {
	Name   string        // names the sequence: <Name>-seq:<process>
	Script string        // applies a batch: it begins with prelude; its own keys and arguments are KEYS[2] and ARGV[2] and those after them
	Part   string        // what waits while Redis is unavailable, for the log
	Every  time.Duration // between flushes
	Most   int           // waiting batches, without those that are added during a flush; 0: Cut bounds them
	Log    *slog.Logger  // nil: silent
	// Cut returns what was collected since its last call, in batches. It is called at each flush that starts without waiting batches.
	Cut func() []B
	// Encode returns the script's own keys and arguments.
	Encode func(b B) (keys []string, args []any)
	// Applied receives a batch that Redis has applied, and the script's answer. nil: ignored.
	Applied func(ctx context.Context, b B, answer string)
	// Lost receives a batch that is not sent again: Redis refuses it, or too many wait (ErrFull).
	Lost func(ctx context.Context, b B, err error)
}

// ErrFull reports that more batches waited than Options.Most.
var ErrFull = errors.New("too many batches wait for redis")

// Outbox sends batches in order until Close. A batch whose answer was lost is sent again under the same number, so that Redis applies it
// once. While Redis is unavailable, batches wait in memory; a killed process loses them. It is safe for concurrent use.
type Outbox[B any] struct {
	client redis.UniversalClient
	opts   Options[B]
	script *redis.Script
	key    string // of the sequence
	out    storage.Outage
	loop   *storage.Loop

	mu      sync.Mutex
	waiting []B
	sending sync.Mutex // held during a flush
	current *B         // nil: none is being sent
	number  int64      // of current
	refused int        // how often Redis refused current

	failures atomic.Int64
}

// New starts an outbox that flushes every Options.Every and after each Add. The caller closes the client.
func New[B any](client redis.UniversalClient, opts Options[B]) *Outbox[B] {
	o := &Outbox[B]{
		client: client, opts: opts, script: redis.NewScript(prelude + opts.Script),
		key: storage.Prefix + opts.Name + "-seq:" + rand.Text()[:12], loop: storage.NewLoop(),
		out: storage.Outage{Log: cmp.Or(opts.Log, slog.New(slog.DiscardHandler)), What: opts.Part},
	}
	o.loop.Start(opts.Every, func(ctx context.Context, ticked bool) {
		err := o.flush(ctx, ticked)
		if err != nil && !errors.Is(err, storage.ErrUnavailable) && ctx.Err() == nil {
			o.out.Log.LogAttrs(ctx, slog.LevelWarn, "redis refuses a batch, it is sent again", slog.String("part", opts.Name),
				slog.Any("error", err))
		}
	})
	return o
}

// Add appends a batch and triggers a flush. It never waits for Redis.
func (o *Outbox[B]) Add(b B) {
	o.mu.Lock()
	o.waiting = append(o.waiting, b)
	o.mu.Unlock()
	o.loop.Wake()
}

// Flush sends the waiting batches and those of Options.Cut. What was not applied is sent again, unless lost.
func (o *Outbox[B]) Flush(ctx context.Context) error { return o.flush(ctx, true) }

// Close flushes a last time and stops. Its error means that the batches that Rest returns are lost.
func (o *Outbox[B]) Close(ctx context.Context) error {
	o.loop.Stop()
	return o.Flush(ctx)
}

// Rest removes and returns the batches that were, as far as is known, not applied.
func (o *Outbox[B]) Rest() (rest []B) {
	o.sending.Lock()
	defer o.sending.Unlock()
	for b := o.next(); b != nil; b = o.next() {
		rest, o.current = append(rest, *b), nil
	}
	return rest
}

// Away reports whether Redis did not answer last time.
func (o *Outbox[B]) Away() bool { return o.out.Away() }

// Failures returns the number of failed tries.
func (o *Outbox[B]) Failures() int64 { return o.failures.Load() }

func (o *Outbox[B]) flush(ctx context.Context, cut bool) error {
	o.sending.Lock()
	defer o.sending.Unlock()
	waited := o.next() != nil
	if cut && !waited {
		o.cut()
	}
	err := o.sendAll(ctx)
	if err == nil && cut && waited {
		o.cut()
		err = o.sendAll(ctx)
	}
	return err
}

func (o *Outbox[B]) cut() {
	batches := o.opts.Cut()
	o.mu.Lock()
	defer o.mu.Unlock()
	o.waiting = append(o.waiting, batches...)
}

func (o *Outbox[B]) sendAll(ctx context.Context) error {
	for b := o.next(); b != nil; b = o.next() {
		if err := o.send(ctx, *b); err != nil {
			return err
		}
		o.current = nil
	}
	return nil
}

// next returns the batch to send, nil for none. It stays the same until current is set to nil.
func (o *Outbox[B]) next() *B {
	o.mu.Lock()
	defer o.mu.Unlock()
	if o.current == nil && len(o.waiting) > 0 {
		b := o.waiting[0]
		o.waiting = slices.Delete(o.waiting, 0, 1)
		o.current, o.refused = &b, 0
		o.number++
	}
	return o.current
}

func (o *Outbox[B]) send(ctx context.Context, b B) error {
	o.bound(ctx)
	keys, args := o.opts.Encode(b)
	answer, err := o.script.Run(ctx, o.client, append([]string{o.key}, keys...), append([]any{o.number}, args...)...).Text()
	err = o.out.Note(ctx, time.Now(), storage.RedisError("write "+o.opts.Name, err))
	if err == nil {
		if o.opts.Applied != nil {
			o.opts.Applied(ctx, b, answer)
		}
		return nil
	}
	o.failures.Add(1)
	if errors.Is(err, storage.ErrUnavailable) || ctx.Err() != nil {
		return err
	}
	if o.refused++; o.refused < refusedMost {
		return err
	}
	o.opts.Lost(ctx, b, err)
	return nil
}

// bound drops the oldest of too many waiting batches. It never drops the current one, which may have been applied.
func (o *Outbox[B]) bound(ctx context.Context) {
	if o.opts.Most == 0 {
		return
	}
	o.mu.Lock()
	n := max(0, len(o.waiting)-o.opts.Most)
	lost := slices.Clone(o.waiting[:n])
	o.waiting = slices.Delete(o.waiting, 0, n)
	o.mu.Unlock()
	for _, b := range lost {
		o.opts.Lost(ctx, b, ErrFull)
	}
}
