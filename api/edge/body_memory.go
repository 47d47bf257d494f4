package edge

import (
	"errors"
	"time"

	"modelrelay/providers"
	"modelrelay/storage/fair"
)

const (
	// DefaultBodyMemory is Options.BodyMemory if it is not set: enough for sixteen of the largest bodies.
	DefaultBodyMemory = 16 * DefaultMaxBody
	// bodyShare is which part of all memory for bodies one token may hold: a half, so that another's largest body finds
	// room next to it.
	bodyShare = 2
	// backgroundShare is which part background calls may hold, which keep their bodies as long as their upstreams work: a half, so that the
	// other half is for clients that wait.
	backgroundShare = 2
	// bodyRetry is the Retry-After of a caller whose body finds no room: most bodies are sent on within a second.
	bodyRetry = time.Second
)

// bodyMemory bounds the request bodies under way, together and for each token, in bytes. A body counts from when its memory is taken until
// an upstream has begun to answer, or its request has ended; not what its reading copies in between.
func bodyMemory(most int64) *fair.Semaphore[string] {
	return fair.New[string](fair.Bounds{Total: most, Share: most / bodyShare})
}

// growBody counts n bytes more of the request's body.
func (x *Request) growBody(n int) error {
	err := x.Hold(n)
	if err != nil {
		x.Outcome.Refused = LimitBodies
	}
	return err
}

// Hold counts n bytes more that the request holds as its body's. The error is a fault, because there is no room for them: RateLimited where
// the token holds its share, Overloaded where all of the memory is held.
func (x *Request) Hold(n int) error {
	err := x.edge.bodies.Try(x.Caller.ID, int64(n))
	if err == nil && x.presence.background() {
		if err = x.edge.backgroundBodies.Try(x.Caller.ID, int64(n)); err != nil {
			x.edge.bodies.Release(x.Caller.ID, int64(n))
		}
	}
	switch {
	case errors.Is(err, fair.ErrShare):
		return &providers.Fault{
			Kind: providers.RateLimited, RetryAfter: bodyRetry,
			Message: "Rate limit reached: the request bodies of this API key that are under way are too large together.",
		}
	case err != nil:
		return &providers.Fault{
			Kind: providers.Overloaded, RetryAfter: bodyRetry,
			Message: "There is no room for the request body at the moment: too many are under way.",
		}
	}
	x.held += int64(n)
	return nil
}

// FitBody counts a body of n bytes that the gateway makes of the request's own. The error is a fault: TooLarge for a body above the limit of
// all bodies, and those of Hold.
func (x *Request) FitBody(n int) error {
	if most := x.edge.options.MaxBody; int64(n) > most {
		return tooLarge(most)
	}
	return x.growBody(n)
}

// ReleaseBody gives back what the request held. The second time nothing happens.
func (x *Request) ReleaseBody() { x.ShrinkBody(0) }

// ShrinkBody gives back what the request held above n bytes.
func (x *Request) ShrinkBody(n int) {
	if more := x.held - int64(n); more > 0 {
		x.edge.bodies.Release(x.Caller.ID, more)
		if x.presence.background() {
			x.edge.backgroundBodies.Release(x.Caller.ID, more)
		}
		x.held = int64(n)
	}
}
