package limits

import (
	"context"
	"log/slog"
	"time"

	"modelrelay/storage"
)

// release gives back what a call held. Its reservation becomes the cost.
func (l *Limiter) release(h *held, delta int, cost int64) {
	if h.lease == "" && delta == 0 {
		return
	}
	if h.lease != "" {
		l.mu.Lock()
		calls := l.running[h.token]
		delete(calls, h.lease)
		if len(calls) == 0 {
			delete(l.running, h.token)
		}
		l.mu.Unlock()
	}
	l.correct(h, settlement{
		token: h.token, lease: h.lease, second: h.second, delta: delta, cost: cost, money: h.token.Budget > 0 && cost != h.reserved,
	})
}

// correct counts the tokens of a settlement where its call was counted.
func (l *Limiter) correct(h *held, s settlement) {
	l.mu.Lock()
	if h.local {
		if w := l.local[h.token.Token]; w != nil {
			w.correct(time.Now().Unix(), s.second, s.delta)
		}
		s.delta = 0
		if s.money {
			l.used[h.token.Token] += max(0, s.cost) - h.reserved
			s.money = false
		}
	}
	wake := false
	if (s.money || s.delta != 0 || s.lease != "" && s.token.Concurrency > 0) && len(l.settles) < settleKept {
		l.settles = append(l.settles, s)
		wake = len(l.settles) == 1
	}
	l.mu.Unlock()
	if wake {
		l.wakeUpkeep()
	}
}

func (l *Limiter) wakeUpkeep() {
	select {
	case l.settle <- struct{}{}:
	default:
	}
}

// start notes a call in flight, or one with a reservation. l.mu is held.
func (l *Limiter) start(token storage.Allowance, lease string) {
	calls := l.running[token]
	if calls == nil {
		calls = make(map[string]struct{})
		l.running[token] = calls
	}
	calls[lease] = struct{}{}
}

// upkeep sends settlements that no call took along, and confirms calls in flight, until Close.
func (l *Limiter) upkeep() {
	defer close(l.done)
	ctx := context.Background() //nolint:forbidigo // the goroutine's own: it ends with Close, each round trip by the client's timeouts
	renew := time.NewTicker(l.lease / 3)
	defer renew.Stop()
	wait := time.NewTimer(settleAfter)
	defer wait.Stop()
	for {
		select {
		case <-l.stop:
			return
		case <-l.settle:
			wait.Reset(settleAfter)
		case <-wait.C:
			if again := l.flush(ctx); again > 0 {
				wait.Reset(again)
			}
		case <-renew.C:
			l.mu.Lock()
			reserved := false
			for token, calls := range l.running {
				reserved = reserved || token.Budget > 0
				for lease := range calls {
					if token.Concurrency == 0 {
						break
					}
					if len(l.settles) < settleKept {
						l.settles = append(l.settles, settlement{token: token, lease: lease, renew: true})
					}
				}
			}
			l.mu.Unlock()
			if reserved && !l.out.Resting(time.Now()) {
				l.confirm(ctx)
			}
			wait.Reset(settleAfter)
		}
	}
}

// confirm says that the process still works on what it has reserved.
func (l *Limiter) confirm(ctx context.Context) {
	err := l.client.Set(ctx, l.alive, 1, l.lease).Err()
	if err != nil {
		l.log.LogAttrs(ctx, slog.LevelDebug, "reservations are not confirmed", slog.Any("error", err))
	}
}

// flush sends settlements and says after what time to come again; 0: when there is something new.
func (l *Limiter) flush(ctx context.Context) time.Duration {
	if l.unsettled() == 0 {
		return 0
	}
	if !l.out.Resting(time.Now()) {
		l.admissions.Do(ctx, &admission{settle: true}, make(chan bool, 1))
	}
	switch {
	case l.unsettled() == 0:
		return 0
	case l.out.Resting(time.Now()):
		return storage.Pause
	}
	return time.Millisecond
}

func (l *Limiter) unsettled() int {
	l.mu.Lock()
	defer l.mu.Unlock()
	return len(l.settles)
}

// Close sends what was released and is not yet sent, and stops the upkeep. No call may be admitted after it; calls
// still in flight lose their places a minute later. The error is storage.ErrUnavailable when Redis did not take it all.
func (l *Limiter) Close(ctx context.Context) error {
	l.stopOnce.Do(func() { close(l.stop) })
	<-l.done
	for l.unsettled() > 0 {
		if err := ctx.Err(); err != nil {
			return err
		}
		l.admissions.Do(ctx, &admission{settle: true}, make(chan bool, 1))
		if l.out.Resting(time.Now()) {
			return storage.RedisError("release calls in flight", storage.ErrUnavailable)
		}
	}
	return nil
}
