package limits_test

import (
	"testing"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
)

// TestPlacesOfOneToken: calls that were admitted with their money and calls that were admitted before it take their places from the
// same limit, with Redis and without it.
func TestPlacesOfOneToken(t *testing.T) {
	t.Parallel()
	away := storagetest.NewServer(t)
	away.Leave()
	counted := storage.Allowance{Token: "one", Concurrency: 2}
	whole := storage.Allowance{Token: "one", Concurrency: 2, Budget: 1_000}
	for name, client := range map[string]redis.UniversalClient{"redis": storagetest.Redis(t), "without redis": away.Client(t)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			limiter := newLimits(t, client, nil)
			first := admit(t, limiter, counted, limits.Cost{Requests: 1})
			second := admit(t, limiter, whole, limits.Cost{Requests: 1, Money: 10})
			if !first.Allowed || !second.Allowed {
				t.Fatalf("two of two: got %+v and %+v", first, second)
			}
			for _, token := range []storage.Allowance{counted, whole} {
				if third := admit(t, limiter, token, limits.Cost{Requests: 1, Money: 10}); third.Allowed || !third.Busy {
					t.Errorf("a third, %+v: got %+v, want it to be too many", token, third)
				}
			}
			second.Settle(0, 5)
			if third := admit(t, limiter, counted, limits.Cost{Requests: 1}); !third.Allowed {
				t.Errorf("after the end of one: got %+v", third)
			}
			first.Release(0)
			if fourth := admit(t, limiter, whole, limits.Cost{Requests: 1, Money: 10}); !fourth.Allowed {
				t.Errorf("after the end of another: got %+v", fourth)
			}
		})
	}
}
