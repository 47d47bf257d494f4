package router

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/health"
)

// Pick is a target that the router has selected. A Pick that a test makes from a Target cannot be reported.
type Pick struct {
	health.Attempt

	// Translated: the channel receives the call in another format.
	Translated bool
	// Done, unless nil, is called when the call has ended.
	Done func()
}

// For returns the pick for a call of the token, which Resolve does not set. blamed is Request.Blamed.
func (p Pick) For(token string, blamed bool) Pick {
	p.Token, p.Blamed = token, blamed
	return p
}

// Pick selects a channel and one of its keys. The error is a *Fault: ModelNotFound if no channel of the group serves the endpoint for
// the model; Overloaded if all that serve it cool down or were tried. RetryAfter is then the shortest rest of a cooldown, 0 for none.
//
// A half-open circuit, or a key after its cooldown, admits a few probes; other calls use other targets while they can. If every
// circuit is open, a few calls at a time try the one that closes first, unless the upstream sent a Retry-After.
func (r *Router) Pick(req Request) (Pick, error) {
	t := r.table.Load()
	routes := t.routesOf(&req)
	now := r.Health.Now()
	if req.Origin.Channel != "" {
		if found := origin(routes, &req); found.route != nil {
			return found.pick(&req, now), nil
		}
	}
	for full := time.Duration(0); ; {
		found := choose(routes, &req, now)
		switch {
		case found.best.route != nil:
			if found.best.tryProbe(&req, now) {
				return found.best.pick(&req, now), nil
			}
			// Another call has taken the probe, so the choice is no longer the best.
		case found.deferred.route != nil:
			return found.deferred.pick(&req, now), nil
		case found.lastResort.route != nil:
			if found.lastResort.tryLastResort(&req, now) {
				return found.lastResort.pick(&req, now), nil
			}
			req.Exclude, full = append(slices.Clip(req.Exclude), found.lastResort.route.channel.Name), health.LastResortRetry
		default:
			return Pick{}, t.noChannel(&req, found.served, cmp.Or(found.soon, full))
		}
	}
}

// choices are the routes to select from, by the access that they give.
type choices struct {
	best       choice // Allowed or Probe
	deferred   choice
	lastResort choice // the one whose cooldown ends first
	// served reports whether any route serves the request. soon is when the first denied one may be tried, 0 for none.
	served bool
	soon   time.Duration
}

func choose(routes []route, req *Request, now time.Duration) (found choices) {
	var lastResortLeft time.Duration
	for i := range routes {
		candidate := &routes[i]
		if found.best.route != nil && candidate.channel.Priority < found.best.route.channel.Priority {
			break
		}
		fit := candidate.compatibility(req)
		if fit == incompatible {
			continue
		}
		found.served = true
		free, access, left := candidate.freeKey(now, req)
		wait := left
		if free != nil {
			wait = min(left, health.LastResortRetry) // the calls that try it now may have ended by then
		}
		if wait > 0 && (found.soon == 0 || wait < found.soon) {
			found.soon = wait
		}
		switch {
		case free == nil:
		case access < health.Deferred:
			found.best.offer(candidate, fit, free, req.Affinity)
		case access == health.Deferred:
			found.deferred.offer(candidate, fit, free, req.Affinity)
		case found.lastResort.route == nil || left < lastResortLeft:
			found.lastResort = choice{route: candidate, fit: fit, key: free}
			lastResortLeft = left
		}
	}
	return found
}

// choice is the preferred one of the routes offered so far: by priority, native before translated, and by weight.
type choice struct {
	route *route
	fit   compatibility
	key   *health.Key
	total int     // sum of the weights of the offered routes of its priority
	rank  float64 // of the route, if the request has an affinity; the lowest is preferred
}

// offer accepts routes in the order of their priority.
func (c *choice) offer(candidate *route, fit compatibility, key *health.Key, affinity uint64) {
	if c.route != nil && (candidate.channel.Priority < c.route.channel.Priority || fit < c.fit) {
		return
	}
	if fit > c.fit {
		*c = choice{fit: fit}
	}
	weight := max(candidate.channel.Weight, 1)
	if affinity != 0 {
		rank := rank(affinity, candidate.channel.seed, weight)
		if c.route == nil || rank < c.rank {
			c.route, c.key, c.rank = candidate, key, rank
		}
		return
	}
	// Each route replaces the choice with the probability that gives every route its share in the end.
	c.total += weight
	if c.total == weight || rand.IntN(c.total) < weight { //nolint:gosec // the distribution of load needs no secrecy
		c.route, c.key = candidate, key
	}
}

// tryProbe takes the probes that the choice requires. It reports whether the call may use it.
func (c *choice) tryProbe(req *Request, now time.Duration) bool {
	model := c.route.upstream(req)
	return c.route.channel.health.TryProbe(now, model, req.Token) && c.key.TryProbe(now, model, req.Token)
}

func (c *choice) tryLastResort(req *Request, now time.Duration) bool {
	return c.route.channel.health.TryLastResort(now, c.route.upstream(req), req.Token)
}

func (c *choice) pick(req *Request, now time.Duration) Pick {
	channel := c.route.channel
	channel.turn.Add(1)
	to := Pick{Attempt: channel.health.Attempt(now, c.key, c.route.upstream(req)), Translated: c.fit == translated}
	return to.For(req.Token, req.Blamed)
}

// origin returns the request's origin, also during a cooldown: no other channel can continue its answer.
func origin(routes []route, req *Request) choice {
	for i := range routes {
		channel := routes[i].channel
		if channel.Name != req.Origin.Channel || routes[i].compatibility(req) != native || req.excludes(channel.Name) ||
			channel.health.PauseLeft() > 0 {
			continue
		}
		for _, key := range channel.keys {
			if key.Fingerprint == req.Origin.Fingerprint && !req.excludesKey(channel.Name, key.Fingerprint) {
				return choice{route: &routes[i], fit: native, key: key.Key}
			}
		}
	}
	return choice{}
}

func (r *Request) excludes(channel string) bool {
	return len(r.Exclude) > 0 && slices.Contains(r.Exclude, channel) || len(r.Only) > 0 && !slices.Contains(r.Only, channel)
}

func (r *Request) excludesKey(channel, fingerprint string) bool {
	return len(r.ExcludeKeys) > 0 && slices.Contains(r.ExcludeKeys, providers.KeyRef{Channel: channel, Fingerprint: fingerprint})
}

// freeKey returns the key with the best access for the model, the next in turn among equals, and the access through it and its channel. For
// none it returns nil and the rest of the first cooldown, 0 if all were tried. With access LastResort it returns both.
func (r *route) freeKey(now time.Duration, req *Request) (*health.Key, health.Access, time.Duration) {
	c, model := r.channel, r.upstream(req)
	access, left := c.health.Allows(now, model, req.Token)
	if access == health.Denied || req.NoLastResort && access == health.LastResort {
		return nil, health.Denied, left
	}
	if len(c.keys) == 0 || req.excludes(c.Name) {
		return nil, access, 0
	}
	var (
		best     *health.Key
		ofBest   health.Access
		bestLeft time.Duration // rest of the cooldown of the best
		soon     time.Duration // shortest rest of a cooldown
	)
	first := int(c.turn.Load() % uint64(len(c.keys)))
	if req.Affinity != 0 && len(c.keys) > 1 {
		first = c.preferredKey(req.Affinity)
	}
	for i := range c.keys {
		key := c.keys[(first+i)%len(c.keys)].Key
		ofKey, keyLeft := key.Allows(now, model, req.Token)
		if ofKey == health.Denied || req.NoLastResort && ofKey == health.LastResort {
			if soon == 0 || keyLeft < soon {
				soon = keyLeft
			}
			continue
		}
		if req.excludesKey(c.Name, key.Fingerprint) {
			continue
		}
		if req.Blamed && max(ofKey, access) == health.Probe {
			ofKey = health.Deferred
		}
		if best == nil || ofKey < ofBest {
			best, ofBest, bestLeft = key, ofKey, keyLeft
		}
		if ofBest < health.Deferred {
			break
		}
	}
	switch access = max(access, ofBest); {
	case best == nil:
		return nil, access, soon
	case access == health.LastResort:
		return best, access, max(left, bestLeft)
	default:
		return best, access, 0
	}
}

// preferredKey returns the index of the key that calls of an affinity use before others.
func (c *channel) preferredKey(affinity uint64) int {
	best, least := 0, math.Inf(1)
	for i, key := range c.keys {
		if rank := rank(affinity, key.seed, 1); rank < least {
			best, least = i, rank
		}
	}
	return best
}

// rank orders candidates by weighted rendezvous hashing, the lowest first. A candidate that leaves moves only its own calls.
func rank(affinity, seed uint64, weight int) float64 {
	const bits = 53 // of a float64's fraction
	x := mix(affinity^seed)>>(64-bits) | 1
	return -math.Log(float64(x)/(1<<bits)) / float64(weight)
}

// mix spreads the bits of a number (the finisher of SplitMix64).
func mix(x uint64) uint64 {
	x += 0x9e3779b97f4a7c15
	x = (x ^ x>>30) * 0xbf58476d1ce4e5b9
	x = (x ^ x>>27) * 0x94d049bb133111eb
	return x ^ x>>31
}
