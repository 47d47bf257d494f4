package edge

import (
	"errors"
	"sync"
	"time"

	"modelrelay/providers"
	"modelrelay/storage/fair"
)

const (
	// DefaultBodyMemory is the default of Options.BodyMemory: sixteen of the largest bodies.
	DefaultBodyMemory = 16 * DefaultMaxBody
	// bodyShare is the divisor of the memory that the bodies of one token may hold. It leaves memory for the largest body of another token.
	bodyShare = 2
	// backgroundShare is the divisor of the memory for bodies that background calls may hold: for long, while other clients wait.
	backgroundShare = 2
	// bodyRetry is the Retry-After of a caller without memory for its body. Most bodies are sent upstream within a second.
	bodyRetry = time.Second
)

// bodyMemory bounds the bytes of the request bodies in memory, in total and for each token. A body counts from its allocation until an
// upstream begins to answer or the request ends. Temporary copies during its read do not count.
func bodyMemory(most int64) *fair.Semaphore[string] {
	return fair.New[string](fair.Bounds{Total: most, Share: most / bodyShare})
}

// growBody is Hold for the body of the request. It records a refusal as the limit of bodies.
func (x *Request) growBody(n int) error {
	err := x.Hold(n)
	if err != nil {
		x.Outcome.Refused = LimitBodies
	}
	return err
}

// Hold reserves n more bytes of the memory for bodies. The fault is RateLimited above the token's share, Overloaded if none is left.
func (x *Request) Hold(n int) error {
	err := x.edge.hold(x.Caller.ID, int64(n), x.presence.background())
	switch {
	case errors.Is(err, fair.ErrShare):
		return &providers.Fault{
			Kind: providers.RateLimited, RetryAfter: bodyRetry,
			Message: "Rate limit reached: the request bodies of this API key in progress are too large together.",
		}
	case err != nil:
		return &providers.Fault{
			Kind: providers.Overloaded, RetryAfter: bodyRetry,
			Message: "The gateway has no memory for the request body at the moment: too many are in progress.",
		}
	}
	x.held += int64(n)
	return nil
}

// hold counts n bytes of a token, and unhold releases them. background: they belong to a background call.
func (e *Edge) hold(token string, n int64, background bool) error {
	err := e.bodies.Try(token, n)
	if err == nil && background {
		if err = e.backgroundBodies.Try(token, n); err != nil {
			e.bodies.Release(token, n)
		}
	}
	return err
}

func (e *Edge) unhold(token string, n int64, background bool) {
	e.bodies.Release(token, n)
	if background {
		e.backgroundBodies.Release(token, n)
	}
}

// HoldBackground counts n bytes that the worker of a token's call holds until release. The error is fair.ErrShare or fair.ErrFull.
func (e *Edge) HoldBackground(token string, n int64) (release func(), err error) {
	if err := e.hold(token, n, true); err != nil {
		return nil, err
	}
	return sync.OnceFunc(func() { e.unhold(token, n, true) }), nil
}

// FitBody reserves memory for a body of n bytes that replaces the request's own. The fault is TooLarge above the limit, or Hold's.
func (x *Request) FitBody(n int) error {
	if most := x.edge.options.MaxBody; int64(n) > most {
		return tooLarge(most)
	}
	return x.growBody(n)
}

// ReleaseBody releases the memory of the request's body. It is idempotent.
func (x *Request) ReleaseBody() { x.ShrinkBody(0) }

// ShrinkBody releases the memory of the request's body above n bytes.
func (x *Request) ShrinkBody(n int) {
	if more := x.held - int64(n); more > 0 {
		x.edge.unhold(x.Caller.ID, more, x.presence.background())
		x.held = int64(n)
	}
}
