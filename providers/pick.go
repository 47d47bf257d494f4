package providers

import (
	"math"
	"math/rand/v2"
	"slices"
	"time"
)

// Pick chooses a channel and one of its keys. The error is a *Fault: ModelNotFound when no channel of the group serves
// the endpoint for the model, Overloaded when all that do are cooling down or were tried; RetryAfter is then the
// shortest rest left, 0 when nothing rests.
//
// After a rest one call is let through; until it has succeeded the channel, or key, is only picked by others when there
// is nothing else.
func (r *Router) Pick(want Want) (Target, error) {
	routes := r.routes(&want)
	now := r.now()
	if want.Maker.Channel != "" {
		if found := maker(routes, &want); found.route != nil {
			return found.target(&want, now), nil
		}
	}
	for {
		best, trial, served, soon := choose(routes, &want, now)
		switch {
		case best.route != nil:
			if best.take(&want, now) {
				return best.target(&want, now), nil
			}
			// Another call was faster to try it, so it is no longer the best.
		case trial.route != nil:
			return trial.target(&want, now), nil
		default:
			return Target{}, nowhere(want, served, soon)
		}
	}
}

// choose finds the best choice among those that are fit or due, and among those on trial.
func choose(routes []route, want *Want, now time.Duration) (best, trial choice, served bool, soon time.Duration) {
	for i := range routes {
		candidate := &routes[i]
		if best.route != nil && candidate.channel.Priority < best.route.channel.Priority {
			break
		}
		if !candidate.serves(want) {
			continue
		}
		served = true
		free, how, left := candidate.freeKey(now, want)
		if left > 0 && (soon == 0 || left < soon) {
			soon = left
		}
		switch {
		case free == nil:
		case how == onTrial:
			trial.offer(candidate, free, want.Affinity)
		default:
			best.offer(candidate, free, want.Affinity)
		}
	}
	return best, trial, served, soon
}

// choice is the one of the routes offered so far that is taken, by priority and weight.
type choice struct {
	route *route
	key   *keyState
	total int     // weight of the routes of its priority so far
	place float64 // of the route where the want has an affinity; the least is taken
}

// offer takes the routes in the order of their priority.
func (c *choice) offer(candidate *route, key *keyState, affinity uint64) {
	if c.route != nil && candidate.channel.Priority < c.route.channel.Priority {
		return
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

// take takes the turn of the one call after a rest where there is one to take.
func (c *choice) take(want *Want, now time.Duration) bool {
	return c.route.channel.health.rest.try(now) && c.key.health.try(now, c.route.upstream(want))
}

func (c *choice) target(want *Want, now time.Duration) Target {
	channel := c.route.channel
	channel.turn.Add(1)
	return Target{
		Channel: channel.Channel, Key: c.key.secret, Model: c.route.upstream(want),
		picked: now, channel: channel.health, key: c.key.health,
	}
}

// maker finds the route and key that made what the want goes on from, whether they rest or not: nobody else can serve it.
func maker(routes []route, want *Want) choice {
	for i := range routes {
		channel := routes[i].channel
		if channel.Name != want.Maker.Channel || !routes[i].serves(want) || want.excepts(channel.Name) {
			continue
		}
		for _, key := range channel.keys {
			if key.fingerprint == want.Maker.Fingerprint && !want.exceptsKey(channel.Name, key.fingerprint) {
				return choice{route: &routes[i], key: key}
			}
		}
	}
	return choice{}
}

func (w *Want) excepts(channel string) bool {
	return len(w.Except) > 0 && slices.Contains(w.Except, channel) || len(w.Only) > 0 && !slices.Contains(w.Only, channel)
}

func (w *Want) exceptsKey(channel, fingerprint string) bool {
	return len(w.ExceptKeys) > 0 && slices.Contains(w.ExceptKeys, KeyRef{Channel: channel, Fingerprint: fingerprint})
}

// freeKey finds the next key that may be used now for the model, and how it and its channel stand. When there is none it
// returns nil and how long the channel or the first of its keys still rests, 0 when nothing rests because all was tried.
func (r *route) freeKey(now time.Duration, want *Want) (*keyState, standing, time.Duration) {
	c, model := r.channel, r.upstream(want)
	how, left := c.health.rest.standing(now)
	if how == resting {
		return nil, how, left
	}
	if len(c.keys) == 0 || want.excepts(c.Name) {
		return nil, how, 0
	}
	var (
		trial *keyState
		soon  time.Duration // shortest rest left of a key
	)
	first := int(c.turn.Load() % uint64(len(c.keys)))
	if want.Affinity != 0 && len(c.keys) > 1 {
		first = c.preferred(want.Affinity)
	}
	for i := range c.keys {
		key := c.keys[(first+i)%len(c.keys)]
		stands, rest := key.health.standing(now, model)
		switch {
		case stands == resting:
			if soon == 0 || rest < soon {
				soon = rest
			}
		case want.exceptsKey(c.Name, key.fingerprint):
		case stands != onTrial:
			if how == onTrial {
				stands = onTrial
			}
			return key, stands, 0
		case trial == nil:
			trial = key
		}
	}
	if trial != nil {
		return trial, onTrial, 0
	}
	return nil, how, soon
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
// proportion to its weight. The first to ring is taken, so one that leaves or rests moves no calls but its own.
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
