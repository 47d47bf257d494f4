package storage_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
)

// TestPrefixWithCredentials: a user of the access list with rights to the keys of a prefix only, in a numbered database.
func TestPrefixWithCredentials(t *testing.T) {
	t.Parallel()
	server := storagetest.StartProcess(t, "user gateway on >right-password ~shop:* &shop:* +@all -@admin -@dangerous", "user default off",
		`save ""`)
	open := func(prefix string) error {
		client, err := storage.OpenRedis("redis://"+server.Address+"/3",
			&storage.RedisOptions{Username: "gateway", Password: "right-password", Prefix: prefix})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = client.Close() })
		return storage.PingRedis(t.Context(), client)
	}
	if err := open("shop:"); err != nil {
		t.Errorf("with its own prefix: %v", err)
	}
	if err := open("other:"); err == nil || !strings.Contains(err.Error(), "redis.username") {
		t.Errorf("with another's: %v", err)
	}
}

// TestPrefixOfCommands: a command's keys get the prefix. A command whose keys are not recognized is refused.
func TestPrefixOfCommands(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client, err := storage.OpenRedis("redis://"+server.Addr(), &storage.RedisOptions{Prefix: "shop:"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = client.Close() })
	ctx, one, two := t.Context(), storage.Prefix+"one", storage.Prefix+"two"
	if err := errors.Join(client.ZAdd(ctx, one, redis.Z{Score: 1, Member: one}).Err(), client.Set(ctx, two, "text", 0).Err(),
		client.Eval(ctx, "return redis.call('SET', KEYS[2], ARGV[1])", []string{two, two + "b"}, one).Err()); err != nil {
		t.Fatal(err)
	}
	if got, want := server.Keys(), []string{"shop:one", "shop:two", "shop:twob"}; !slices.Equal(got, want) {
		t.Errorf("the keys are %q, want %q", got, want)
	}
	found, err := client.ZRevRangeByScore(ctx, one, &redis.ZRangeBy{Min: "0", Max: "+inf"}).Result()
	if err != nil || !slices.Equal(found, []string{one}) {
		t.Errorf("a sorted set has %q, %v", found, err)
	}
	if n, err := client.Del(ctx, one, two).Result(); n != 2 || err != nil {
		t.Errorf("deleted %d of 2 keys: %v", n, err)
	}
	for name, err := range map[string]error{
		"keys after words":  client.XRead(ctx, &redis.XReadArgs{Streams: []string{one, "0"}}).Err(),
		"another prefix":    client.Get(ctx, "other").Err(),
		"no argument":       client.Do(ctx, "randomkey").Err(),
		"in a pipeline too": second(client.Pipelined(ctx, func(p redis.Pipeliner) error { return p.Get(ctx, "other").Err() })),
	} {
		if err == nil || errors.Is(err, redis.Nil) {
			t.Errorf("%s: %v, want a refusal", name, err)
		}
	}
}

func second[T any](_ T, err error) error { return err }
