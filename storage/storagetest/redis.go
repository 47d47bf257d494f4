// Package storagetest has what tests of storage and of its users need: a Redis, an archive in memory, and the
// conformance suite that every archive passes. Only tests import it.
package storagetest

import (
	"context"
	"os"
	"sync"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// Redis returns a client of an empty Redis for this test alone, closed at its end: an embedded one whose keys expire
// in real time, or the real one that the environment variable MODELRELAY_TEST_REDIS names (redis://host:port), of
// which each test gets a numbered database that is emptied before and after.
func Redis(tb testing.TB) *redis.Client {
	tb.Helper()
	url := os.Getenv("MODELRELAY_TEST_REDIS") //nolint:forbidigo // only tests come here
	if url != "" {
		return realRedis(tb, url)
	}
	server, _ := Miniredis(tb)
	return Client(tb, "redis://"+server.Addr())
}

// Miniredis starts an embedded Redis, for tests that stop and start it. stop ends it before the test does; a server
// that was stopped may be restarted with its Restart method.
func Miniredis(tb testing.TB) (server *miniredis.Miniredis, stop func()) {
	tb.Helper()
	server = miniredis.NewMiniRedis()
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		tb.Fatalf("start redis: %v", err)
	}
	done, ended := make(chan struct{}), make(chan struct{})
	go func() { // its keys expire only when it is told that time passes
		defer close(ended)
		const step = 20 * time.Millisecond
		tick := time.NewTicker(step)
		defer tick.Stop()
		for last := time.Now(); ; {
			select {
			case <-done:
				return
			case now := <-tick.C:
				server.FastForward(now.Sub(last))
				last = now
			}
		}
	}()
	stop = sync.OnceFunc(func() {
		close(done)
		<-ended
		server.Close()
	})
	tb.Cleanup(stop)
	return server, stop
}

// Client opens a client with short timeouts, closed at the end of the test.
func Client(tb testing.TB, url string) *redis.Client {
	tb.Helper()
	client, err := storage.OpenRedis(url, nil)
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// realRedis takes one of the server's sixteen databases by a lock that lives in database 0.
func realRedis(tb testing.TB, url string) *redis.Client {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context()) // also used while the test ends
	locks := Client(tb, url)
	deadline := time.Now().Add(time.Minute)
	for {
		for db := 1; db < 16; db++ {
			lock := "storagetest:" + string(rune('a'+db))
			got, err := locks.SetNX(ctx, lock, 1, 5*time.Minute).Result()
			if err != nil {
				tb.Fatalf("redis of the environment: %v", err)
			}
			if !got {
				continue
			}
			opts := *locks.Options()
			opts.DB = db
			client := redis.NewClient(&opts)
			if err := client.FlushDB(ctx).Err(); err != nil {
				tb.Fatal(err)
			}
			tb.Cleanup(func() {
				client.FlushDB(ctx)
				_ = client.Close()
				locks.Del(ctx, lock)
			})
			return client
		}
		if time.Now().After(deadline) {
			tb.Fatal("no database of the real redis became free")
		}
		pause := time.NewTimer(20 * time.Millisecond)
		<-pause.C
	}
}
