// Package storagetest provides tests of storage and of its users with a Redis, an archive in memory, and the conformance suite of archives.
// Only tests import it.
package storagetest

import (
	"context"
	"crypto/rand"
	"errors"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// Redis returns a client of an empty Redis for this test, closed at its end. It is an embedded one, whose keys expire in real time, or the
// real one of the environment variable MODELRELAY_TEST_REDIS. In redis://host:port, each test gets a numbered database, which is emptied
// before and after. In cluster://host:port, a Redis Cluster, each test has its own prefix.
func Redis(tb testing.TB) redis.UniversalClient {
	tb.Helper()
	url := os.Getenv("MODELRELAY_TEST_REDIS") //nolint:forbidigo // only tests run this
	if node, cluster := strings.CutPrefix(url, "cluster://"); cluster {
		return inCluster(tb, node)
	}
	if url != "" {
		return realRedis(tb, url)
	}
	server, _ := Miniredis(tb)
	return Client(tb, "redis://"+server.Addr())
}

// Miniredis starts an embedded Redis with its own address. Its keys expire by the clock, or by FastForward. stop ends it before the end of
// the test.
func Miniredis(tb testing.TB) (server *miniredis.Miniredis, stop func()) {
	tb.Helper()
	server = miniredis.NewMiniRedis()
	if err := server.StartAddr("127.0.0.1:0"); err != nil {
		tb.Fatalf("start redis: %v", err)
	}
	server.ClockTTL(true)
	tb.Cleanup(server.Close)
	return server, server.Close
}

// clientTimeout is the timeout of a test's client: a slow answer of a busy machine is not an outage. A test of a Redis that hangs opens its
// own client.
const clientTimeout = 30 * time.Second

// Client opens a client, closed at the end of the test. Its commands fail at once if no server listens.
func Client(tb testing.TB, url string) *redis.Client {
	tb.Helper()
	client, err := storage.OpenRedis(url, &storage.RedisOptions{Timeout: clientTimeout})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client.(*redis.Client) //nolint:forcetypeassert // one server with the default prefix
}

// Again opens another client of the same Redis, closed at the end of the test. client is of the function Redis.
func Again(tb testing.TB, client redis.UniversalClient) redis.UniversalClient {
	tb.Helper()
	var again redis.UniversalClient
	switch c := client.(type) {
	case *redis.Client:
		again = redis.NewClient(c.Options())
	case clustered:
		return c.open(tb)
	default:
		tb.Fatalf("%T is no client of Redis", client)
	}
	tb.Cleanup(func() { _ = again.Close() })
	return again
}

// Empty deletes all data of a client's Redis. client is of the function Redis.
func Empty(tb testing.TB, client redis.UniversalClient) {
	tb.Helper()
	if c, ok := client.(clustered); ok {
		c.empty(tb)
		return
	}
	if err := client.FlushDB(tb.Context()).Err(); err != nil {
		tb.Fatal(err)
	}
}

// clustered is a client of a Redis Cluster for one test.
type clustered struct {
	redis.UniversalClient
	node, prefix string
}

// Channel returns the name of a channel in Redis.
func (c clustered) Channel(channel string) string {
	return storage.ChannelName(c.UniversalClient, channel)
}

// inCluster gives a test its own prefix, and deletes its keys at the end.
func inCluster(tb testing.TB, node string) redis.UniversalClient {
	tb.Helper()
	c := clustered{node: node, prefix: "{" + rand.Text() + "}"}
	c.UniversalClient = c.open(tb)
	tb.Cleanup(func() { c.empty(tb) })
	return c
}

// empty deletes the keys of the test, all of which are in one slot.
func (c clustered) empty(tb testing.TB) {
	tb.Helper()
	ctx := context.WithoutCancel(tb.Context()) // also used while the test ends
	nodes := redis.NewClusterClient(&redis.ClusterOptions{Addrs: []string{c.node}})
	defer nodes.Close() //nolint:errcheck // its error does not matter
	node, err := nodes.MasterForKey(ctx, c.prefix)
	if err != nil {
		tb.Fatal(err)
	}
	keys, err := node.Keys(ctx, c.prefix+"*").Result()
	for _, key := range keys {
		err = errors.Join(err, node.Del(ctx, key).Err())
	}
	if err != nil {
		tb.Error(err)
	}
}

func (c clustered) open(tb testing.TB) redis.UniversalClient {
	tb.Helper()
	client, err := storage.OpenRedis("redis://"+c.node, &storage.RedisOptions{Timeout: clientTimeout, Cluster: true, Prefix: c.prefix})
	if err != nil {
		tb.Fatal(err)
	}
	tb.Cleanup(func() { _ = client.Close() })
	return client
}

// realRedis takes one of the server's sixteen databases by a lock in database 0.
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
