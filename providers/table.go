package providers

import (
	"cmp"
	"maps"
	"slices"
	"strings"
	"sync/atomic"
	"time"
)

// table is what the router knows of one configuration, worked out once so that a pick is a lookup. Only the rests and
// the turns of the keys change in it.
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

func (r route) serves(want Want) bool {
	return r.channel.vendor.Serves(want.Endpoint) && (r.channel.OpenValues || !want.OpenValues) &&
		(r.channel.vendor.Several || !want.Several)
}

// channelState is a channel with its vendor and its cool-downs.
type channelState struct {
	Channel
	vendor Vendor
	rest   *rest
	keys   []*keyState
	// turn counts the picks, so that the keys take turns.
	turn *atomic.Uint64
}

type keyState struct {
	secret      Secret
	fingerprint string
	rest        *rest
}

// newTable works out the table of the channels. old, which may be nil, lends the cool-downs of what stays.
func newTable(catalog Catalog, channels []Channel, old *table) *table {
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
				if model != AnyModel {
					listed[group][model] = true
				}
			}
			if _, open := state.Models[AnyModel]; open {
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
		endpoints := route.channel.vendor.serves()
		if len(endpoints) > 0 && model.Vendor == "" {
			model.Vendor = route.channel.Vendor
		}
		for _, endpoint := range endpoints {
			if !slices.Contains(model.Endpoints, endpoint) {
				model.Endpoints = append(model.Endpoints, endpoint)
			}
		}
	}
	slices.SortFunc(model.Endpoints, func(a, b Endpoint) int { return strings.Compare(a.String(), b.String()) })
	return model, len(model.Endpoints) > 0
}

// serves lists what the vendor takes as it is.
func (v Vendor) serves() []Endpoint {
	var endpoints []Endpoint
	if v.Relay != nil {
		endpoints = append(endpoints, v.Endpoints...)
	}
	if v.Video != nil {
		endpoints = append(endpoints, Endpoint{Operation: VideoTask})
	}
	if v.Realtime != nil {
		endpoints = append(endpoints, RealtimeSession())
	}
	return endpoints
}

func newChannelState(channel Channel, vendor Vendor, before *channelState) *channelState {
	if before != nil && !before.same(channel) {
		before = nil
	}
	state := &channelState{Channel: channel, vendor: vendor, rest: new(rest), turn: new(atomic.Uint64)}
	if before != nil {
		state.rest, state.turn = before.rest, before.turn
	}
	for _, secret := range channel.Keys {
		key := before.key(secret)
		if key == nil {
			key = &keyState{secret: secret, fingerprint: secret.Fingerprint(), rest: new(rest)}
		}
		state.keys = append(state.keys, key)
	}
	return state
}

// same tells whether the other channel is this one, with perhaps other models, groups or keys.
func (c *channelState) same(other Channel) bool {
	return c.Name == other.Name && c.Vendor == other.Vendor && c.BaseURL == other.BaseURL
}

// key finds a key's state, nil when the channel has it not. c may be nil.
func (c *channelState) key(secret Secret) *keyState {
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

// freeKey finds the next key that may be used now. When there is none it returns nil and how long the channel or the
// first of its keys still rests, 0 when nothing rests because all was tried.
func (c *channelState) freeKey(now time.Duration, want Want) (*keyState, time.Duration) {
	left := c.rest.left(now)
	if left > 0 {
		return nil, left
	}
	if len(want.Except) > 0 && slices.Contains(want.Except, c.Name) || len(want.Only) > 0 && !slices.Contains(want.Only, c.Name) {
		return nil, 0
	}
	if len(c.keys) == 0 {
		return nil, 0
	}
	left = 0
	turn := int(c.turn.Load() % uint64(len(c.keys)))
	for i := range c.keys {
		key := c.keys[(turn+i)%len(c.keys)]
		if rest := key.rest.left(now); rest > 0 {
			if left == 0 || rest < left {
				left = rest
			}
			continue
		}
		if len(want.ExceptKeys) > 0 && slices.Contains(want.ExceptKeys, KeyRef{Channel: c.Name, Fingerprint: key.fingerprint}) {
			continue
		}
		return key, 0
	}
	return nil, left
}
