package edge

import (
	"sync"
	"time"

	"modelrelay/providers"
)

const (
	// DefaultBodyMemory is Options.BodyMemory where nobody says it: enough for sixteen of the largest bodies.
	DefaultBodyMemory = 16 * DefaultMaxBody
	// bodyShare is which part of all memory for bodies one token may hold: a half, so that another's largest body finds
	// room beside it.
	bodyShare = 2
	// bodyRetry is what a caller whose body finds no room is told to wait: most bodies are sent on within a second.
	bodyRetry = time.Second
)

// bodyMemory bounds the request bodies under way, together and for each token. A body counts from when its memory is
// taken until an upstream has begun to answer, or its request is over; not what its reading copies in between. The
// callers of the map are authenticated, and one without bodies leaves it.
type bodyMemory struct {
	most, share int64

	mu   sync.Mutex
	all  int64
	held map[string]int64 // by token id, above 0
}

func newBodyMemory(most int64) *bodyMemory {
	return &bodyMemory{most: most, share: most / bodyShare, held: make(map[string]int64)}
}

// take counts n bytes of a token. The error is a fault: RateLimited where the token has its share, Overloaded where all
// of the memory is taken. Negative bytes are given back, which never fails.
func (m *bodyMemory) take(token string, n int64) error {
	m.mu.Lock()
	defer m.mu.Unlock()
	held := m.held[token] + n
	switch {
	case n > 0 && held > m.share:
		return &providers.Fault{
			Kind: providers.RateLimited, RetryAfter: bodyRetry,
			Message: "Rate limit reached: the request bodies of this API key that are under way are too large together.",
		}
	case n > 0 && m.all+n > m.most:
		return &providers.Fault{
			Kind: providers.Overloaded, RetryAfter: bodyRetry,
			Message: "There is no room for the request body at the moment: too many are under way.",
		}
	}
	m.all += n
	if held <= 0 {
		delete(m.held, token)
	} else {
		m.held[token] = held
	}
	return nil
}

// taken is what all bodies hold now.
func (m *bodyMemory) taken() int64 {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.all
}

// growBody counts n bytes more of the request's body.
func (x *Request) growBody(n int) error {
	err := x.Hold(n)
	if err != nil {
		x.Outcome.Refused = LimitBodies
	}
	return err
}

// Hold counts n bytes more that the request holds as its body's. The error is a fault: there is no room for them.
func (x *Request) Hold(n int) error {
	if err := x.edge.bodies.take(x.Caller.ID, int64(n)); err != nil {
		return err
	}
	x.held += int64(n)
	return nil
}

// ReleaseBody gives back what the request held. The second time nothing happens.
func (x *Request) ReleaseBody() {
	if x.held > 0 {
		_ = x.edge.bodies.take(x.Caller.ID, -x.held) // giving back never fails
		x.held = 0
	}
}
