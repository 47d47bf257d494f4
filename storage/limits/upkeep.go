package limits

import (
	"context"
	"log/slog"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
)

func (l *Limiter) wakeUpkeep() {
	if l.timed.Swap(true) {
		return
	}
	select {
	case l.wake <- struct{}{}:
	default:
	}
}

// upkeep sends settlements that no call took along, and confirms calls in flight, until Close.
func (l *Limiter) upkeep(ctx context.Context) {
	defer close(l.done)
	renew := time.NewTicker(l.lease / 3)
	defer renew.Stop()
	wait := time.NewTimer(settleAfter)
	defer wait.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-l.wake:
			wait.Reset(settleAfter)
		case <-wait.C:
			l.timed.Store(false)
			if again := l.flush(ctx); again > 0 {
				wait.Reset(again)
			}
		case <-renew.C:
			if l.memory.renew() && !l.out.Resting(time.Now()) {
				l.confirm(ctx)
			}
			wait.Reset(settleAfter)
		}
	}
}

// confirm says that the process still works on what it has reserved.
func (l *Limiter) confirm(ctx context.Context) {
	if err := l.client.Set(ctx, ledger.ProcessKey(l.process), 1, l.lease).Err(); err != nil {
		l.log.LogAttrs(ctx, slog.LevelDebug, "reservations are not confirmed", slog.Any("error", err))
	}
}

// flush sends settlements and says after what time to come again; 0: when there is something new.
func (l *Limiter) flush(ctx context.Context) time.Duration {
	waiting, since := l.memory.unsettled()
	if waiting == 0 {
		return 0
	}
	if young := settleAfter - time.Since(since); young > 0 { // older ones went with a call
		l.timed.Store(true)
		return young
	}
	if !l.out.Resting(time.Now()) {
		l.admissions.Do(ctx, &admission{settle: true}, make(chan bool, 1))
	}
	waiting, _ = l.memory.unsettled()
	switch {
	case waiting == 0:
		return 0
	case l.out.Resting(time.Now()):
		return storage.Pause
	}
	return time.Millisecond
}

// Close sends what was released and is not yet sent, and stops the upkeep. No call may be admitted after it; calls
// still in flight lose their places a minute later. The error is storage.ErrUnavailable when Redis did not take it all.
func (l *Limiter) Close(ctx context.Context) error {
	l.stop()
	<-l.done
	for {
		if waiting, _ := l.memory.unsettled(); waiting == 0 {
			return nil
		}
		if err := ctx.Err(); err != nil {
			return err
		}
		l.admissions.Do(ctx, &admission{settle: true}, make(chan bool, 1))
		if l.out.Resting(time.Now()) {
			return storage.RedisError("release calls in flight", storage.ErrUnavailable)
		}
	}
}
