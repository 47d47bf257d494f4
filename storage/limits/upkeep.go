package limits

import (
	"context"
	"log/slog"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
)

// upkeep sends settlements that no admission took along. At a tick it renews leases and the process's sign of life.
func (l *Limiter) upkeep(ctx context.Context, ticked bool) {
	now := time.Now()
	if ticked && l.memory.renew() && !l.out.CoolingDown(now) {
		l.confirm(ctx)
	}
	waiting, since := l.memory.unsettled()
	if waiting == 0 {
		return
	}
	wait := settleAfter - now.Sub(since)
	if l.out.CoolingDown(now) {
		wait = storage.Pause
	}
	if wait > 0 {
		_ = storage.Sleep(ctx, wait) // its error ends the loop
	} else {
		l.admissions.Do(ctx, &admission{settle: true}, make(chan bool, 1))
	}
	l.loop.Wake() // for what still waits
}

// confirm renews the process's sign of life, which its reservations depend on.
func (l *Limiter) confirm(ctx context.Context) {
	if err := l.client.Set(ctx, ledger.ProcessKey(l.process), 1, l.lease).Err(); err != nil {
		l.log.LogAttrs(ctx, slog.LevelDebug, "reservations are not confirmed", slog.Any("error", err))
	}
}

// Close sends the waiting settlements and stops the upkeep. No call may be admitted after it; running calls lose their leases a minute
// later. It returns storage.ErrUnavailable if Redis did not accept all settlements.
func (l *Limiter) Close(ctx context.Context) error {
	l.loop.Stop()
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
