package storage

import (
	"context"
	"errors"
	"log/slog"
	"sync/atomic"
	"time"
)

// Outage is a circuit for Redis, so that callers do not each wait for a timeout: after a failure, no caller sends a command for a Pause.
// Then one caller tries, and the others follow after its success. It logs the begin and the end of an outage once each. A value with a
// Log is ready to use.
type Outage struct {
	Log  *slog.Logger
	What string // the feature that continues without Redis, for the log

	since atomic.Int64 // unix nanoseconds of the first failure; 0: Redis answers
	next  atomic.Int64 // unix nanoseconds from which the next caller may try
}

// Pause is the cooldown after a failure. It must be below a second: processes see a revocation within a second.
const Pause = 300 * time.Millisecond

// CoolingDown reports whether Try would return false now.
func (o *Outage) CoolingDown(now time.Time) bool {
	return o.since.Load() != 0 && now.UnixNano() < o.next.Load()
}

// Away reports whether the last command failed. It sends none.
func (o *Outage) Away() bool { return o.since.Load() != 0 }

// Try reports whether this caller should send a command. A caller that gets true must pass the outcome to Note.
func (o *Outage) Try(now time.Time) bool {
	if o.since.Load() == 0 {
		return true
	}
	next := o.next.Load()
	// The other callers cool down while this one waits for its answer.
	return now.UnixNano() >= next && o.next.CompareAndSwap(next, now.Add(time.Second).UnixNano())
}

// Note records the outcome of a command and returns err unchanged. Only ErrUnavailable begins an outage. A cancellation changes nothing.
func (o *Outage) Note(ctx context.Context, now time.Time, err error) error {
	switch {
	case errors.Is(err, ErrUnavailable):
		o.next.Store(now.Add(Pause).UnixNano())
		if o.since.CompareAndSwap(0, now.UnixNano()) {
			o.Log.LogAttrs(ctx, slog.LevelWarn, "redis does not answer", slog.String("part", o.What), slog.Any("error", err))
		}
	case errors.Is(err, context.Canceled):
	default:
		if since := o.since.Load(); since != 0 && o.since.CompareAndSwap(since, 0) {
			o.Log.LogAttrs(ctx, slog.LevelInfo, "redis answers again",
				slog.String("part", o.What), slog.String("away", now.Sub(time.Unix(0, since)).Round(time.Millisecond).String()))
		}
	}
	return err
}
