package providers

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// restGrowth is the factor by which a rest grows when the first call after it fails again.
	restGrowth = 2
	// maxRest bounds a grown rest.
	maxRest = 10 * time.Minute
	// maxRetryAfter bounds how long an upstream's own Retry-After is believed.
	maxRetryAfter = 15 * time.Minute
)

// rest is the cool-down of one channel or one key. Times are on the router's clock, whose zero is never.
type rest struct {
	// until is when the current or last rest ends; 0 before the first one.
	until atomic.Int64

	mu sync.Mutex
	// since is when the last rest began. Calls picked before it know nothing that the rest does not.
	since time.Duration
	// length is what the last rest measured, 0 after a success.
	length time.Duration
}

// left is how long the rest still lasts, 0 or less when there is none.
func (r *rest) left(now time.Duration) time.Duration {
	return time.Duration(r.until.Load()) - now
}

// failed starts a rest, or a longer one when the call was the first since the last. retryAfter, where the upstream
// gave one, outweighs our own length.
func (r *rest) failed(now, picked, first, retryAfter time.Duration) {
	retryAfter = min(retryAfter, maxRetryAfter)
	r.mu.Lock()
	defer r.mu.Unlock()
	if now < time.Duration(r.until.Load()) || (picked <= r.since && r.since > 0) {
		// It rests already, or the call began before the last rest: only the upstream's own word is news.
		if until := int64(now + retryAfter); retryAfter > 0 && until > r.until.Load() {
			r.until.Store(until)
		}
		return
	}
	if r.length == 0 {
		r.length = first
	} else {
		r.length = min(restGrowth*r.length, max(maxRest, first))
	}
	length := r.length
	if retryAfter > 0 {
		length = retryAfter
	}
	r.since = now
	r.until.Store(int64(now + length))
}

// succeeded ends what failures began, unless the call was picked before the last rest.
func (r *rest) succeeded(picked time.Duration) {
	if r.until.Load() == 0 {
		return
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if picked > r.since {
		r.length = 0
		r.since = 0
		r.until.Store(0)
	}
}
