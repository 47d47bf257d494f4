package tokens

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// follow asks for changes until ctx ends.
func (t *Store) follow(ctx context.Context) {
	defer close(t.done)
	tick := time.NewTicker(t.opts.CacheFor / 2)
	defer tick.Stop()
	for {
		if err := t.catchUp(ctx); err == nil {
			t.stale.Store(false)
		} else if time.Since(time.Unix(0, t.heard.Load())) > t.opts.Grace {
			t.stale.Store(true)
		}
		select {
		case <-ctx.Done():
			return
		case <-tick.C:
		}
	}
}

// catchUp reads what changed since the last time. After it returned nil, every change made before it was called
// is seen here.
func (t *Store) catchUp(ctx context.Context) error {
	t.following.Lock()
	defer t.following.Unlock()
	err := t.readChanges(ctx)
	if t.out.Note(ctx, time.Now(), err) == nil {
		t.heard.Store(time.Now().UnixNano())
		t.met.Store(true)
	}
	return err
}

func (t *Store) readChanges(ctx context.Context) error {
	head, err := t.client.LIndex(ctx, tokenChangesKey, 0).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return storage.RedisError("read token changes", err)
	}
	if t.following.begun && head == t.following.head {
		return t.writeSeeds(ctx)
	}
	changes, err := t.client.LRange(ctx, tokenChangesKey, 0, -1).Result()
	if err != nil {
		return storage.RedisError("read token changes", err)
	}
	head = ""
	if len(changes) > 0 {
		head = changes[0]
	}
	sums, all := sumsSince(changes, t.following.head)
	t.caching.Lock()
	t.changed.Add(1) // before reading: what was read earlier is no longer cached
	t.caching.Unlock()
	if all || !t.following.begun {
		sums, all = t.known.Keys(), true
		t.unknown.Purge()
		for sum := range *t.seeds.Load() {
			sums = append(sums, sum)
		}
	}
	records, err := t.records(ctx, sums)
	if err != nil {
		return err
	}
	seeds := *t.seeds.Load()
	for _, r := range records {
		t.unknown.Remove(r.sum)
		if s, ok := seeds[r.sum]; ok {
			s.take(r)
		}
		if r.raw == "" {
			t.known.Remove(r.sum)
		} else if t.known.Contains(r.sum) { // what nobody asked for takes no other's place
			t.known.Add(r.sum, &r.token)
		}
	}
	t.following.head, t.following.begun = head, true
	if all {
		t.following.due = max(t.following.due, seedsMissing) // Redis may have come back empty
	}
	return t.writeSeeds(ctx)
}

// sumsSince are the sums in the changes that are newer than the one called last. all: last is not among them,
// because too much changed since or Redis lost its memory.
func sumsSince(changes []string, last string) (sums []keySum, all bool) {
	for _, change := range changes {
		if change == last {
			return sums, false
		}
		_, hash, _ := strings.Cut(change, " ")
		if sum, ok := parseKeySum(hash); ok {
			sums = append(sums, sum)
		}
	}
	return nil, true
}
