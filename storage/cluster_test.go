package storage_test

import (
	"context"
	"errors"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/taskindex"
	"modelrelay/storage/testwait"
)

// TestCluster: in a Redis Cluster all keys are in one slot, where scripts work, and a promoted replica continues.
func TestCluster(t *testing.T) {
	t.Parallel()
	nodes := storagetest.StartCluster(t, true)
	ctx := t.Context()
	direct := nodes[0].Client(t, nil)

	// A client without redis.cluster gets an error that names the option, from every node.
	for _, node := range nodes[:3] {
		single := storagetest.Client(t, "redis://"+node.Address)
		hint := ""
		for _, key := range []string{"a", "b", "c", "d", "e", "f", "g", "h"} { // some slot of theirs is elsewhere
			if err := storage.RedisError("read", single.Get(ctx, key).Err()); errors.Is(err, storage.ErrUnavailable) {
				hint = err.Error()
			}
		}
		if !strings.Contains(hint, "redis.cluster: true") {
			t.Errorf("one node without redis.cluster: got %q", hint)
		}
	}

	client, err := storage.OpenRedis("redis://"+nodes[0].Address, &storage.RedisOptions{Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	token := storage.Allowance{Token: "a", RequestsPerMinute: 100, TokensPerMinute: 1000, Concurrency: 10, Budget: 1000}
	limiter := limits.New(client, nil)
	grant, err := limiter.Admit(ctx, token, limits.Cost{Requests: 1, Tokens: 1, Money: 10})
	if err != nil || !grant.Allowed {
		t.Fatalf("got %+v, %v", grant, err)
	}
	if balance := storagetest.Balance(t, client, "a"); balance.Reserved != 10 {
		t.Errorf("got %+v, want 10 reserved", balance)
	}
	usage := ledger.NewUsage(client, nil)
	usage.Record(ledger.Entry{Token: "a", Model: "m", At: time.Now(), Requests: 1})
	if err := errors.Join(usage.Flush(ctx), storage.PingRedis(ctx, client)); err != nil {
		t.Error(err)
	}

	// A process receives what another one publishes, at whichever nodes they are connected.
	changes := taskindex.NewChanges(client)
	heard, ready := make(chan taskindex.Change, 1), make(chan struct{})
	listening, stop := context.WithCancel(ctx)
	var follower sync.WaitGroup
	follower.Go(func() {
		changes.Follow(listening, ready, func(change taskindex.Change) { heard <- change })
	})
	<-ready
	if err := changes.Publish(ctx, taskindex.Change{TaskID: "t1"}); err != nil {
		t.Error(err)
	}
	if change := <-heard; change.TaskID != "t1" {
		t.Errorf("received %+v", change)
	}
	stop()
	follower.Wait()

	slot := direct.ClusterKeySlot(ctx, "{mr:}ping").Val()
	owner := -1
	for i, node := range nodes[:3] {
		keys := node.Client(t, nil).Keys(ctx, "*").Val()
		for _, key := range keys {
			if !strings.HasPrefix(key, "{mr:}") {
				t.Errorf("key %q has another prefix", key)
			}
		}
		if len(keys) > 0 {
			if owner >= 0 {
				t.Errorf("nodes %d and %d have keys, want those of slot %d on one", owner, i, slot)
			}
			owner = i
		}
	}
	if owner < 0 {
		t.Fatal("no node has a key")
	}

	// The replica of the slot's primary takes over.
	if err := errors.Join(client.Do(ctx, "SET", "mr:kept", "1").Err(), awaitReplica(ctx, nodes[owner].Client(t, nil))); err != nil {
		t.Fatal(err)
	}
	nodes[owner].Kill()
	if err := storage.PingRedis(ctx, client); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("primary killed: got %v, want ErrUnavailable", err)
	}
	testwait.Eventually(t, "the promoted replica", storagetest.Patience, func() bool { return storage.PingRedis(ctx, client) == nil })
	if balance := storagetest.Balance(t, client, "a"); balance.Reserved != 10 {
		t.Errorf("after the failover: got %+v, want 10 reserved", balance)
	}
	grant.Release(1)
	if _, err := limiter.Close(ctx), usage.Close(ctx); err != nil {
		t.Error(err)
	}
	if balance := storagetest.Balance(t, client, "a"); balance.Reserved != 0 {
		t.Errorf("released after the failover: got %+v, want nothing reserved", balance)
	}
}

// awaitReplica returns when a replica has what was written.
func awaitReplica(ctx context.Context, primary *redis.Client) error {
	return primary.Do(ctx, "WAIT", 1, 5000).Err()
}

// TestNoCluster: a Redis that is not a cluster is recognised.
func TestNoCluster(t *testing.T) {
	t.Parallel()
	server := storagetest.StartProcess(t)
	client, err := storage.OpenRedis("redis://"+server.Address, &storage.RedisOptions{Cluster: true})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	if err := storage.PingRedis(t.Context(), client); !errors.Is(err, storage.ErrUnavailable) ||
		!strings.Contains(err.Error(), "redis.cluster is true") {
		t.Errorf("got %v", err)
	}
}
