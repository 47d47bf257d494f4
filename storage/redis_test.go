package storage_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
)

func TestOpenRedis(t *testing.T) {
	t.Parallel()
	for _, bad := range []string{"", "127.0.0.1:6379", "http://127.0.0.1", "redis://:secret@host:port/db"} {
		if _, err := storage.OpenRedis(bad, nil); err == nil || strings.Contains(err.Error(), "secret") {
			t.Errorf("%q: %v", bad, err)
		}
	}
	slow, err := storage.OpenRedis("redis://127.0.0.1:1/0?read_timeout=7s", nil)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = slow.Close() })
	if patient := slow.(*redis.Client).Options(); patient.ReadTimeout != 7*time.Second || patient.WriteTimeout != time.Second ||
		patient.DialTimeout != time.Second {
		t.Errorf("read in %v, write in %v, dial in %v; want 7s of the URL and a second of all others", patient.ReadTimeout, patient.WriteTimeout,
			patient.DialTimeout)
	}
	if err := storage.PingRedis(t.Context(), storagetest.Redis(t)); err != nil {
		t.Error(err)
	}
	if err := storage.PingRedis(t.Context(), storagetest.Client(t, "redis://127.0.0.1:1")); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("away: got %v, want ErrUnavailable", err)
	}
	server, _ := storagetest.Miniredis(t)
	server.RequireAuth("other")
	if err := storage.PingRedis(t.Context(), storagetest.Client(t, "redis://:secret@"+server.Addr())); !errors.Is(err,
		storage.ErrUnavailable) || strings.Contains(err.Error(), "secret") {
		t.Errorf("wrong password: got %v, want ErrUnavailable", err)
	}
}

// TestHangingRedisDelaysFewCalls: a Redis that accepts connections and never answers delays only the first concurrent calls.
func TestHangingRedisDelaysFewCalls(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		const timeout = 100 * time.Millisecond
		c, err := storage.OpenRedis("redis://embedded", &storage.RedisOptions{Timeout: timeout})
		if err != nil {
			t.Fatal(err)
		}
		opts := *c.(*redis.Client).Options()
		_ = c.Close()
		opts.Dialer = func(context.Context, string, string) (net.Conn, error) {
			conn, _ := net.Pipe() // its other end is not read
			return conn, nil
		}
		client := redis.NewClient(&opts)
		t.Cleanup(func() { _ = client.Close() })
		limiter, store, usage := limits.New(client, nil), tokens.New(client, nil),
			ledger.NewUsage(client, &ledger.UsageOptions{FlushEvery: 20 * time.Millisecond})
		ctx := context.WithoutCancel(t.Context())
		t.Cleanup(func() {
			store.Close()
			_, _ = limiter.Close(ctx), usage.Close(ctx)
		})
		token := storage.Allowance{Token: "a", RequestsPerMinute: 1000, Concurrency: 1000}
		usage.Record(ledger.Entry{Token: "a", Requests: 1})

		start := time.Now()
		var calls sync.WaitGroup
		for range 200 {
			calls.Go(func() {
				if grant, err := limiter.Admit(t.Context(), token, limits.Cost{Requests: 1}); err != nil || !grant.Allowed {
					t.Errorf("%+v, %v", grant, err)
				}
				if _, err := store.Authenticate(t.Context(), "sk-unknown"); !errors.Is(err, storage.ErrUnavailable) {
					t.Error(err)
				}
			})
		}
		calls.Wait()
		if took := time.Since(start); took > 10*timeout {
			t.Errorf("200 calls at once took %v", took)
		}
		start = time.Now()
		for range 300 {
			_, _ = limiter.Admit(t.Context(), token, limits.Cost{Requests: 1})
			_, _ = store.Authenticate(t.Context(), "sk-unknown")
		}
		if took := time.Since(start); took > 10*timeout {
			t.Errorf("300 calls after them took %v", took)
		}
	})
}
