package fair

import (
	"container/list"
	"sync"
	"time"
)

// CacheBounds configure a Cache.
type CacheBounds struct {
	// Total is the maximal size of all values, Share that of one owner's values, in the unit of Put.
	Total, Share int
	// TTL is the maximal age of a value; 0: no limit.
	TTL time.Duration
}

// Cache stores values of owners in bounded memory. An owner above its share loses its least recently used value; above the total, the
// largest owner does. It is safe for concurrent use.
//
// Caches of libraries only bound the total: there, the values of one owner evict those of all others.
type Cache[O, K comparable, V any] struct {
	bounds CacheBounds

	mu     sync.Mutex
	values map[K]*list.Element // of *cached
	owners map[O]*owner        // that have values
	size   int
}

// owner holds the values of one owner, the most recently used first.
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

// Get returns the value of a key; false: there is none.
func (c *Cache[O, K, V]) Get(key K) (value V, ok bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	at, ok := c.values[key]
	if !ok {
		return value, false
	}
	one, _ := at.Value.(*cached[O, K, V])
	if c.bounds.TTL > 0 && time.Since(one.since) >= c.bounds.TTL {
		c.drop(at)
		return value, false
	}
	c.owners[one.owner].values.MoveToFront(at)
	return one.value, true
}

// Put stores a value of an owner, and replaces the key's last value. size counts against the owner's share; a larger value is not stored.
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

// Drop removes the value of a key.
func (c *Cache[O, K, V]) Drop(key K) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if at, ok := c.values[key]; ok {
		c.drop(at)
	}
}

// Size returns the size of all values.
func (c *Cache[O, K, V]) Size() int {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.size
}

// drop removes a value. The caller holds the lock.
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
