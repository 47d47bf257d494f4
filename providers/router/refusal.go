package router

import (
	"cmp"
	"slices"
	"time"

	"modelrelay/providers"
)

// routesOf returns the routes of a request's model for its group, whatever they serve, higher priority first.
func (t *table) routesOf(req *Request) []route {
	if routes, listed := t.routes[routeKey{req.Group, req.Model}]; listed {
		return routes
	}
	if channels := t.wide[req.Group]; channels != nil {
		return matching(channels, req.Model)
	}
	return t.open[req.Group]
}

func (t *table) serves(req *Request) bool {
	return slices.ContainsFunc(t.routesOf(req), func(candidate route) bool {
		return candidate.serves(req) && !req.excludes(candidate.channel.Name)
	})
}

func (t *table) refusal(req Request) *providers.Fault {
	shape := req.Video
	if shape == nil || t.serves(&req) {
		return nil
	}
	req.Video = nil
	for _, route := range t.routesOf(&req) {
		if route.serves(&req) {
			return route.channel.vendor.CheckVideo(route.channel.Channel, route.upstream(&req), *shape)
		}
	}
	return nil
}

// noChannel returns the fault of a request without a channel. served reports whether any channel serves it, soon when the first is back.
func (t *table) noChannel(req *Request, served bool, soon time.Duration) *providers.Fault {
	name := cmp.Or(req.Alias, req.Model)
	if !served {
		fault := providers.Faultf(providers.ModelNotFound, "The model %q does not exist, or you do not have access to it.", name)
		fault.Param, fault.Accepted = "model", providers.NotAccepted
		return fault
	}
	message := "No channel for the model %q is available at the moment."
	if t.paused(req) {
		message = "Every channel for the model %q is paused by an operator."
	}
	fault := providers.Faultf(providers.Overloaded, message, name)
	fault.RetryAfter, fault.Accepted = soon, providers.NotAccepted
	return fault
}

// paused reports whether all channels that serve the request are paused.
func (t *table) paused(req *Request) bool {
	some := false
	for _, route := range t.routesOf(req) {
		if !route.serves(req) {
			continue
		}
		if some = true; route.channel.health.PauseLeft() == 0 {
			return false
		}
	}
	return some
}
