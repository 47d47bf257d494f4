package fair

import (
	"container/list"
	"sync"
	"time"
)

// CacheBounds are those of a Cache.
type CacheBounds struct {
	// Total is how much all values may hold, Share how much those of one owner.
	Total, Share int
	// Life is how long a value is kept at most; 0: as long as there is room.
	Life time.Duration
}

// Cache keeps values of owners in bounded memory. An owner beyond its share gives up the value that was not read for the longest time;
// beyond the total, the owner that holds the most does. It is safe for concurrent use.
//
// Caches of libraries bound the whole alone: there the values of one owner push out those of all others.
type Cache[O, K comparable, V any] struct {
	bounds CacheBounds

	mu     sync.Mutex
	values map[K]*list.Element // of *cached
	owners map[O]*owner        // that have values
	size   int
}

// owner holds the values of one owner, those that were read last in front.
type owner struct {
	values list.List
	size   int
}

type cached[O, K comparable, V any] struct {
	owner O
	key   K
	value V
	size  int
	since time.Time
}

// NewCache makes a Cache.
func NewCache[O, K comparable, V any](bounds CacheBounds) *Cache[O, K, V] {
	return &Cache[O, K, V]{bounds: bounds, values: make(map[K]*list.Element), owners: make(map[O]*owner)}
}

// Get returns the value of a key; false where there is none.
func (c *Cache[O, K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.values[key]
	if !ok {
		return value, false
	}
	one, _ := at.Value.(*cached[O, K, V])
	if c.bounds.Life > 0 && time.Since(one.since) >= c.bounds.Life {
		c.drop(at)
		return value, false
	}
	c.owners[one.owner].values.MoveToFront(at)
	return one.value, true
}

// Put keeps a value of an owner, which takes so much of its share, in place of the key's last one. A value larger than the share is not
// kept.
func (c *Cache[O, K, V]) Put(of O, key K, value V, size int) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.values[key]; ok {
		c.drop(at)
	}
	if size > c.bounds.Share {
		return
	}
	mine, ok := c.owners[of]
	if !ok {
		mine = new(owner)
		c.owners[of] = mine
	}
	c.values[key] = mine.values.PushFront(&cached[O, K, V]{of, key, value, size, time.Now()})
	mine.size += size
	c.size += size
	for mine.size > c.bounds.Share {
		c.drop(mine.values.Back())
	}
	for c.size > c.bounds.Total {
		most := mine
		for _, other := range c.owners {
			if other.size > most.size {
				most = other
			}
		}
		c.drop(most.values.Back())
	}
}

// Drop forgets the value of a key.
func (c *Cache[O, K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.values[key]; ok {
		c.drop(at)
	}
}

// Size is how much all values hold.
func (c *Cache[O, K, V]) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

// drop forgets a value. The caller holds the lock.
func (c *Cache[O, K, V]) drop(at *list.Element) {
	one, _ := at.Value.(*cached[O, K, V])
	of := c.owners[one.owner]
	of.values.Remove(at)
	of.size -= one.size
	c.size -= one.size
	delete(c.values, one.key)
	if of.values.Len() == 0 {
		delete(c.owners, one.owner)
	}
}
