package health

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// maxProbes is how many calls, each of a different token, may probe an upstream in one half-open phase. There are several, so
	// that one token whose calls always fail does not keep the circuit open for all.
	maxProbes = 3
	// probeTimeout is how long a probe holds its slot without a report. Its process may have ended.
	probeTimeout = 10 * time.Second
	// maxLastResort is how many calls at a time may try a model of a channel whose circuit is open, when every other channel of the
	// model is open too. maxLastResortOfToken is how many of them may belong to one token.
	maxLastResort        = 16
	maxLastResortOfToken = 4
	// lastResortTimeout is how long such a call holds its slot without a report.
	lastResortTimeout = 2 * time.Minute
	// LastResortRetry is the Retry-After of a call that finds these slots taken.
	LastResortRetry = 2 * time.Second
	// halfOpenTTL is how long a half-open circuit waits for a probe. Without one it closes.
	halfOpenTTL = 10 * time.Minute
)

// circuit stops calls to an upstream that fails. It is open for a cooldown after enough failures, then half-open until a probe decides.
//
// It opens for one token when that token's own calls fail, and for all tokens when the calls of several tokens fail. A token whose latest
// call succeeded a moment ago may always call. A token whose requests make upstreams fail therefore locks out only itself.
//
// The zero value is closed.
type circuit struct {
	// activeUntil is when all recorded failures have expired. Before a circuit has failures, a call costs one atomic load.
	activeUntil atomic.Int64

	mu        sync.Mutex
	all       opening
	histories []history // at most maxHistories
	// lastResort are the calls in progress that had no other channel.
	lastResort [maxLastResort]slot
	// closedAt is when it last closed. Reports of calls that were picked before are ignored.
	closedAt time.Duration
	// startedBy is the token whose failure created the circuit.
	startedBy string
}

// slot is the right of one call to try an upstream that others may not call. It is free when it has expired.
type slot struct {
	token   string
	picked  time.Duration
	expires time.Duration
	// failed: the call has failed. The slot stays taken, so that its token waits for the next cooldown.
	failed bool
}

// freeSlot returns a free slot, nil if there is none or the token has as many as it may have.
func freeSlot(slots []slot, now time.Duration, token string, most int) *slot {
	var free *slot
	own := 0
	for i := range slots {
		switch s := &slots[i]; {
		case s.expires <= now:
			free = s
		case s.token == token:
			own++
		}
	}
	if own >= most {
		return nil
	}
	return free
}

// opening is one opening of a circuit: its cooldown, and the probes of the half-open phase after it. The zero value is none.
type opening struct {
	// since is when it opened. Calls picked before it add nothing. until is when the cooldown ends.
	since, until time.Duration
	access       Access // Deferred, LastResort or Denied
	probes       [maxProbes]slot
}

func (o *opening) open(now, cooldown time.Duration, access Access) {
	*o = opening{since: now, until: now + cooldown, access: access}
}

// over reports whether neither the cooldown nor the half-open phase lasts.
func (o *opening) over(now time.Duration) bool { return o.until == 0 || now >= o.until+halfOpenTTL }

func (o *opening) isHalfOpen(now time.Duration) bool { return !o.over(now) && now >= o.until }

// allows returns the access of a call and the rest of the cooldown. The half-open phase has the given number of probes.
func (o *opening) allows(now time.Duration, token string, probes int) (Access, time.Duration) {
	switch {
	case o.over(now):
		return Allowed, 0
	case now < o.until:
		return o.access, o.until - now
	case o.freeProbe(now, token, probes) != nil:
		return Probe, 0
	case o.access == Deferred:
		return Deferred, 0
	default:
		return LastResort, LastResortRetry
	}
}

// freeProbe returns a free slot for a probe, nil if there is none or the token has one.
func (o *opening) freeProbe(now time.Duration, token string, probes int) *slot {
	return freeSlot(o.probes[:probes], now, token, 1)
}

// tryProbe takes a slot for a probe. It reports whether the token may call.
func (o *opening) tryProbe(now time.Duration, token string, probes int) bool {
	if o.over(now) {
		return true
	}
	if now < o.until {
		return false
	}
	probe := o.freeProbe(now, token, probes)
	if probe == nil {
		return false
	}
	*probe = slot{token: token, expires: now + probeTimeout}
	return true
}

// probeFailed records a failed call of the half-open phase. It reports whether all probes have failed.
func (o *opening) probeFailed(now, cooldown time.Duration, token string) bool {
	o.release(token)
	if free := o.freeProbe(now, token, maxProbes); free != nil {
		*free = slot{token: token, expires: now + cooldown, failed: true}
	}
	for _, probe := range o.probes {
		if !probe.failed || probe.expires <= now {
			return false
		}
	}
	return true
}

func (o *opening) release(token string) {
	for i := range o.probes {
		if probe := &o.probes[i]; probe.token == token && !probe.failed {
			*probe = slot{}
		}
	}
}

// next returns the access at which a failed call opens it now, Allowed if it does not. allProbesFailed is what probeFailed reports.
func (o *opening) next(now, picked time.Duration, verdict Access, allProbesFailed bool) Access {
	switch {
	case o.over(now):
		return verdict
	case now < o.until:
		if verdict > o.access {
			return verdict
		}
	case allProbesFailed && picked > o.since:
		return max(verdict, min(o.access, LastResort))
	}
	return Allowed
}

// allows returns the access of a call of the token and the rest of the cooldown. c may be nil.
func (c *circuit) allows(now time.Duration, token string, rules *rules) (Access, time.Duration) {
	if c == nil || c.quiet(now) {
		return Allowed, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	access, left := c.all.allows(now, token, maxProbes)
	h := c.history(token)
	if h == nil {
		return access, left
	}
	if access != Allowed && h.succeededLast(now, rules) {
		access, left = Allowed, 0
	}
	own, ownLeft := h.own.allows(now, token, 1)
	return max(access, own), max(left, ownLeft)
}

// tryProbe takes a probe if the circuit is half-open. It reports whether the token may call. c may be nil.
func (c *circuit) tryProbe(now time.Duration, token string, rules *rules) bool {
	if c == nil || c.quiet(now) {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	h := c.history(token)
	if h != nil && !h.own.tryProbe(now, token, 1) {
		return false
	}
	return h != nil && h.succeededLast(now, rules) || c.all.tryProbe(now, token, maxProbes)
}

// tryLastResort takes a slot for a call without another channel. It reports whether there was one for the token.
func (c *circuit) tryLastResort(now time.Duration, token string, rules *rules) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	free := freeSlot(c.lastResort[:], now, token, maxLastResortOfToken)
	if free == nil {
		return false
	}
	*free = slot{token: token, picked: now, expires: now + lastResortTimeout}
	c.keepActive(now + lastResortTimeout + rules.window) // so that its report counts
	return true
}

// release releases the slots of a call that has ended. c may be nil.
func (c *circuit) release(now time.Duration, token string, picked time.Duration) {
	if c == nil || c.quiet(now) {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseSlots(token, picked)
}

// releaseSlots is release. The caller holds mu.
func (c *circuit) releaseSlots(token string, picked time.Duration) {
	c.all.release(token)
	if h := c.history(token); h != nil {
		h.own.release(token)
	}
	for i := range c.lastResort {
		if taken := &c.lastResort[i]; taken.picked == picked && taken.token == token {
			*taken = slot{}
			return
		}
	}
}

func (c *circuit) keepActive(until time.Duration) {
	if int64(until) > c.activeUntil.Load() {
		c.activeUntil.Store(int64(until))
	}
}

// failure is a failed call, as a circuit counts it.
type failure struct {
	token  string
	picked time.Duration
	// soft: the answer was late or malformed. Such failures make other channels preferred, and stop no calls.
	soft bool
	// enough is how many such failures of one token open the circuit for that token, 0 for the number of the rules.
	enough int
	// retryAfter is the upstream's Retry-After, 0 for none.
	retryAfter time.Duration
}

// raise returns the access during an opening that the failure caused. If the upstream sent a Retry-After, no call is sent.
func (f *failure) raise(access Access) Access {
	if access == LastResort && f.retryAfter > 0 {
		return Denied
	}
	return access
}

// failed counts a failed call. It returns the cooldown and the access if that has opened the circuit for all tokens.
func (c *circuit) failed(now time.Duration, f failure, rules *rules) (time.Duration, Access) {
	cooldown := rules.cooldown
	if f.retryAfter > 0 {
		cooldown = min(f.retryAfter, maxRetryAfter)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseSlots(f.token, f.picked)
	if f.picked <= c.closedAt {
		return 0, Allowed
	}
	c.keepActive(now + rules.window)
	h := c.historyOf(f.token, now, rules)
	h.add(now, &f, rules)

	if access := h.own.next(now, f.picked, h.verdict(f, rules), true); access > Allowed {
		h.own.open(now, cooldown, f.raise(access))
		c.keepActive(now + cooldown + halfOpenTTL)
	}
	allProbesFailed := c.all.isHalfOpen(now) && f.picked > c.all.since && c.all.probeFailed(now, rules.cooldown, f.token)
	if access := c.all.next(now, f.picked, c.verdict(now, rules), allProbesFailed); access > Allowed {
		access = f.raise(access)
		c.openForAll(now, cooldown, access)
		return cooldown, access
	}
	return 0, Allowed
}

func (c *circuit) openForAll(now, cooldown time.Duration, access Access) {
	c.all.open(now, cooldown, access)
	c.keepActive(now + cooldown + halfOpenTTL)
}

// succeeded counts a call that was answered. It reports whether that closed the circuit for all tokens. c may be nil.
func (c *circuit) succeeded(now time.Duration, token string, picked time.Duration, rules *rules) bool {
	if c == nil || c.quiet(now) {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.releaseSlots(token, picked)
	h := c.historyOf(token, now, rules)
	if picked > h.own.since && h.own.until > 0 {
		*h = history{token: token}
	}
	h.add(now, nil, rules)
	if c.all.over(now) || now < c.all.until || picked <= c.all.since {
		return false
	}
	c.close(now)
	return true
}

// close deletes all failures. The caller holds mu.
func (c *circuit) close(now time.Duration) {
	c.all, c.histories, c.closedAt = opening{}, c.histories[:0], now
}

func (c *circuit) reset(now time.Duration) {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.close(now)
}

// learn applies an event of another process: an opening for all tokens with this rest, or its end if left is 0. c may be nil.
func (c *circuit) learn(now, left time.Duration, access Access) {
	if c == nil {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case left <= 0:
		if !c.all.over(now) {
			c.close(now)
		}
	case now+left > c.all.until:
		c.openForAll(now, left, access)
	}
}

// openSince returns when the circuit opened for all tokens, and whether it is open.
func (c *circuit) openSince(now time.Duration) (time.Duration, bool) {
	if c.quiet(now) {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.since, now < c.all.until && c.all.access > Deferred
}

// quiet reports whether all recorded failures have expired.
func (c *circuit) quiet(now time.Duration) bool { return int64(now) >= c.activeUntil.Load() }
