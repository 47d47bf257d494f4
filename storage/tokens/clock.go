package tokens

import (
	"crypto/sha256"
	"encoding/hex"
	"sync"
	"sync/atomic"
)

// keySum is the SHA-256 of a token's key, the form in which keys are compared in memory.
type keySum [sha256.Size]byte

// sumOf hashes a key of at most maxKey bytes without an allocation.
func sumOf(key string) keySum {
	var buf [maxKey]byte
	return sha256.Sum256(buf[:copy(buf[:], key)])
}

func (s keySum) String() string { return hex.EncodeToString(s[:]) }

func parseKeySum(text string) (keySum, bool) {
	var s keySum
	n, err := hex.Decode(s[:], []byte(text))
	return s, err == nil && n == len(s) && len(text) == 2*len(s)
}

// clock is a map by key sum that holds a bounded number of values: when it is full, a value that was not asked for
// since the hand last passed goes. Reading allocates nothing.
type clock[V any] struct {
	shards [16]clockShard[V]
}

type clockShard[V any] struct {
	mu    sync.RWMutex
	index map[keySum]*clockSlot[V]
	ring  []*clockSlot[V]
	hand  int
	most  int
}

type clockSlot[V any] struct {
	sum   keySum
	value V
	used  atomic.Bool
	at    int // place in the ring
}

func newClock[V any](most int) *clock[V] {
	c := new(clock[V])
	for i := range c.shards {
		c.shards[i].most = max(1, most/len(c.shards))
		c.shards[i].index = make(map[keySum]*clockSlot[V])
	}
	return c
}

func (c *clock[V]) shard(sum keySum) *clockShard[V] { return &c.shards[sum[0]%16] }

func (c *clock[V]) get(sum keySum) (V, bool) {
	s := c.shard(sum)
	s.mu.RLock()
	defer s.mu.RUnlock()
	slot, ok := s.index[sum]
	if !ok {
		var none V
		return none, false
	}
	if !slot.used.Load() {
		slot.used.Store(true)
	}
	return slot.value, true
}

// put stores a value unless valid, asked while nobody else can change this part of the map, says no.
func (c *clock[V]) put(sum keySum, value V, valid func() bool) {
	s := c.shard(sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	if !valid() {
		return
	}
	if slot, ok := s.index[sum]; ok {
		slot.value = value
		return
	}
	slot := &clockSlot[V]{sum: sum, value: value}
	if len(s.ring) < s.most {
		slot.at = len(s.ring)
		s.ring = append(s.ring, slot)
	} else {
		for s.ring[s.hand].used.Swap(false) {
			s.hand = (s.hand + 1) % len(s.ring)
		}
		delete(s.index, s.ring[s.hand].sum)
		slot.at = s.hand
		s.ring[s.hand] = slot
		s.hand = (s.hand + 1) % len(s.ring)
	}
	s.index[sum] = slot
}

// replace changes a value that is there.
func (c *clock[V]) replace(sum keySum, value V) {
	s := c.shard(sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	if slot, ok := s.index[sum]; ok {
		slot.value = value
	}
}

func (c *clock[V]) remove(sum keySum) {
	s := c.shard(sum)
	s.mu.Lock()
	defer s.mu.Unlock()
	slot, ok := s.index[sum]
	if !ok {
		return
	}
	delete(s.index, sum)
	last := len(s.ring) - 1
	s.ring[slot.at] = s.ring[last]
	s.ring[slot.at].at = slot.at
	s.ring[last] = nil
	s.ring = s.ring[:last]
	if s.hand >= len(s.ring) {
		s.hand = 0
	}
}

func (c *clock[V]) sums() []keySum {
	var all []keySum
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.RLock()
		for sum := range s.index {
			all = append(all, sum)
		}
		s.mu.RUnlock()
	}
	return all
}

func (c *clock[V]) clear() {
	for i := range c.shards {
		s := &c.shards[i]
		s.mu.Lock()
		clear(s.index)
		s.ring, s.hand = nil, 0
		s.mu.Unlock()
	}
}
