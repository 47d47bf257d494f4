package storage_test

import (
	"context"
	"sync"
	"sync/atomic"
	"testing"

	"modelrelay/storage"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

// TestFailoverUnderLoad: calls go on while a primary is killed and another is promoted. The promoted one holds a state that the
// old one had a moment before: when all calls have ended, only those that were
// in flight then, or had just ended, can still hold money and places.
func TestFailoverUnderLoad(t *testing.T) {
	t.Parallel()
	group := storagetest.StartFailover(t)
	client := openFailover(t, group, nil)
	limiter := limits.New(client, nil)
	token := storage.Allowance{Token: "a", Concurrency: 1000, Budget: 1 << 40}
	var admitted, refused atomic.Int64
	ctx, stop := context.WithCancel(t.Context())
	var callers sync.WaitGroup
	const inFlight = 16
	for range inFlight {
		callers.Go(func() {
			for ctx.Err() == nil {
				grant, err := limiter.Admit(t.Context(), token, limits.Cost{Requests: 1, Money: 1}) //nolint:contextcheck // the end of the load cuts no call off
				if err != nil || !grant.Allowed {
					refused.Add(1)
					continue
				}
				admitted.Add(1)
				grant.Release(0)
			}
		})
	}
	testwait.Eventually(t, "load", storagetest.Patience, func() bool { return admitted.Load() > 1000 })
	group.KillPrimary(t)
	before := admitted.Load()
	testwait.Eventually(t, "the promoted primary", storagetest.Patience, func() bool { return storage.PingRedis(t.Context(), client) == nil })
	during := admitted.Load() - before
	testwait.Eventually(t, "load at the promoted primary", storagetest.Patience, func() bool { return admitted.Load() > before+during+1000 })
	testwait.Eventually(t, "the limits count in Redis again", storagetest.Patience, func() bool { return !limiter.Away() })
	stop()
	callers.Wait()
	if err := limiter.Close(context.WithoutCancel(t.Context())); err != nil {
		t.Error(err)
	}
	t.Logf("%d calls, %d of them without a primary", admitted.Load(), during)
	if refused.Load() > 0 || during == 0 {
		t.Errorf("%d calls were refused, %d admitted without a primary; want none refused", refused.Load(), during)
	}
	balance, held := storagetest.Balance(t, client, "a"), client.ZCard(t.Context(), "mr:leases:a").Val()
	t.Logf("of the calls at the kill %d hold money and %d places", balance.Reserved, held)
	if balance.Reserved > 2*inFlight || balance.Spent != 0 || held > 2*inFlight {
		t.Errorf("got %+v and %d places, want at most the %d calls in flight or just ended", balance, held, 2*inFlight)
	}
}
