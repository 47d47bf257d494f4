package tasks

import (
	"context"
	"sync"
	"time"

	"modelrelay/providers"
)

// readTTL is how long a process reuses the result of a task read. Clients poll a task about a hundred times.
const readTTL = time.Second

type reads = sharedCache[string, Task]

// newReads returns a cache that renews renewable tasks with renew.
func newReads(renew func(ctx context.Context, old Task) (Task, bool)) *reads {
	r := newSharedCache[string, Task](readTTL)
	r.renewTTL, r.renew, r.renewable = renewableFor, renew, Task.renewable
	return r
}

// sharedCache is a cache of reads of Temporal with a single flight for each key.
//
// A library is not suitable: with otter v2.4, a hit takes as long (0.12 µs), and an entry 175 bytes instead of 460, for at most 20,000
// entries. But the first reader does not return when its context ends, the age of a value counts from the end of its read, an expired
// value cannot be refreshed, and each cache has a goroutine that its owner must end.
type sharedCache[K comparable, V any] struct {
	mu      sync.Mutex
	ttl     time.Duration
	entries map[K]*cacheEntry[V]
	// refreshAfter is the age from which a value is returned and read again in the background; 0: never.
	refreshAfter time.Duration
	// renew makes a current value of an older one without a read, if it can; nil: never. renewable values are stored for renewTTL.
	renewTTL  time.Duration
	renewable func(V) bool
	renew     func(ctx context.Context, old V) (V, bool)
}

const renewableMost = 20_000

// cacheEntry is one read, in progress or finished.
type cacheEntry[V any] struct {
	done  chan struct{}
	at    time.Time // begin of the read: the value does not reflect later changes
	value V
	err   error
	// invalid: the value must not be refreshed. next is the read that replaces this one, nil for none. The cache's lock protects both.
	invalid bool
	next    *cacheEntry[V]
}

func newSharedCache[K comparable, V any](ttl time.Duration) *sharedCache[K, V] {
	return &sharedCache[K, V]{ttl: ttl, entries: make(map[K]*cacheEntry[V])}
}

// do returns a value whose read began less than ttl ago. Otherwise it reads the value once and shares the result with all concurrent
// callers. Only those callers receive an error of that read. The read outlasts its first caller. Callers must not modify the value.
func (c *sharedCache[K, V]) do(ctx context.Context, key K, read func(context.Context) (V, error)) (V, error) {
	c.mu.Lock()
	e, ok := c.entries[key]
	if ok {
		fresh, ended := time.Since(e.at) < c.ttl, finished(e)
		ok = fresh && (!ended || e.err == nil)
		switch {
		case !ended:
		case ok && c.refreshAfter > 0 && e.next == nil && time.Since(e.at) >= c.refreshAfter:
			e.next = &cacheEntry[V]{done: make(chan struct{}), at: time.Now()}
			go c.refresh(context.WithoutCancel(ctx), key, e, read)
		case !ok && e.next != nil && time.Since(e.next.at) < c.ttl: // it is in progress, or has failed
			e, ok = e.next, !finished(e.next) || e.next.err == nil
		}
	}
	if !ok {
		old := e
		e = &cacheEntry[V]{done: make(chan struct{}), at: time.Now()}
		c.entries[key] = e
		go c.load(context.WithoutCancel(ctx), key, e, c.renewing(old, read))
	}
	c.mu.Unlock()
	select {
	case <-e.done:
		return e.value, e.err
	case <-ctx.Done():
		return *new(V), providers.AsFault(ctx.Err())
	}
}

// renewing returns a read that renews the old entry if possible; old may be nil. The caller holds the lock.
func (c *sharedCache[K, V]) renewing(old *cacheEntry[V], read func(context.Context) (V, error)) func(context.Context) (V, error) {
	if c.renew == nil || old == nil || old.invalid || !finished(old) || old.err != nil {
		return read
	}
	return func(ctx context.Context) (V, error) {
		if value, ok := c.renew(ctx, old.value); ok {
			return value, nil
		}
		return read(ctx)
	}
}

func finished[V any](e *cacheEntry[V]) bool {
	select {
	case <-e.done:
		return true
	default:
		return false
	}
}

// refresh loads the entry that replaces old. If the read fails, old stays until its ttl.
func (c *sharedCache[K, V]) refresh(ctx context.Context, key K, old *cacheEntry[V], read func(context.Context) (V, error)) {
	e := old.next
	c.load(ctx, key, e, read)
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case c.entries[key] != old: // it was dropped or replaced
	case e.err == nil:
		c.entries[key] = e
	case time.Since(old.at) >= c.ttl:
		delete(c.entries, key)
	}
}

// load executes the read, which has its own timeout, and schedules the removal of the entry.
func (c *sharedCache[K, V]) load(ctx context.Context, key K, e *cacheEntry[V], read func(context.Context) (V, error)) {
	e.value, e.err = read(ctx)
	close(e.done)
	c.mu.Lock()
	ttl := c.ttl
	if c.renew != nil && e.err == nil && c.renewable(e.value) && len(c.entries) <= renewableMost {
		ttl = max(c.ttl, c.renewTTL)
	}
	c.mu.Unlock()
	time.AfterFunc(ttl, func() {
		c.mu.Lock()
		defer c.mu.Unlock()
		if c.entries[key] == e && (e.next == nil || finished(e.next)) { // otherwise refresh replaces it
			delete(c.entries, key)
		}
	})
}

// has reports whether a value of the key, or a read of it, is stored.
func (c *sharedCache[K, V]) has(key K) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	_, ok := c.entries[key]
	return ok
}

// forget drops the entry of a key, so that the next caller reads again.
func (c *sharedCache[K, V]) forget(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	delete(c.entries, key)
}

// invalidate prevents the renewal of a value after its ttl.
func (c *sharedCache[K, V]) invalidate(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if e, ok := c.entries[key]; ok {
		e.invalid = true
	}
}
