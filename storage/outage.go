package storage

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// Outage remembers that Redis is away, so that callers do not each wait for a timeout: after a failure no caller
// asks for a short pause, then one caller tries, and the others follow when it succeeded. It logs once when Redis
// goes and once when it is back. The zero value needs its log set and is ready to use.
type Outage struct {
	Log  *slog.Logger
	What string // what continues without Redis, for the log

	since atomic.Int64 // unix nanoseconds of the first failure, 0: Redis answers
	next  atomic.Int64 // unix nanoseconds from which the next caller may try
}

// Pause is how long after a failure no caller asks again. It must stay below a second, within which a revocation is seen.
const Pause = 300 * time.Millisecond

// Resting reports that asking is pointless at this moment.
func (o *Outage) Resting(now time.Time) bool {
	return o.since.Load() != 0 && now.UnixNano() < o.next.Load()
}

// Away reports whether Redis did not answer last time. It asks nothing.
func (o *Outage) Away() bool { return o.since.Load() != 0 }

// Try reports whether this caller should ask Redis. A caller that gets true must pass the outcome to Note.
func (o *Outage) Try(now time.Time) bool {
	if o.since.Load() == 0 {
		return true
	}
	next := o.next.Load()
	// The caller that asks moves the time on, so that the others wait while it waits for its answer.
	return now.UnixNano() >= next && o.next.CompareAndSwap(next, now.Add(time.Second).UnixNano())
}

// Note takes the outcome of a call and returns err as it came. Only ErrUnavailable counts as an outage, and a
// cancellation says nothing either way.
func (o *Outage) Note(ctx context.Context, now time.Time, err error) error {
	switch {
	case errors.Is(err, ErrUnavailable):
		o.next.Store(now.Add(Pause).UnixNano())
		if o.since.CompareAndSwap(0, now.UnixNano()) {
			o.Log.LogAttrs(ctx, slog.LevelWarn, "redis is away", slog.String("part", o.What), slog.Any("error", err))
		}
	case errors.Is(err, context.Canceled):
	default:
		if since := o.since.Load(); since != 0 && o.since.CompareAndSwap(since, 0) {
			o.Log.LogAttrs(ctx, slog.LevelInfo, "redis is back",
				slog.String("part", o.What), slog.String("away", now.Sub(time.Unix(0, since)).Round(time.Millisecond).String()))
		}
	}
	return err
}
