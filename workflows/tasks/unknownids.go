package tasks

import (
	"time"

	lru "github.com/hashicorp/golang-lru/v2"

	"modelrelay/providers"
	"modelrelay/storage/fair"
)

const (
	// missesPerMinute is the number of reads of unknown ids that reach Temporal for a token: far more than clients need.
	missesPerMinute = 600
	// missedFor is how long an unknown id is cached, as long as a task: another process may create one with the id.
	missedFor = readTTL
	// missedShare bounds the cached ids of one token, missedMost those of all. Others are read again.
	missedShare = 128
	missedMost  = 64 * missedShare
	// ownersMost bounds the cached owners of tasks, whose reads never count as misses.
	ownersMost = 1 << 16
)

// unknownIDs limits the reads of ids that are not tasks of the token.
type unknownIDs struct {
	misses fair.Rate[string]                       // of each token
	gone   *fair.Cache[string, missedID, struct{}] // ids of recent misses, by token

	owners *lru.Cache[string, string] // tokens of tasks that this process found or created, by id
}

type missedID struct{ id, token string }

func newUnknownIDs() *unknownIDs {
	bounds := fair.CacheBounds{Total: missedMost, Share: missedShare, TTL: missedFor}
	owners, _ := lru.New[string, string](ownersMost) // fails only for a size below 1
	return &unknownIDs{gone: fair.NewCache[string, missedID, struct{}](bounds), owners: owners}
}

// admit checks whether a read of the id may reach Temporal. It returns NotFound if a recent read found no task of the token, unless
// anew, and RateLimited if the token had too many misses. A task that this process has found passes.
func (m *unknownIDs) admit(id, tokenID string, anew bool) error {
	if owner, _ := m.owners.Get(id); owner == tokenID {
		return nil
	}
	if _, gone := m.gone.Get(missedID{id, tokenID}); gone && !anew {
		return notFound(id)
	}
	if wait := m.misses.Take(tokenID, 0, misses(), time.Now()); wait > 0 {
		return &providers.Fault{
			Kind: providers.RateLimited, Message: "Rate limit reached: too many reads of tasks that do not exist.", RetryAfter: wait,
		}
	}
	return nil
}

func misses() fair.Quota { return fair.Quota{Units: missesPerMinute, Per: time.Minute} }

func (m *unknownIDs) found(id, tokenID string) {
	m.gone.Drop(missedID{id, tokenID})
	m.owners.Add(id, tokenID)
}

// missed counts a read that found no task of the token. Reads that may have shared one request count once.
func (m *unknownIDs) missed(id, tokenID string, shared bool) {
	if owner, _ := m.owners.Peek(id); owner == tokenID { // the task was removed
		m.owners.Remove(id)
	}
	at := missedID{id, tokenID}
	if _, gone := m.gone.Get(at); gone && shared {
		return
	}
	m.misses.Spend(tokenID, 1, misses(), time.Now())
	m.gone.Put(tokenID, at, struct{}{}, 1)
}
