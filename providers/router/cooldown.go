package router

import (
	"sync"
	"sync/atomic"
	"time"

	"modelrelay/providers"
)

const (
	// restGrowth is the factor by which a cooldown grows when the first call after it fails again.
	cooldownGrowth = 2
	// maxRest bounds a grown cooldown.
	maxCooldown = 10 * time.Minute
	// maxRetryAfter bounds how long an upstream's own Retry-After is believed.
	maxRetryAfter = 15 * time.Minute
	// exhaustedRest is the first cooldown of a key without money or quota: nothing changes until its owner pays or a day ends,
	// and every look costs a client's call an attempt.
	exhaustedCooldown = 5 * time.Minute
	// maxKeyRest bounds a grown cooldown of a key that is refused or exhausted. It is how long a key that works again may wait
	// for the look that finds out.
	maxKeyCooldown = time.Hour
)

// keyCooldown is the cooldown of one key, or of a key for one model, after the upstream itself said that it is of no use now: no
// evidence is needed. Times are on the router's clock, whose zero is never.
type keyCooldown struct {
	// until is when the current or last cooldown ends; 0 before the first one and after a success.
	until atomic.Int64
	// probe is from when the next call may try whether the cooldown has helped.
	probe atomic.Int64

	mu sync.Mutex
	// since is when the last cooldown began. Calls picked before it know nothing that the cooldown does not.
	since time.Duration
	// length is what the last cooldown measured, 0 after a success.
	length time.Duration
}

// standing also tells how long the cooldown still lasts, 0 when there is none.
func (r *keyCooldown) standing(now time.Duration) (standing, time.Duration) {
	switch until := time.Duration(r.until.Load()); {
	case until == 0:
		return closed, 0
	case until > now:
		return barred, until - now
	case time.Duration(r.probe.Load()) > now:
		return deferred, 0
	default:
		return halfOpen, 0
	}
}

// try takes the place of the one call after a cooldown; false when another has taken it. Without a cooldown there is nothing to
// take, and it is true.
func (r *keyCooldown) try(now time.Duration) bool {
	if r.until.Load() == 0 {
		return true
	}
	probe := r.probe.Load()
	return time.Duration(probe) <= now && r.probe.CompareAndSwap(probe, int64(now+probePatience))
}

// failed starts a cooldown, or a longer one when the call was the first since the last. It tells how long it now lasts and
// whether that is news.
func (r *keyCooldown) failed(now, picked time.Duration, first time.Duration, fault *providers.Fault) (left time.Duration, news bool) {
	retryAfter := min(fault.RetryAfter, maxRetryAfter)
	first, most := bounds(first, fault)
	r.mu.Lock()
	defer r.mu.Unlock()
	until := time.Duration(r.until.Load())
	if now < until || (picked <= r.since && r.since > 0) {
		// It is cooling down already, or the call began before the last cooldown: only the upstream's own word is news, or that there is no
		// money.
		known := now + retryAfter
		if fault.Key == providers.KeyExhausted && r.length < first {
			r.length = first
			known = max(known, now+first)
		}
		if known <= now || known <= until {
			return max(until-now, 0), false
		}
		r.until.Store(int64(known))
		return known - now, true
	}
	r.length = max(first, min(cooldownGrowth*r.length, most))
	left = r.length
	if retryAfter > 0 && (fault.Key != providers.KeyExhausted || retryAfter > left) {
		left = retryAfter
	}
	r.since = now
	r.probe.Store(0)
	r.until.Store(int64(now + left))
	return left, true
}

// bounds are the first and the longest cooldown after a fault.
func bounds(first time.Duration, fault *providers.Fault) (least, most time.Duration) {
	switch fault.Key {
	case providers.KeyExhausted:
		return max(first, exhaustedCooldown), max(first, maxKeyCooldown)
	case providers.KeyRefused:
		return first, max(first, maxKeyCooldown)
	case providers.KeyBusy, providers.KeyForbidden:
	}
	return first, max(first, maxCooldown)
}

// succeeded ends what failures began, unless the call was picked before the last cooldown. It tells whether there was
// something to end.
func (r *keyCooldown) succeeded(picked time.Duration) bool {
	if r.until.Load() == 0 {
		return false
	}
	r.mu.Lock()
	defer r.mu.Unlock()
	if picked <= r.since {
		return false
	}
	r.end()
	return true
}

// end forgets the cooldown. The caller holds mu.
func (r *keyCooldown) end() {
	r.length = 0
	r.since = 0
	r.probe.Store(0)
	r.until.Store(0)
}

// learn takes over what another process knows: a cooldown of which so much is left, or, with nothing left, its end.
func (r *keyCooldown) learn(now, left, length time.Duration) {
	r.mu.Lock()
	defer r.mu.Unlock()
	if left <= 0 {
		r.end()
		return
	}
	r.length = max(r.length, length)
	if until := int64(now + left); until > r.until.Load() {
		r.since = now
		r.probe.Store(0)
		r.until.Store(until)
	}
}

// measure is what the current cooldown measures, for others to learn.
func (r *keyCooldown) measure() time.Duration {
	r.mu.Lock()
	defer r.mu.Unlock()
	return r.length
}
