package limits_test

import (
	"errors"
	"fmt"
	"sync"
	"sync/atomic"
	"testing"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
)

// BenchmarkAdmit has 64 callers admit and release. "together" shares round trips as the gateway does; "apart" gives
// every caller Limits of its own on the same client, so that each call is one script call of its own. cpu-µs/op is
// this process's CPU time: measure with a real Redis (MODELRELAY_TEST_REDIS), the embedded one's is in it.
func BenchmarkAdmit(b *testing.B) {
	for _, kind := range []struct {
		name  string
		token func(caller int) storage.Allowance
	}{
		{"one token", func(int) storage.Allowance {
			return storage.Allowance{Token: "a", RequestsPerMinute: 1 << 30}
		}},
		{"64 tokens", func(c int) storage.Allowance {
			return storage.Allowance{Token: fmt.Sprint(c), RequestsPerMinute: 1 << 30}
		}},
		{"one token with all limits and a budget", func(int) storage.Allowance {
			return storage.Allowance{
				Token: "a", Budget: storage.Billionths(1 << 20), RequestsPerMinute: 1 << 30, TokensPerMinute: 1 << 30,
				Concurrency: 1 << 20,
			}
		}},
		{"one token with all limits", func(int) storage.Allowance {
			return storage.Allowance{Token: "a", RequestsPerMinute: 1 << 30, TokensPerMinute: 1 << 30, Concurrency: 1 << 20}
		}},
	} {
		b.Run(kind.name, func(b *testing.B) {
			client := storagetest.Redis(b)
			b.Run("together", func(b *testing.B) {
				shared := newLimits(b, client, nil)
				benchmarkAdmit(b, client, 64, kind.token, func(int) *limits.Limiter { return shared })
			})
			b.Run("apart", func(b *testing.B) {
				limiter := make([]*limits.Limiter, 64)
				for i := range limiter {
					limiter[i] = newLimits(b, client, nil)
				}
				benchmarkAdmit(b, client, 64, kind.token, func(c int) *limits.Limiter { return limiter[c] })
			})
			b.Run("alone", func(b *testing.B) {
				limiter := newLimits(b, client, nil)
				benchmarkAdmit(b, client, 1, kind.token, func(int) *limits.Limiter { return limiter })
			})
		})
	}
	b.Run("bare round trip", func(b *testing.B) {
		client := storagetest.Redis(b)
		for b.Loop() {
			if err := client.Get(b.Context(), "k").Err(); !errors.Is(err, redis.Nil) {
				b.Fatal(err)
			}
		}
	})
}

func benchmarkAdmit(
	b *testing.B, client redis.UniversalClient, callers int, token func(int) storage.Allowance, limiter func(int) *limits.Limiter,
) {
	b.Helper()
	ctx := b.Context()
	usage := storagetest.Usage(b, client)
	admit(b, limiter(0), token(0), one).Release(0) // loads the script
	var left atomic.Int64
	left.Store(int64(b.N))
	b.ReportAllocs()
	before := storagetest.CPU(b)
	b.ResetTimer()
	var wg sync.WaitGroup
	for c := range callers {
		wg.Go(func() {
			token, limiter := token(c), limiter(c)
			for left.Add(-1) >= 0 {
				grant, err := limiter.Admit(ctx, token, limits.Cost{Requests: 1, Tokens: 10, Money: 1000, Model: "gpt-4o"})
				if err != nil || !grant.Allowed {
					b.Errorf("%+v, %v", grant, err)
					return
				}
				if grant.Settle(20, 900); grant.Reservation() != "" {
					usage.Record(ledger.Entry{Token: token.Token, Model: "gpt-4o", Requests: 1, Cost: 900, Reservation: grant.Reservation()})
				}
			}
		})
	}
	wg.Wait()
	b.StopTimer()
	b.ReportMetric(float64((storagetest.CPU(b)-before).Nanoseconds())/1000/float64(b.N), "cpu-µs/op")
}
