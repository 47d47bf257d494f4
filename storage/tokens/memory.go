package tokens

import (
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	knownTokens = 20_000          // tokens in memory
	unknownKeys = 10_000          // cached wrong keys, in their own cache, so that a flood of them evicts no token
	unknownFor  = 5 * time.Second // how long a wrong key is cached if no token changes
)

// memory caches the tokens in use, and keys without a token. put does not store a record that was read before a change was seen.
type memory struct {
	known   *lru.Cache[keySum, *held]
	unknown *lru.Cache[keySum, int64] // expiry, in unix nanoseconds

	putting sync.Mutex    // held during put and change
	changes atomic.Uint64 // counts the changes seen
}

func newMemory() *memory {
	m := new(memory)
	m.known, _ = lru.New[keySum, *held](knownTokens) // fails only for a size below 1
	m.unknown, _ = lru.New[keySum, int64](unknownKeys)
	return m
}

// token returns the token of a key; false: it is not cached.
func (m *memory) token(sum keySum) (*held, bool) { return m.known.Get(sum) }

// isUnknown reports whether no token had the key a moment ago.
func (m *memory) isUnknown(sum keySum, now time.Time) bool {
	until, ok := m.unknown.Get(sum)
	return ok && now.UnixNano() < until
}

// put stores the token that was read for a key, nil for none, unless the number of changes is no longer the given one.
func (m *memory) put(sum keySum, token *held, changes uint64) {
	m.putting.Lock()
	defer m.putting.Unlock()
	switch {
	case m.changes.Load() != changes:
	case token == nil:
		m.unknown.Add(sum, time.Now().Add(unknownFor).UnixNano())
	default:
		m.known.Add(sum, token)
	}
}

// change records that a change was seen: put does not store earlier reads after it.
func (m *memory) change() {
	m.putting.Lock()
	defer m.putting.Unlock()
	m.changes.Add(1)
}

// reset drops the keys without a token, and returns the keys of the cached tokens.
func (m *memory) reset() []keySum {
	m.unknown.Purge()
	return m.known.Keys()
}

// refresh updates a key with its record from Redis.
func (m *memory) refresh(r record) {
	m.unknown.Remove(r.sum)
	if r.raw == "" {
		m.known.Remove(r.sum)
	} else if m.known.Contains(r.sum) { // a token that is not in use must not evict one that is
		m.known.Add(r.sum, hold(&r.token))
	}
}
