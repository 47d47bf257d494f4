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
	// missedShare bounds the ids that are remembered of one token, missedMost those of all; those beyond are looked up again.
	missedShare = 128
	missedMost  = 64 * missedShare
	// ownersMost bounds the tasks that are remembered as found, whose reads never count as misses.
	ownersMost = 1 << 16
)

// unknownIDs keeps reads of ids that are no task of their token from Temporal.
type unknownIDs struct {
	misses fair.Rate[string]                       // of each token
	gone   *fair.Cache[string, missedID, struct{}] // that were looked up a moment ago, of tokens

	mu     sync.Mutex
	owners map[string]string // of tasks that were found or made here, by id
}

// missedID is an id that is no task of the token.
type missedID struct{ id, token string }

func newUnknownIDs() *unknownIDs {
	bounds := fair.CacheBounds{Total: missedMost, Share: missedShare, Life: missedFor}
	return &unknownIDs{gone: fair.NewCache[string, missedID, struct{}](bounds), owners: make(map[string]string)}
}

// admit reports whether a read of the id may ask Temporal: not where that was asked a moment ago, and was no task of the
// token, which is NotFound unless it must be asked anew, and not where the token has missed too often, RateLimited. A task
// that was found here passes.
func (m *unknownIDs) admit(id, tokenID string, anew bool) error {
	m.mu.Lock()
	owned := m.owners[id] == tokenID
	m.mu.Unlock()
	if owned {
		return nil
	}
	if _, gone := m.gone.Get(missedID{id, tokenID}); gone && !anew {
		return notFound(id)
	}
	if wait := m.misses.Take(tokenID, 0, misses(), time.Now()); wait > 0 {
		return &providers.Fault{
			Kind: providers.RateLimited, Message: "Rate limit reached: too many reads of video tasks that do not exist.", RetryAfter: wait,
		}
	}
	return nil
}

func misses() fair.Quota { return fair.Quota{Units: missesPerMinute, Per: time.Minute} }

// found remembers a task of the token.
func (m *unknownIDs) found(id, tokenID string) {
	m.gone.Drop(missedID{id, tokenID})
	m.mu.Lock()
	defer m.mu.Unlock()
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
	if m.owners[id] == tokenID { // it was removed
		delete(m.owners, id)
	}
	m.mu.Unlock()
	at := missedID{id, tokenID}
	if _, gone := m.gone.Get(at); gone && shared {
		return
	}
	m.misses.Spend(tokenID, 1, misses(), time.Now())
	m.gone.Put(tokenID, at, struct{}{}, 1)
}
