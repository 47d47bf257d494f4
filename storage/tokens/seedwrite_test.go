package tokens_test

import (
	"context"
	"fmt"
	"sync/atomic"
	"testing"
	"time"

	"github.com/alicebob/miniredis/v2"
	"github.com/redis/go-redis/v9"

	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
)

// counts counts what is asked of Redis.
type counts struct {
	// records are the records read, indexes the whole hashes read, writes the scripts run.
	records, indexes, writes atomic.Int64
	// wrote, where not nil, is called before each pipeline of scripts.
	wrote func()
}

func (*counts) DialHook(next redis.DialHook) redis.DialHook { return next }

func (c *counts) ProcessHook(next redis.ProcessHook) redis.ProcessHook {
	return func(ctx context.Context, cmd redis.Cmder) error {
		switch cmd.Name() {
		case "mget":
			c.records.Add(int64(len(cmd.Args()) - 1))
		case "hgetall", "hkeys", "smembers":
			c.indexes.Add(1)
		case "eval":
			c.writes.Add(1)
		}
		return next(ctx, cmd)
	}
}

func (c *counts) ProcessPipelineHook(next redis.ProcessPipelineHook) redis.ProcessPipelineHook {
	return func(ctx context.Context, cmds []redis.Cmder) error {
		for _, cmd := range cmds {
			if cmd.Name() == "eval" {
				c.writes.Add(1)
			}
		}
		if c.wrote != nil {
			c.wrote()
		}
		return next(ctx, cmds)
	}
}

func manySeeds(n int) []tokens.Seed {
	seeds := make([]tokens.Seed, n)
	for i := range seeds {
		seeds[i] = tokens.Seed{Token: tokens.Token{Name: fmt.Sprintf("seed-%05d", i), Group: "default"}, Key: fmt.Sprintf("sk-seed-%05d", i)}
	}
	return seeds
}

// counted returns a store whose reads and writes are counted. It asks for changes only on demand.
func counted(t *testing.T, server *miniredis.Miniredis) (*tokens.Store, *counts) {
	t.Helper()
	c := new(counts)
	client := storagetest.Client(t, "redis://"+server.Addr())
	client.AddHook(c)
	return newTokens(t, client, nil), c
}

// TestSeedsCostTheFile: a start and a reload read no tokens that are not of the file, and write only what changed.
func TestSeedsCostTheFile(t *testing.T) {
	t.Parallel()
	for _, others := range []int{10, 5000} {
		t.Run(fmt.Sprintf("%d other tokens", others), func(t *testing.T) {
			t.Parallel()
			ctx := t.Context()
			server, _ := storagetest.Miniredis(t)
			client := storagetest.Client(t, "redis://"+server.Addr())
			var index []any
			for i := range others {
				index = append(index, fmt.Sprintf("tok_%05d", i), hashOf(fmt.Sprint(i)))
			}
			if err := client.HSet(ctx, "mr:tokens", index...).Err(); err != nil {
				t.Fatal(err)
			}
			const n = 300
			seeds := manySeeds(n)
			if err := newTokens(t, client, nil).Seed(ctx, seeds); err != nil {
				t.Fatal(err)
			}
			store, c := counted(t, server)
			reload := func(what string, seeds []tokens.Seed, records, writes int64) {
				t.Helper()
				c.records.Store(0)
				c.writes.Store(0)
				if err := store.Seed(ctx, seeds); err != nil {
					t.Fatal(err)
				}
				if got := c.writes.Load(); got != writes {
					t.Errorf("%s: %d records written, want %d", what, got, writes)
				}
				if got := c.records.Load(); got > records {
					t.Errorf("%s: %d records read, want at most %d", what, got, records)
				}
				if got := c.indexes.Load(); got != 0 {
					t.Errorf("%s: an index was read whole %d times", what, got)
				}
			}
			reload("start", seeds, n, 0)
			reload("reload", seeds, n, 0)
			seeds[7].Token.Group = "other"
			reload("a seed changed", seeds, n+10, 1)
			reload("a seed left", seeds[1:], n+10, 1)
			if got, err := store.Find(ctx, seeds[0].Token.Name); err != nil || !got.Disabled {
				t.Errorf("the seed that left: %+v, %v", got, err)
			}
			reload("it came back", seeds, n+10, 1)
			if got, err := store.Authenticate(ctx, seeds[0].Key); err != nil || got.Usable(time.Now()) != nil {
				t.Errorf("the seed that came back: %+v, %v", got, err)
			}
		})
	}
}

// TestRevokedWhileSeedsAreWritten: a process that writes many seeds follows changes between the parts of its write.
func TestRevokedWhileSeedsAreWritten(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server, _ := storagetest.Miniredis(t)
	there := newTokens(t, storagetest.Client(t, "redis://"+server.Addr()), nil)
	_, key, err := there.Create(ctx, tokens.Token{Name: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	here, c := counted(t, server)
	if _, err := here.Authenticate(ctx, key); err != nil {
		t.Fatal(err)
	}
	const revokedAt = 3
	writes, usable := 0, 0
	c.wrote = func() {
		if writes++; writes == revokedAt {
			if err := there.Revoke(ctx, "anna"); err != nil {
				t.Error(err)
			}
		} else if got, err := here.Authenticate(ctx, key); writes > revokedAt && (err != nil || got.Usable(time.Now()) == nil) {
			usable++
		}
	}
	if err := here.Seed(ctx, manySeeds(600)); err != nil {
		t.Fatal(err)
	}
	if writes < revokedAt+3 || usable > 0 {
		t.Errorf("of %d parts, %d were written with the revoked token in use", writes, usable)
	}
}
