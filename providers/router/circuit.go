package router

import (
	"sync"
	"sync/atomic"
	"time"
)

const (
	// probesMost is how many calls, each of another token, may try an upstream in one half-open phase before the circuit opens again.
	// Several, so that one token whose calls fail everywhere cannot hold a circuit open that would close for the next.
	maxProbes = 3
	// probePatience is how long a probe may take to tell how it went. After that another call may try: the process that has
	// the first one may be gone.
	probePatience = 10 * time.Second
	// lastResortMost is how many calls at a time may try a channel's model while every channel of the model is open, and
	// lastResortOfToken how many of them are of one token: enough to notice that something works again, few enough to spare
	// an upstream that is down.
	maxLastResort        = 16
	maxLastResortOfToken = 4
	// lastResortPatience is how long such a call counts that never tells how it went.
	lastResortPatience = 2 * time.Minute
	// lastResortRetry is what a call is told to wait for that finds those places taken.
	lastResortRetry = 2 * time.Second
	// halfOpenLife is how long a half-open circuit waits for its probe. One that nobody calls for that long is closed.
	halfOpenLife = 10 * time.Minute
)

// standing says whether a channel, a model or a key may be used. The order is that of preference.
type standing int

const (
	// closed: nothing speaks against it.
	closed standing = iota
	// halfOpen: its cooldown is over, and this call may probe it.
	halfOpen
	// deferred: others come first. It is slow to answer, or a key that another call probes after its cooldown.
	deferred
	// open: it fails. It is tried only where nothing else is left, by a few calls at a time.
	open
	// barred: the upstream itself said that it is not to be called.
	barred
)

// circuit stops calls to an upstream that fails: closed at first; open, for a cooldown, once the evidence is against it;
// then half-open, until a probe closes it or opens it again.
//
// It is open for a token whose own calls alone speak against it, or for all when the calls of several tokens agree. A token
// whose last call succeeded a moment ago is let through in any case: what fails there are the others' calls. So a token whose
// requests make upstreams fail shuts out nobody but itself.
//
// The zero value is closed.
type circuit struct {
	// activeUntil is until when there is something to look at or to count. A quiet circuit costs a call one atomic load.
	activeUntil atomic.Int64

	mu      sync.Mutex
	all     opening
	records []record // at most maxRecords
	// last are the calls under way that try it because nothing else is left.
	last [maxLastResort]trial
	// cleared is when it last closed. What calls that were picked before say is old.
	cleared time.Duration
	// by is the token whose fault began it.
	by string
}

// trial is a call that was let through where others are not.
type trial struct {
	token  string
	picked time.Duration
	// expires is when the place is another's, 0 for none.
	expires time.Duration
	// failed: it has told how it went, and its token waits for the next cooldown.
	failed bool
}

// opening is one opening of a circuit: its cooldown, and the probes of the half-open phase after it.
type opening struct {
	// since is when it last opened; calls picked before know nothing that it does not. until is when the cooldown ends,
	// 0 while it is closed.
	since, until time.Duration
	level        standing // deferred, open or barred
	probes       [maxProbes]trial
}

func (s *opening) open(now, left time.Duration, level standing) {
	*s = opening{since: now, until: now + left, level: level}
}

// over tells whether nothing is left of it.
func (s *opening) over(now time.Duration) bool { return s.until == 0 || now >= s.until+halfOpenLife }

// standing also tells how long the cooldown still lasts. most is how many probes the half-open phase has.
func (s *opening) standing(now time.Duration, token string, most int) (standing, time.Duration) {
	switch {
	case s.over(now):
		return closed, 0
	case now < s.until:
		return s.level, s.until - now
	case s.free(now, token, most) != nil:
		return halfOpen, 0
	case s.level == deferred:
		return deferred, 0
	default:
		return open, lastResortRetry
	}
}

// free is a place for a probe of the token, nil where there is none: each token has one.
func (s *opening) free(now time.Duration, token string, most int) *trial {
	var free *trial
	for i := range s.probes[:most] {
		switch probe := &s.probes[i]; {
		case probe.expires <= now:
			free = probe
		case probe.token == token:
			return nil
		}
	}
	return free
}

// failed notes a failed call of the half-open phase, and tells whether no probe is left for any token.
func (s *opening) failed(now, cooldown time.Duration, token string) bool {
	s.leave(token)
	if place := s.free(now, token, maxProbes); place != nil {
		*place = trial{token: token, expires: now + cooldown, failed: true}
	}
	for _, probe := range s.probes {
		if !probe.failed || probe.expires <= now {
			return false
		}
	}
	return true
}

// leave gives a probe's place back.
func (s *opening) leave(token string) {
	for i := range s.probes {
		if probe := &s.probes[i]; probe.token == token && !probe.failed {
			*probe = trial{}
		}
	}
}

// standing is how it stands for a call of the token, and how long the cooldown still lasts.
func (c *circuit) standing(now time.Duration, token string, rules *rules) (standing, time.Duration) {
	if c == nil || int64(now) >= c.activeUntil.Load() {
		return closed, 0
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	how, left := c.all.standing(now, token, maxProbes)
	v := c.record(token)
	if v == nil {
		return how, left
	}
	if how != closed && v.well(now, rules) {
		how, left = closed, 0
	}
	own, ownLeft := v.own.standing(now, token, 1)
	return max(how, own), max(left, ownLeft)
}

// try takes the token's probe where it is half-open; false when another call has taken it.
func (c *circuit) try(now time.Duration, token string, rules *rules) bool {
	if c == nil || int64(now) >= c.activeUntil.Load() {
		return true
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	v := c.record(token)
	if v != nil && !take(&v.own, now, token, 1) {
		return false
	}
	return v != nil && v.well(now, rules) || take(&c.all, now, token, maxProbes)
}

// take is try for one opening.
func take(s *opening, now time.Duration, token string, most int) bool {
	if s.over(now) {
		return true
	}
	if now < s.until {
		return false
	}
	probe := s.free(now, token, most)
	if probe == nil {
		return false
	}
	*probe = trial{token: token, expires: now + probePatience}
	return true
}

// tryLast takes one of the places of those who have nothing else left; false when there is none for the token.
func (c *circuit) tryLast(now time.Duration, token string, rules *rules) bool {
	c.mu.Lock()
	defer c.mu.Unlock()
	var free *trial
	own := 0
	for i := range c.last {
		switch place := &c.last[i]; {
		case place.expires <= now:
			free = place
		case place.token == token:
			own++
		}
	}
	if free == nil || own >= maxLastResortOfToken {
		return false
	}
	*free = trial{token: token, picked: now, expires: now + lastResortPatience}
	c.keepActive(now + lastResortPatience + rules.window) // what they tell counts
	return true
}

// leave gives back the places of a call that has told how it went, or that nobody waits for any more.
func (c *circuit) leave(now time.Duration, token string, picked time.Duration) {
	if c == nil || int64(now) >= c.activeUntil.Load() {
		return
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left(token, picked)
}

func (c *circuit) left(token string, picked time.Duration) {
	c.all.leave(token)
	if v := c.record(token); v != nil {
		v.own.leave(token)
	}
	for i := range c.last {
		if place := &c.last[i]; place.picked == picked && place.token == token {
			*place = trial{}
			return
		}
	}
}

func (c *circuit) keepActive(until time.Duration) {
	if int64(until) > c.activeUntil.Load() {
		c.activeUntil.Store(int64(until))
	}
}

// evidence is what a failed call says.
type evidence struct {
	token  string
	picked time.Duration
	// weak: it is slow, or odd, and says no more than that others come first.
	weak bool
	// enough is how many such faults of one token are enough for that token: one, where the upstream said so.
	enough int
	// retryAfter is the upstream's own word, 0 for none.
	retryAfter time.Duration
}

// raise is the level of an opening to which the evidence is the last word: where the upstream itself says for how long it
// is not to be called, it is not.
func (e *evidence) raise(level standing) standing {
	if level == open && e.retryAfter > 0 {
		return barred
	}
	return level
}

// failed counts a failed call. It tells for how long and how far the circuit has now been opened for all, 0 and closed where it
// has not.
func (c *circuit) failed(now time.Duration, e evidence, rules *rules) (time.Duration, standing) {
	cooldown := rules.cooldown
	if e.retryAfter > 0 {
		cooldown = min(e.retryAfter, maxRetryAfter)
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left(e.token, e.picked)
	if e.picked <= c.cleared {
		return 0, closed
	}
	c.keepActive(now + rules.window)
	v := c.recordOf(e.token, now, rules)
	v.add(now, failure(e.weak), rules)

	if level := v.own.next(now, e.picked, v.verdict(e, rules), true); level > closed {
		v.own.open(now, cooldown, e.raise(level))
		c.keepActive(now + cooldown + halfOpenLife)
	}
	probed := c.all.isHalfOpen(now) && e.picked > c.all.since && c.all.failed(now, rules.cooldown, e.token)
	if level := c.all.next(now, e.picked, c.verdict(now, rules), probed); level > closed {
		level = e.raise(level)
		c.openAll(now, cooldown, level)
		return cooldown, level
	}
	return 0, closed
}

// next is the level at which a failed call opens it now, closed where it does not. The verdict is that of the evidence; probed
// tells whether a failed probe opens a half-open one again.
func (s *opening) next(now, picked time.Duration, verdict standing, probed bool) standing {
	switch {
	case s.over(now):
		return verdict
	case now < s.until:
		if verdict > s.level {
			return verdict
		}
	case probed && picked > s.since:
		return max(verdict, min(s.level, open))
	}
	return closed
}

func (s *opening) isHalfOpen(now time.Duration) bool { return !s.over(now) && now >= s.until }

func (c *circuit) openAll(now, cooldown time.Duration, level standing) {
	c.all.open(now, cooldown, level)
	c.keepActive(now + cooldown + halfOpenLife)
}

// succeeded counts a call that was answered. It tells whether that closed the circuit, which was open for all.
func (c *circuit) succeeded(now time.Duration, token string, picked time.Duration, rules *rules) bool {
	if c == nil || int64(now) >= c.activeUntil.Load() {
		return false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	c.left(token, picked)
	v := c.recordOf(token, now, rules)
	if picked > v.own.since && v.own.until > 0 {
		*v = record{token: token} // it may start anew
	}
	v.add(now, success, rules)
	if c.all.over(now) || now < c.all.until || picked <= c.all.since {
		return false
	}
	c.close(now)
	return true
}

// close forgets what was said. The caller holds mu.
func (c *circuit) close(now time.Duration) {
	c.all, c.records, c.cleared = opening{}, c.records[:0], now
}

// learn takes over what another process knows: an opening for all of which so much is left, or, with nothing left, its end.
func (c *circuit) learn(now, left time.Duration, level standing) {
	c.mu.Lock()
	defer c.mu.Unlock()
	switch {
	case left <= 0:
		if !c.all.over(now) {
			c.close(now)
		}
	case now+left > c.all.until:
		c.openAll(now, left, level)
	}
}

// openSince tells since when it has been open for all.
func (c *circuit) openSince(now time.Duration) (time.Duration, bool) {
	if c.quiet(now) {
		return 0, false
	}
	c.mu.Lock()
	defer c.mu.Unlock()
	return c.all.since, now < c.all.until && c.all.level > deferred
}

// quiet tells whether nothing would be lost with it.
func (c *circuit) quiet(now time.Duration) bool { return int64(now) >= c.activeUntil.Load() }
