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

// upkeep sends settlements that no admission took along, and renews leases and the process's sign of life, until Close.
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
			if l.memory.renew() && !l.out.CoolingDown(time.Now()) {
				l.confirm(ctx)
			}
			wait.Reset(settleAfter)
		}
	}
}

// confirm renews the process's sign of life, which its reservations depend on.
func (l *Limiter) confirm(ctx context.Context) {
	if err := l.client.Set(ctx, ledger.ProcessKey(l.process), 1, l.lease).Err(); err != nil {
		l.log.LogAttrs(ctx, slog.LevelDebug, "reservations are not confirmed", slog.Any("error", err))
	}
}

// flush sends settlements and returns the wait until the next flush; 0: until there are new ones.
func (l *Limiter) flush(ctx context.Context) time.Duration {
	waiting, since := l.memory.unsettled()
	if waiting == 0 {
		return 0
	}
	if young := settleAfter - time.Since(since); young > 0 { // an admission took the older ones along
		l.timed.Store(true)
		return young
	}
	if !l.out.CoolingDown(time.Now()) {
		l.admissions.Do(ctx, &admission{settle: true}, make(chan bool, 1))
	}
	waiting, _ = l.memory.unsettled()
	switch {
	case waiting == 0:
		return 0
	case l.out.CoolingDown(time.Now()):
		return storage.Pause
	}
	return time.Millisecond
}

// Close sends the waiting settlements and stops the upkeep. No call may be admitted after it; running calls lose their leases a minute
// later. It returns storage.ErrUnavailable if Redis did not accept all settlements.
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
		if l.out.CoolingDown(time.Now()) {
			return storage.RedisError("release calls in flight", storage.ErrUnavailable)
		}
	}
}
