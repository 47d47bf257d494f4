package health

import (
	"sync"
	"sync/atomic"
	"time"

	"modelrelay/providers"
)

const (
	// cooldownGrowth is the factor by which a cooldown grows if the first call after it fails again.
	cooldownGrowth = 2
	// maxCooldown bounds a grown cooldown.
	maxCooldown = 10 * time.Minute
	// maxRetryAfter bounds the Retry-After of an upstream.
	maxRetryAfter = 15 * time.Minute
	// exhaustedCooldown is the first cooldown of a key without money or quota. The state lasts for hours, and each probe costs an attempt.
	exhaustedCooldown = 5 * time.Minute
	// maxKeyCooldown bounds a grown cooldown of a key that is refused or exhausted.
	maxKeyCooldown = time.Hour
)

// keyCooldown is the cooldown of one key, or of a key for one model. Times are on the monitor's clock, which never shows 0.
type keyCooldown struct {
	// until is when the current or latest cooldown ends; 0 before the first one and after a success.
	until atomic.Int64
	// nextProbe is when the next call may probe the key.
	nextProbe atomic.Int64

	mu sync.Mutex
	// since is when the latest cooldown began. Reports of calls that were picked before are ignored.
	since time.Duration
	// length is the length of the latest cooldown, 0 after a success.
	length time.Duration
}

// allows returns the access of a call and the rest of the cooldown. c may be nil.
func (c *keyCooldown) allows(now time.Duration) (Access, time.Duration) {
	if c == nil {
		return Allowed, 0
	}
	switch until := time.Duration(c.until.Load()); {
	case until == 0:
		return Allowed, 0
	case until > now:
		return Denied, until - now
	case time.Duration(c.nextProbe.Load()) > now:
		return Deferred, 0
	default:
		return Probe, 0
	}
}

// tryProbe takes the probe after a cooldown. It reports whether the call may use the key. c may be nil.
func (c *keyCooldown) tryProbe(now time.Duration) bool {
	if c == nil || c.until.Load() == 0 {
		return true
	}
	next := c.nextProbe.Load()
	return time.Duration(next) <= now && c.nextProbe.CompareAndSwap(next, int64(now+probeTimeout))
}

// failed starts a cooldown, longer than the last if the call was the first after that. It returns the rest, and whether it has changed.
func (c *keyCooldown) failed(now, picked time.Duration, first time.Duration, fault *providers.Fault) (left time.Duration, changed bool) {
	retryAfter := min(fault.RetryAfter, maxRetryAfter)
	first, longest := bounds(first, fault)
	c.mu.Lock()
	defer c.mu.Unlock()
	until := time.Duration(c.until.Load())
	if now < until || (picked <= c.since && c.since > 0) {
		// The key is cooling down already, or the call began before the latest cooldown. Only a Retry-After or an empty account prolongs it.
		end := now + retryAfter
		if fault.Key == providers.KeyExhausted && c.length < first {
			c.length = first
			end = max(end, now+first)
		}
		if end <= now || end <= until {
			return max(until-now, 0), false
		}
		c.until.Store(int64(end))
		return end - now, true
	}
	c.length = max(first, min(cooldownGrowth*c.length, longest))
	left = c.length
	if retryAfter > 0 && (fault.Key != providers.KeyExhausted || retryAfter > left) {
		left = retryAfter
	}
	c.begin(now, now+left)
	return left, true
}

// bounds returns the first and the longest cooldown after a fault.
func bounds(first time.Duration, fault *providers.Fault) (shortest, longest time.Duration) {
	switch fault.Key {
	case providers.KeyExhausted:
		return max(first, exhaustedCooldown), max(first, maxKeyCooldown)
	case providers.KeyRefused:
		return first, max(first, maxKeyCooldown)
	case providers.KeyBusy, providers.KeyForbidden:
	}
	return first, max(first, maxCooldown)
}

// succeeded ends the cooldown, unless the call was picked before it began. It reports whether there was one.
func (c *keyCooldown) succeeded(picked time.Duration) bool {
	if c == nil || c.until.Load() == 0 {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if picked <= c.since {
		return false
	}
	c.length = 0
	c.begin(0, 0)
	return true
}

// begin stores a cooldown. The caller holds mu.
func (c *keyCooldown) begin(since, until time.Duration) {
	c.since = since
	c.nextProbe.Store(0)
	c.until.Store(int64(until))
}

// learn applies an event of another process: a cooldown of this length and rest, or its end if left is 0. c may be nil.
func (c *keyCooldown) learn(now, left, length time.Duration) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	if left <= 0 {
		c.length = 0
		c.begin(0, 0)
		return
	}
	c.length = max(c.length, length)
	if until := now + left; int64(until) > c.until.Load() {
		c.begin(now, until)
	}
}

func (c *keyCooldown) lastLength() time.Duration {
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.length
}
