package tasks

import (
	"sync"
	"time"

	"modelrelay/providers"
	"modelrelay/storage/fair"
)

const (
	// missesPerMinute is how many reads of ids that are no task of its own a token may have looked up at Temporal: ten a
	// second in the long run, far more than clients ask for whose tasks have expired, and too few to slow anybody's creates.
	missesPerMinute = 600
	// missedFor is how long such an id is answered from memory. It is as long as a task that was found is: a removed task
	// whose key makes a new one in another process is seen here as soon as any other change.
	missedFor = readFor
	// missedMost bounds the ids that are remembered of one token; those beyond are looked up again.
	missedMost = 128
	// ownersMost bounds the tasks that are remembered as found, whose reads never count as misses.
	ownersMost = 1 << 16
	// missesForgotten is after how long nothing of a token's misses counts any more.
	missesForgotten = time.Minute
)

// unknownIDs keeps reads of ids that are no task of their token from Temporal. What it remembers of a token is bounded, and
// forgotten a minute after its last miss.
type unknownIDs struct {
	misses fair.Rate[string] // of each token

	mu     sync.Mutex
	tokens map[string]*unknownOf
	owners map[string]string // of tasks that were found or made here, by id
	swept  time.Time
}

// unknownOf are the misses of one token.
type unknownOf struct {
	at   time.Time            // of the last one
	gone map[string]time.Time // ids, and when they were looked up
}

func newUnknownIDs() *unknownIDs {
	return &unknownIDs{tokens: make(map[string]*unknownOf), owners: make(map[string]string)}
}

// admit tells whether a read of the id may ask Temporal: not where that was asked a moment ago, and was no task of the
// token, which is NotFound unless it must be asked anew, and not where the token has missed too often, RateLimited. A task
// that was found here passes.
func (m *unknownIDs) admit(id, tokenID string, anew bool) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	t, ok := m.tokens[tokenID]
	if !ok || m.owners[id] == tokenID {
		return nil
	}
	now := time.Now()
	if at, ok := t.gone[id]; ok && !anew && now.Sub(at) < missedFor {
		return notFound(id)
	}
	if wait := m.misses.Take(tokenID, 0, misses(), now); wait > 0 {
		return &providers.Fault{
			Kind: providers.RateLimited, Message: "Rate limit reached: too many reads of video tasks that do not exist.", RetryAfter: wait,
		}
	}
	return nil
}

func misses() fair.Quota { return fair.Quota{Units: missesPerMinute, Per: time.Minute} }

// found remembers a task of the token.
func (m *unknownIDs) found(id, tokenID string) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if t, ok := m.tokens[tokenID]; ok {
		delete(t.gone, id)
	}
	if m.owners[id] == tokenID {
		return
	}
	if len(m.owners) >= ownersMost {
		for some := range m.owners { // whichever: it is found again when it is read
			delete(m.owners, some)
			break
		}
	}
	m.owners[id] = tokenID
}

// missed counts a read that Temporal answered with no task of the token; readers who may have shared one look are one.
func (m *unknownIDs) missed(id, tokenID string, shared bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	now := time.Now()
	m.sweep(now)
	if m.owners[id] == tokenID { // it was removed
		delete(m.owners, id)
	}
	t, ok := m.tokens[tokenID]
	if !ok {
		t = &unknownOf{gone: make(map[string]time.Time)}
		m.tokens[tokenID] = t
	}
	if at, ok := t.gone[id]; ok && shared && now.Sub(at) < missedFor {
		return
	}
	m.misses.Spend(tokenID, 1, misses(), now)
	t.at = now
	if len(t.gone) >= missedMost {
		for id, at := range t.gone {
			if now.Sub(at) >= missedFor {
				delete(t.gone, id)
			}
		}
	}
	if len(t.gone) < missedMost {
		t.gone[id] = now
	}
}

// sweep forgets tokens that have not missed for long. The caller holds the lock.
func (m *unknownIDs) sweep(now time.Time) {
	if now.Sub(m.swept) < missesForgotten {
		return
	}
	m.swept = now
	for id, t := range m.tokens {
		if now.Sub(t.at) >= missesForgotten {
			delete(m.tokens, id)
		}
	}
}
