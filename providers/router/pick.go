package router

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"modelrelay/providers"
)

// Pick is a target that the router has chosen, with what a report on it needs. Without the router's part, as tests make
// one, nothing can be reported.
type Pick struct {
	providers.Target
	// Translated: the channel does not take the call as it is, and gets it in another format.
	Translated bool
	// fingerprint is that of the key.
	fingerprint string
	// picked is when it was handed out, on the router's clock.
	picked time.Duration
	// token is whose call it is for, blamed what Want.Blamed says of it.
	token  string
	blamed bool
	// channel and key are how the two are doing.
	channel, key *health
	// Done, unless nil, is called when the call at the pick has ended (InFlight.End).
	Done func()
}

// Fingerprint is that of the pick's key, worked out when the configuration was read.
func (p Pick) Fingerprint() string { return p.fingerprint }

// For is the pick for a call of the token, where Resolve was not told. Blamed is that of Want.
func (p Pick) For(token string, blamed bool) Pick {
	p.token, p.blamed = token, blamed
	return p
}

// Pick chooses a channel and one of its keys. The error is a *Fault: ModelNotFound when no channel of the group serves
// the endpoint for the model, Overloaded when all that do are cooling down or were tried; RetryAfter is then the
// shortest cooldown left, 0 when there is none.
//
// Of a half-open circuit, or a key after its cooldown, few calls are let through; until one of them has succeeded, others go
// elsewhere while they can. Where every circuit is open, the one that closes first is tried by a few calls at a time,
// unless the upstream itself asked to be left alone.
func (r *Router) Pick(want Want) (Pick, error) {
	t := r.table.Load()
	routes := t.routesOf(&want)
	now := r.now()
	if want.Maker.Channel != "" {
		if found := maker(routes, &want); found.route != nil {
			return found.target(&want, now), nil
		}
	}
	for full := time.Duration(0); ; {
		found := choose(routes, &want, now, &r.rules)
		switch {
		case found.best.route != nil:
			if found.best.take(&want, now, &r.rules) {
				return found.best.target(&want, now), nil
			}
			// Another call was faster to try it, so it is no longer the best.
		case found.deferred.route != nil:
			return found.deferred.target(&want, now), nil
		case found.last.route != nil:
			if found.last.takeLast(&want, now, &r.rules) {
				return found.last.target(&want, now), nil
			}
			// Enough others try it.
			want.Except, full = append(slices.Clip(want.Except), found.last.route.channel.Name), lastResortRetry
		default:
			return Pick{}, t.nowhere(&want, found.served, cmp.Or(found.soon, full))
		}
	}
}

// choices are what there is to choose from.
type choices struct {
	best     choice // of those that are closed or half-open
	deferred choice // of those that others come before
	last     choice // of those that fail, the one whose cooldown ends first
	// served tells whether there is any, and soon when the first may be tried that may not now, 0 for none.
	served bool
	soon   time.Duration
}

func choose(routes []route, want *Want, now time.Duration, rules *rules) (found choices) {
	var lastLeft time.Duration
	for i := range routes {
		candidate := &routes[i]
		if found.best.route != nil && candidate.channel.Priority < found.best.route.channel.Priority {
			break
		}
		way := candidate.way(want)
		if way == unable {
			continue
		}
		found.served = true
		free, how, left := candidate.freeKey(now, want, rules)
		wait := left
		if free != nil {
			wait = min(left, lastResortRetry) // those who try it now may have told by then
		}
		if wait > 0 && (found.soon == 0 || wait < found.soon) {
			found.soon = wait
		}
		switch {
		case free == nil:
		case how < deferred:
			found.best.offer(candidate, way, free, want.Affinity)
		case how == deferred:
			found.deferred.offer(candidate, way, free, want.Affinity)
		case found.last.route == nil || left < lastLeft:
			found.last.route, found.last.way, found.last.key, lastLeft = candidate, way, free, left
		}
	}
	return found
}

// choice is the one of the routes offered so far that is taken: by priority, before those that need a translation where there
// is another, and by weight.
type choice struct {
	route *route
	way   way
	key   *keyState
	total int     // weight of the routes of its priority so far
	place float64 // of the route where the want has an affinity; the least is taken
}

// offer takes the routes in the order of their priority.
func (c *choice) offer(candidate *route, way way, key *keyState, affinity uint64) {
	if c.route != nil && (candidate.channel.Priority < c.route.channel.Priority || way < c.way) {
		return
	}
	if way > c.way {
		*c = choice{way: way}
	}
	weight := max(candidate.channel.Weight, 1)
	if affinity != 0 {
		place := place(affinity, candidate.channel.seed, weight)
		if c.route == nil || place < c.place {
			c.route, c.key, c.place = candidate, key, place
		}
		return
	}
	// Each route replaces the choice with the probability that keeps the shares right over all of them.
	c.total += weight
	if c.total == weight || rand.IntN(c.total) < weight { //nolint:gosec // a share of load needs no secrecy
		c.route, c.key = candidate, key
	}
}

// take takes the place of a probe where there is one to take. A call that has failed elsewhere takes none.
func (c *choice) take(want *Want, now time.Duration, rules *rules) bool {
	model := c.route.upstream(want)
	return c.route.channel.health.tryChannel(now, model, want.Token, rules) && c.key.health.tryKey(now, model, want.Token, rules)
}

// takeLast takes one of the few places of calls that have nothing else left.
func (c *choice) takeLast(want *Want, now time.Duration, rules *rules) bool {
	model := c.route.upstream(want)
	return c.route.channel.health.circuits.begin(model, now, want.Token).tryLast(now, want.Token, rules)
}

func (c *choice) target(want *Want, now time.Duration) Pick {
	channel := c.route.channel
	channel.turn.Add(1)
	return Pick{
		Target:      providers.Target{Channel: channel.Channel, Key: c.key.secret, Model: c.route.upstream(want)},
		Translated:  c.way == translated,
		fingerprint: c.key.fingerprint, picked: now, token: want.Token, blamed: want.Blamed, channel: channel.health, key: c.key.health,
	}
}

// maker finds the route and key that made what the want goes on from, whether they are cooling down or not: nobody else can serve it.
func maker(routes []route, want *Want) choice {
	for i := range routes {
		channel := routes[i].channel
		if channel.Name != want.Maker.Channel || routes[i].way(want) != native || want.excepts(channel.Name) || channel.pauseLeft() > 0 {
			continue
		}
		for _, key := range channel.keys {
			if key.fingerprint == want.Maker.Fingerprint && !want.exceptsKey(channel.Name, key.fingerprint) {
				return choice{route: &routes[i], way: native, key: key}
			}
		}
	}
	return choice{}
}

func (w *Want) excepts(channel string) bool {
	return len(w.Except) > 0 && slices.Contains(w.Except, channel) || len(w.Only) > 0 && !slices.Contains(w.Only, channel)
}

func (w *Want) exceptsKey(channel, fingerprint string) bool {
	return len(w.ExceptKeys) > 0 && slices.Contains(w.ExceptKeys, providers.KeyRef{Channel: channel, Fingerprint: fingerprint})
}

// freeKey finds the key that stands best for the model, the next in turn among equals, and how it and its channel stand
// together. When there is none it returns nil and how long the channel or the first of its keys is still left alone, 0 when
// all was tried. What is open has both.
func (r *route) freeKey(now time.Duration, want *Want, rules *rules) (*keyState, standing, time.Duration) {
	c, model := r.channel, r.upstream(want)
	if left := c.pauseLeft(); left > 0 {
		return nil, barred, left
	}
	channel, left := c.health.channelStanding(now, model, want.Token, rules)
	if channel == barred || want.Patient && channel == open {
		return nil, barred, left
	}
	if len(c.keys) == 0 || want.excepts(c.Name) {
		return nil, channel, 0
	}
	var (
		best *keyState
		how  standing
		stay time.Duration // how long the best is still open
		soon time.Duration // shortest cooldown left of a key
	)
	first := int(c.turn.Load() % uint64(len(c.keys)))
	if want.Affinity != 0 && len(c.keys) > 1 {
		first = c.preferred(want.Affinity)
	}
	for i := range c.keys {
		key := c.keys[(first+i)%len(c.keys)]
		stands, wait := key.health.keyStanding(now, model, want.Token, rules)
		if stands == barred || want.Patient && stands == open {
			if soon == 0 || wait < soon {
				soon = wait
			}
			continue
		}
		if want.exceptsKey(c.Name, key.fingerprint) {
			continue
		}
		if want.Blamed && max(stands, channel) == halfOpen {
			stands = deferred
		}
		if best == nil || stands < how {
			best, how, stay = key, stands, wait
		}
		if how < deferred {
			break
		}
	}
	switch how = max(how, channel); {
	case best == nil:
		return nil, how, soon
	case how == open:
		return best, how, max(left, stay)
	default:
		return best, how, 0
	}
}

// preferred is the key that calls of an affinity use before others.
func (c *channelState) preferred(affinity uint64) int {
	best, least := 0, math.Inf(1)
	for i, key := range c.keys {
		if place := place(affinity, key.seed, 1); place < least {
			best, least = i, place
		}
	}
	return best
}

// place is where a candidate comes for calls of an affinity: as if each rang once, at random but always the same, in
// proportion to its weight. The first to ring is taken, so one that leaves moves no calls but its own.
func place(affinity, seed uint64, weight int) float64 {
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
