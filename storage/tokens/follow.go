package tokens

import (
	"context"
	"errors"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
)

// contact records whether Redis answers, and whether it has been away for too long.
type contact struct {
	outage storage.Outage
	grace  time.Duration // how long known tokens go on without Redis
	heard  atomic.Int64  // unix nanoseconds of the last answer of Redis
	met    atomic.Bool   // Redis has answered
	stale  atomic.Bool   // the grace has ended: the memory is not used any more
}

// note takes the outcome of a call and returns err as it came.
func (c *contact) note(ctx context.Context, err error) error {
	if c.outage.Note(ctx, time.Now(), err) == nil {
		c.heard.Store(time.Now().UnixNano())
	}
	return err
}

// follower keeps the memory as Redis has it, and Redis as the seeds have it.
type follower struct {
	records *records
	contact *contact
	memory  *memory
	seeds   *seeds

	mu    sync.Mutex // held while changes are read
	head  string     // latest change seen
	begun bool       // head was read once
}

// tick catches up, and records whether Redis has been away for longer than the grace.
func (f *follower) tick(ctx context.Context, _ bool) {
	if err := f.catchUp(ctx); err == nil {
		f.contact.stale.Store(false)
	} else if time.Since(time.Unix(0, f.contact.heard.Load())) > f.contact.grace {
		f.contact.stale.Store(true)
	}
}

// catchUp reads what changed since the last time, and writes what is due of the seeds. After it returned nil, every change made before
// it was called is seen here.
func (f *follower) catchUp(ctx context.Context) error {
	if err := f.follow(ctx); err != nil {
		return err
	}
	if !f.seeds.writing.TryLock() { // the caller that holds it writes them
		return nil
	}
	defer f.seeds.writing.Unlock()
	return f.contact.note(ctx, f.writeSeeds(ctx))
}

// follow reads what changed since the last time. It waits for no write of seeds.
func (f *follower) follow(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	err := f.contact.note(ctx, f.readChanges(ctx))
	if err == nil {
		f.contact.met.Store(true)
	}
	return err
}

func (f *follower) readChanges(ctx context.Context) error {
	head, err := f.records.client.LIndex(ctx, tokenChangesKey, 0).Result()
	if err != nil && !errors.Is(err, redis.Nil) {
		return storage.RedisError("read token changes", err)
	}
	if f.begun && head == f.head {
		return nil
	}
	changes, err := f.records.client.LRange(ctx, tokenChangesKey, 0, -1).Result()
	if err != nil {
		return storage.RedisError("read token changes", err)
	}
	head = ""
	if len(changes) > 0 {
		head = changes[0]
	}
	sums, all := sumsSince(changes, f.head)
	f.memory.change() // before reading
	if all || !f.begun {
		sums, all = f.memory.recall(), true
	}
	found, err := f.records.read(ctx, sums)
	if err != nil {
		return err
	}
	for _, r := range found {
		if seed, ok := f.seeds.bySum(r.sum); ok {
			seed.take(r)
		}
		f.memory.refresh(r)
	}
	f.head, f.begun = head, true
	if all {
		f.seeds.raise(seedsMissing) // Redis may have come back empty, and seeds may be revoked
	}
	return nil
}

// seed makes next the seeds, right after before, and writes them, now or as soon as Redis answers.
func (f *follower) seed(ctx context.Context, next *seedList, before func()) error {
	f.seeds.writing.Lock()
	defer f.seeds.writing.Unlock()
	before()
	f.seeds.list.Store(next)
	f.seeds.raise(seedsWhole)
	if !f.contact.outage.Try(time.Now()) {
		return nil
	}
	err := f.contact.outage.Note(ctx, time.Now(), f.writeSeeds(ctx))
	if errors.Is(err, storage.ErrUnavailable) {
		return nil
	}
	return err
}

// writeSeeds writes what is due of the seeds, and follows changes meanwhile. After a write, also one that failed, the
// next follow reads everything. The caller holds the lock of writing.
func (f *follower) writeSeeds(ctx context.Context) error {
	wrote, err := f.seeds.write(ctx, f.follow)
	if wrote {
		f.mu.Lock()
		f.begun = false
		f.mu.Unlock()
	}
	return err
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
