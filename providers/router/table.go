package router

import (
	"cmp"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"strings"
	"sync/atomic"

	"modelrelay/providers"
)

// table is what the router knows of one configuration, worked out once so that a pick is a lookup. Only the health
// and the turns of the keys change in it.
type table struct {
	// routes has the channels of each group and listed model, channels open to every name among them, by priority.
	routes map[routeKey][]route
	// open has each group's channels that are open to every name, for models that no channel lists.
	open     map[string][]route
	channels map[string]*channelState
	models   map[string][]Model
}

type routeKey struct{ group, model string }

// route is one channel that carries a model.
type route struct {
	channel *channelState
	// model is the upstream model, "" for the public name itself.
	model string
}

// upstream is the name of the want's model there.
func (r *route) upstream(want *Want) string {
	if r.model == "" {
		return want.Model
	}
	return r.model
}

func (r *route) serves(want *Want) bool {
	return r.channel.vendor.Serves(want.Endpoint) && (r.channel.OpenValues || !want.OpenValues) &&
		(r.channel.vendor.Several || !want.Several)
}

// channelState is a channel with its vendor and its health.
type channelState struct {
	providers.Channel
	vendor providers.Vendor
	health *health
	keys   []*keyState
	// seed places the channel for an affinity, the same in every process.
	seed uint64
	// turn counts the picks, so that the keys take turns.
	turn *atomic.Uint64
}

type keyState struct {
	secret      providers.Secret
	fingerprint string
	seed        uint64
	health      *health
}

// newTable works out the table of the channels. old, which may be nil, lends the health of what stays.
func newTable(catalog providers.Catalog, channels []providers.Channel, old *table) *table {
	t := &table{
		routes:   make(map[routeKey][]route),
		open:     make(map[string][]route),
		channels: make(map[string]*channelState, len(channels)),
		models:   make(map[string][]Model),
	}
	ordered := make([]*channelState, 0, len(channels))
	for _, channel := range channels {
		var before *channelState
		if old != nil {
			before = old.channels[channel.Name]
		}
		state := newChannelState(channel, catalog[channel.Vendor], before)
		t.channels[channel.Name] = state
		if !channel.Disabled {
			ordered = append(ordered, state)
		}
	}
	slices.SortStableFunc(ordered, func(a, b *channelState) int { return cmp.Compare(b.Priority, a.Priority) })

	listed := make(map[string]map[string]bool) // group → the models its channels list
	for _, state := range ordered {
		for _, group := range slices.Compact(slices.Sorted(slices.Values(state.Groups))) {
			if listed[group] == nil {
				listed[group] = make(map[string]bool)
			}
			for model := range state.Models {
				if model != providers.AnyModel {
					listed[group][model] = true
				}
			}
			if _, open := state.Models[providers.AnyModel]; open {
				t.open[group] = append(t.open[group], route{channel: state})
			}
		}
	}
	for group, models := range listed {
		for _, model := range slices.Sorted(maps.Keys(models)) {
			var routes []route
			for _, state := range ordered {
				if upstream, ok := state.UpstreamModel(model); ok && state.Serves(group) {
					routes = append(routes, route{channel: state, model: upstream})
				}
			}
			t.routes[routeKey{group, model}] = routes
			if entry, ok := newModel(model, routes); ok {
				t.models[group] = append(t.models[group], entry)
			}
		}
	}
	return t
}

// newModel makes the model's entry in the list; false when no channel serves anything for it.
func newModel(id string, routes []route) (Model, bool) {
	model := Model{ID: id}
	for _, route := range routes {
		endpoints := endpointsOf(route.channel.vendor)
		if len(endpoints) > 0 && model.Vendor == "" {
			model.Vendor = route.channel.Vendor
		}
		for _, endpoint := range endpoints {
			if !slices.Contains(model.Endpoints, endpoint) {
				model.Endpoints = append(model.Endpoints, endpoint)
			}
		}
	}
	slices.SortFunc(model.Endpoints, func(a, b providers.Endpoint) int { return strings.Compare(a.String(), b.String()) })
	return model, len(model.Endpoints) > 0
}

// endpointsOf lists what the vendor takes as it is.
func endpointsOf(v providers.Vendor) []providers.Endpoint {
	var endpoints []providers.Endpoint
	if v.Relay != nil {
		endpoints = append(endpoints, v.Endpoints...)
	}
	if v.Video != nil {
		endpoints = append(endpoints, providers.Endpoint{Operation: providers.VideoTask})
	}
	if v.Realtime != nil {
		endpoints = append(endpoints, providers.RealtimeSession())
	}
	return endpoints
}

func newChannelState(channel providers.Channel, vendor providers.Vendor, before *channelState) *channelState {
	if before != nil && !before.same(channel) {
		before = nil
	}
	state := &channelState{Channel: channel, vendor: vendor, seed: seed(channel.Name), health: new(health), turn: new(atomic.Uint64)}
	if before != nil {
		state.health, state.turn = before.health, before.turn
	}
	for _, secret := range channel.Keys {
		key := before.key(secret)
		if key == nil {
			key = &keyState{secret: secret, fingerprint: secret.Fingerprint(), health: new(health)}
			key.seed = seed(key.fingerprint)
		}
		state.keys = append(state.keys, key)
	}
	return state
}

// seed is the number of a name, the same in every process.
func seed(name string) uint64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, name) // a hash takes everything
	return hash.Sum64()
}

// same tells whether the other channel is this one, with perhaps other models, groups or keys.
func (c *channelState) same(other providers.Channel) bool {
	return c.Name == other.Name && c.Vendor == other.Vendor && c.BaseURL == other.BaseURL
}

// key finds a key's state, nil when the channel has it not. c may be nil.
func (c *channelState) key(secret providers.Secret) *keyState {
	if c == nil {
		return nil
	}
	for _, key := range c.keys {
		if key.secret == secret {
			return key
		}
	}
	return nil
}
