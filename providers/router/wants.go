package router

import (
	"cmp"
	"slices"
	"time"

	"modelrelay/providers"
)

// routesOf are the ways of a model for a group, whatever they serve, higher priority first.
func (t *table) routesOf(want *Want) []route {
	if routes, listed := t.routes[routeKey{want.Group, want.Model}]; listed {
		return routes
	}
	if states := t.wide[want.Group]; states != nil {
		return matching(states, want.Model)
	}
	return t.open[want.Group]
}

// serves tells whether there is a channel for the want at all.
func (t *table) serves(want *Want) bool {
	return slices.ContainsFunc(t.routesOf(want), func(candidate route) bool { return candidate.serves(want) })
}

// refusal is why no channel makes the video that is wanted, as Router.Refusal has it.
func (t *table) refusal(want Want) *providers.Fault {
	shape := want.Video
	if shape == nil || t.serves(&want) {
		return nil
	}
	want.Video = nil
	for _, route := range t.routesOf(&want) {
		if route.serves(&want) {
			return route.channel.vendor.CheckVideo(route.channel.Channel, route.upstream(&want), *shape)
		}
	}
	return nil
}

// nowhere is the fault of a want that no channel takes: served tells whether one could, soon when the first is there again.
func (t *table) nowhere(want *Want, served bool, soon time.Duration) *providers.Fault {
	name := cmp.Or(want.Asked, want.Model)
	if !served {
		fault := providers.Faultf(providers.ModelNotFound, "The model %q does not exist, or you do not have access to it.", name)
		fault.Param, fault.Accepted = "model", providers.NotAccepted
		return fault
	}
	if t.paused(want) {
		return pausedFault(name, soon)
	}
	fault := providers.Faultf(providers.Overloaded, "No channel for the model %q is available at the moment.", name)
	fault.RetryAfter, fault.Accepted = soon, providers.NotAccepted
	return fault
}

// paused tells whether every channel that serves the want is paused.
func (t *table) paused(want *Want) bool {
	routes, some := t.routesOf(want), false
	for i := range routes {
		if !routes[i].serves(want) {
			continue
		}
		if some = true; routes[i].channel.pauseLeft() == 0 {
			return false
		}
	}
	return some
}

// pausedFault is the refusal of a want whose channels are all paused.
func pausedFault(name string, soon time.Duration) *providers.Fault {
	fault := providers.Faultf(providers.Overloaded, "Every channel for the model %q is paused by an operator.", name)
	fault.RetryAfter, fault.Accepted = soon, providers.NotAccepted
	return fault
}
