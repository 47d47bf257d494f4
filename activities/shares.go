package activities

import (
	"math/rand/v2"
	"sync"
	"time"
)

const (
	// Places is how many activities a worker has under way at a time, apart from copies and removals: the default of the SDK.
	Places = 1000
	// tokenShare is how many of the places the submits, looks at jobs and cancels of one token have: an upstream that hangs, or is made to
	// fetch from a server that does, keeps each for up to a minute.
	tokenShare = Places / 2
	// deliveryPlaces are what deliveries have, and deliveryShare those of one token: a receiver that hangs keeps each for half a
	// minute.
	deliveryPlaces = Places / 4
	deliveryShare  = deliveryPlaces / 4
	// noRoomFirst and noRoomMost bound the wait of a delivery that found no room; a cancel waits as long as the first.
	noRoomFirst = 5 * time.Second
	noRoomMost  = 10 * time.Minute
)

// Shares is how much of a kind of work a worker has under way at a time, in all and for one token. Who finds no room comes back
// later, so that nobody's work waits in a place that another's could have. Nil is any amount. Safe for concurrent use.
type Shares struct {
	total, share int

	mu    sync.Mutex
	taken int
	of    map[string]int // by tokens; who has nothing under way is not in it
}

// NewShares makes room for total in all, and for share of one token.
func NewShares(total, share int) *Shares {
	return &Shares{total: total, share: share, of: make(map[string]int)}
}

// UpstreamShares are those of submits, looks at jobs and cancels.
func UpstreamShares() *Shares { return NewShares(Places, tokenShare) }

// DeliveryShares are those of deliveries to webhooks.
func DeliveryShares() *Shares { return NewShares(deliveryPlaces, deliveryShare) }

// Take takes room for one until give is called; false where there is none.
func (s *Shares) Take(token string) (give func(), ok bool) {
	if s == nil {
		return func() {}, true
	}
	return s.take(token, s.share)
}

// TakeAny is Take without the bound of one token's share.
func (s *Shares) TakeAny(token string) (give func(), ok bool) {
	if s == nil {
		return func() {}, true
	}
	return s.take(token, s.total)
}

func (s *Shares) take(token string, share int) (give func(), ok bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.taken >= s.total || s.of[token] >= share {
		return nil, false
	}
	s.taken++
	s.of[token]++
	return func() {
		s.mu.Lock()
		defer s.mu.Unlock()
		s.taken--
		if s.of[token]--; s.of[token] == 0 {
			delete(s.of, token)
		}
	}, true
}

// noRoomWait is how long a delivery that found no room for the n-th time in a row, from 0, stays away.
func noRoomWait(n int) time.Duration {
	return spreadWait(min(noRoomFirst<<min(n, 10), noRoomMost))
}

// spreadWait lengthens a wait at random by spread.
func spreadWait(wait time.Duration) time.Duration {
	return wait + time.Duration(rand.Float64()*spread*float64(wait)) //nolint:gosec // nothing to guess
}
