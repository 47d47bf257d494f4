package storage_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

// failoverAgain is when a failover that was ordered has failed: it takes about eleven seconds, and another order in them would
// turn it around.
const failoverAgain = 30 * time.Second

// sentinelsTurn is how long sentinels have to tell a primary that came back what it is now: about ten seconds.
const sentinelsTurn = 20 * time.Second

// openFailover opens a client as a gateway does.
func openFailover(t *testing.T, of *storagetest.Failover, change func(*storage.RedisOptions)) redis.UniversalClient {
	t.Helper()
	opts := &storage.RedisOptions{
		Username: storagetest.FailoverUser, Password: storagetest.FailoverPassword,
		Sentinel: storage.RedisSentinel{
			Master: storagetest.FailoverMaster, Addresses: of.Addresses(),
			Password: storagetest.FailoverSentinelPassword,
		},
	}
	if change != nil {
		change(opts)
	}
	client, err := storage.OpenRedis("redis://unused:9/2", opts)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	return client
}

// TestSentinel: the sentinels' word leads to the primary, also to the next one; one that was demoted is left.
func TestSentinel(t *testing.T) {
	t.Parallel()
	group := storagetest.StartFailover(t)
	client := openFailover(t, group, nil)
	ctx := t.Context()
	if err := errors.Join(storage.PingRedis(ctx, client), client.Set(ctx, "kept", "1", 0).Err()); err != nil {
		t.Fatal(err)
	}
	if size := group.Client(t, 0).Do(ctx, "DBSIZE").Val(); size != int64(0) {
		t.Errorf("database 0 has %v keys, want none: the URL names database 2", size)
	}

	first := group.KillPrimary(t)
	if err := storage.PingRedis(ctx, client); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("primary killed: got %v, want ErrUnavailable", err)
	}
	testwait.Eventually(t, "the promoted primary", storagetest.Patience, func() bool { return storage.PingRedis(ctx, client) == nil })
	if kept, err := client.Get(ctx, "kept").Result(); err != nil || kept != "1" {
		t.Errorf("got %q, %v of the promoted primary, want what it had replicated", kept, err)
	}

	group.Servers[first].Start(t)
	old, promoted := group.Client(t, first), group.Client(t, 1-first)
	host, port, err := net.SplitHostPort(group.Servers[1-first].Address)
	if err != nil {
		t.Fatal(err)
	}
	returned := time.Now()
	testwait.Eventually(t, "the old primary is a replica", storagetest.Patience, func() bool {
		// Sentinels tell it so, but for half a minute nothing after they themselves stood still for two seconds, as on a busy
		// machine. Then it is reconfigured as an operator would.
		if time.Since(returned) > sentinelsTurn {
			_ = old.Do(ctx, "REPLICAOF", host, port).Err()
		}
		return role(ctx, old) == "slave"
	})
	// A primary that is demoted while connections are open refuses writes on them: they go to the new primary.
	sentinel := group.Sentinels[0].Client(t, func(o *redis.Options) { o.Password = storagetest.FailoverSentinelPassword })
	var ordered time.Time
	testwait.Eventually(t, "the primary is demoted", storagetest.Patience, func() bool {
		if role(ctx, promoted) == "slave" {
			return true
		}
		// A sentinel accepts the order and drops it silently if the replica is not ready yet.
		if time.Since(ordered) > failoverAgain && sentinel.Do(ctx, "SENTINEL", "FAILOVER", storagetest.FailoverMaster).Err() == nil {
			ordered = time.Now()
		}
		return false
	})
	testwait.Eventually(t, "writes go on at the other", storagetest.Patience, func() bool { return storage.PingRedis(ctx, client) == nil })
	if at := role(ctx, old); at != "master" {
		t.Errorf("the first primary is %s again", at)
	}
}

func role(ctx context.Context, client *redis.Client) string {
	answer, err := client.Do(ctx, "ROLE").Slice()
	if err != nil || len(answer) == 0 {
		return ""
	}
	name, _ := answer[0].(string)
	return name
}

// TestSentinelRefuses: what is wrong with the sentinels names its key, and is never taken for a key that Redis does not have.
func TestSentinelRefuses(t *testing.T) {
	t.Parallel()
	group := storagetest.StartFailover(t)
	for name, test := range map[string]struct {
		change func(*storage.RedisOptions)
		want   string
	}{
		"no such primary": {func(o *storage.RedisOptions) { o.Sentinel.Master = "other" }, "redis.sentinel.master"},
		"wrong sentinel password": {
			func(o *storage.RedisOptions) { o.Sentinel.Password = "wrong-secret" },
			"redis.sentinel.username and redis.sentinel.password",
		},
		"no sentinel password": {
			func(o *storage.RedisOptions) { o.Sentinel.Password = "" },
			"redis.sentinel.username and redis.sentinel.password",
		},
		"wrong password of Redis":    {func(o *storage.RedisOptions) { o.Password = "wrong-secret" }, "redis.username, redis.password"},
		"no sentinel at the address": {func(o *storage.RedisOptions) { o.Sentinel.Addresses = []string{"127.0.0.1:1"} }, "connection refused"},
	} {
		client := openFailover(t, group, test.change)
		err := storage.RedisError("get", client.Get(t.Context(), "a").Err())
		if !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrNotFound) || !strings.Contains(err.Error(), test.want) ||
			strings.Contains(err.Error(), "secret") {
			t.Errorf("%s: got %v, want ErrUnavailable that names %s", name, err, test.want)
		}
	}
}
