package tokens

import (
	"sync"
	"sync/atomic"
	"time"

	lru "github.com/hashicorp/golang-lru/v2"
)

const (
	knownTokens = 20_000          // tokens in memory
	unknownKeys = 10_000          // wrong keys remembered, apart, so that a flood of them evicts no token
	unknownFor  = 5 * time.Second // how long a wrong key is remembered when nothing changes
)

// memory holds the tokens that were asked for, and the keys that are no token's. A record that was read before a change was
// seen is not put there after it.
type memory struct {
	known   *lru.Cache[keySum, *held]
	unknown *lru.Cache[keySum, int64] // until when, in unix nanoseconds

	putting sync.Mutex    // held while a record is put there, and while changes grows
	changes atomic.Uint64 // counts the changes seen
}

func newMemory() *memory {
	m := new(memory)
	m.known, _ = lru.New[keySum, *held](knownTokens) // fails for no size but one below 1
	m.unknown, _ = lru.New[keySum, int64](unknownKeys)
	return m
}

// token is the token of a key; false: it is not here.
func (m *memory) token(sum keySum) (*held, bool) { return m.known.Get(sum) }

// isUnknown reports whether the key was no token's a moment ago.
func (m *memory) isUnknown(sum keySum, now time.Time) bool {
	until, ok := m.unknown.Get(sum)
	return ok && now.UnixNano() < until
}

// put takes what was read of a key, nil for no token, unless a change was seen since there were so many.
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

// change says that a change was seen: what was read earlier is no longer put here.
func (m *memory) change() {
	m.putting.Lock()
	defer m.putting.Unlock()
	m.changes.Add(1)
}

// recall forgets which keys are no token's, and returns those of the tokens that are here.
func (m *memory) recall() []keySum {
	m.unknown.Purge()
	return m.known.Keys()
}

// refresh takes what is in Redis now.
func (m *memory) refresh(r record) {
	m.unknown.Remove(r.sum)
	if r.raw == "" {
		m.known.Remove(r.sum)
	} else if m.known.Contains(r.sum) { // what no call asked for takes no other's place
		m.known.Add(r.sum, hold(&r.token))
	}
}
