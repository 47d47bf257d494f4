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
	grace  time.Duration // how long cached tokens are valid without Redis
	last   atomic.Int64  // unix nanoseconds of Redis's last answer
	ever   atomic.Bool   // Redis has answered
	stale  atomic.Bool   // the grace has ended: cached tokens are not valid
}

// note records the outcome of a command and returns err unchanged.
func (c *contact) note(ctx context.Context, err error) error {
	if c.outage.Note(ctx, time.Now(), err) == nil {
		c.last.Store(time.Now().UnixNano())
		c.ever.Store(true)
	}
	return err
}

// follower updates the memory from Redis, and Redis from the seeds.
type follower struct {
	records *records
	contact *contact
	memory  *memory
	seeds   *seeds

	mu    sync.Mutex // held while changes are read
	head  string     // latest change read
	begun bool       // head was read once
}

// tick catches up, and records whether Redis has been away for longer than the grace.
func (f *follower) tick(ctx context.Context, _ bool) {
	if err := f.catchUp(ctx); err == nil {
		f.contact.stale.Store(false)
	} else if time.Since(time.Unix(0, f.contact.last.Load())) > f.contact.grace {
		f.contact.stale.Store(true)
	}
}

// catchUp reads the changes since the last read, and writes the seeds that are due. After it returned nil, the memory has every change
// that was made before the call.
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

// follow reads the changes since the last read. It does not wait for a write of seeds.
func (f *follower) follow(ctx context.Context) error {
	f.mu.Lock()
	defer f.mu.Unlock()
	return f.contact.note(ctx, f.readChanges(ctx))
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
		sums, all = f.memory.reset(), true
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

// seed makes next the seeds, and writes them: now, or as soon as Redis answers.
func (f *follower) seed(ctx context.Context, next *seedList, setGroups func()) error {
	f.seeds.writing.Lock()
	defer f.seeds.writing.Unlock()
	setGroups()
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

// writeSeeds writes the seeds that are due, and follows changes meanwhile. After a write, even a failed one, the next follow reads
// everything. The caller holds f.seeds.writing.
func (f *follower) writeSeeds(ctx context.Context) error {
	wrote, err := f.seeds.write(ctx, f.follow)
	if wrote {
		f.mu.Lock()
		f.begun = false
		f.mu.Unlock()
	}
	return err
}

// sumsSince returns the sums of the changes that are newer than last. all: last is not among them, because there were too many changes or
// Redis lost its data.
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
