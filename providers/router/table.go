package router

import (
	"cmp"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"sync/atomic"

	"modelrelay/providers"
)

// table is what the router knows of one configuration, worked out once so that a pick is a lookup. Only the health
// and the turns of the keys change in it.
type table struct {
	// routes has the channels of each group and listed model, channels open to every name among them, by priority.
	routes map[routeKey][]route
	// open has each group's channels that are open to every name, for models that no channel lists, and wide all that have
	// patterns, where one has another than that.
	open     map[string][]route
	wide     map[string][]*channelState
	channels map[string]*channelState
	// channelNames are those of all channels, wideNames those of the channels that are open to names by patterns.
	channelNames, wideNames []string
	models                  map[string][]Model
	// groups are those with models, names the models of all groups.
	groups, names []string
	// aliases are public names by the names that clients may ask for in their place.
	aliases map[string]string
	// compared counts how often a model was looked for at a channel: a test bounds its growth.
	compared int
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

// way is how a channel takes a want.
type way int

const (
	unable way = iota
	translated
	native
)

func (r *route) way(want *Want) way {
	c := r.channel
	switch {
	case want.OpenValues && !c.OpenValues, want.Several && !c.vendor.Several,
		want.Video != nil && c.vendor.CheckVideo(c.Channel, r.upstream(want), *want.Video) != nil:
		return unable
	case c.native(want.Endpoint):
		return native
	case len(c.translated) > 0 && slices.Contains(c.translated, want.Endpoint):
		return translated
	default:
		return unable
	}
}

func (r *route) serves(want *Want) bool { return r.way(want) != unable }

// channelState is a channel with its vendor and its health.
type channelState struct {
	providers.Channel
	vendor providers.Vendor
	// translated are the endpoints whose calls the channel gets in another format.
	translated []providers.Endpoint
	// endpoints are all that it takes, as they are or translated.
	endpoints []providers.Endpoint
	health    *health
	pause     *atomic.Pointer[Pause]
	keys      []*keyState
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

// vendors are those of which there can be channels.
type vendors struct {
	catalog providers.Catalog
	reaches func(from, to providers.Endpoint) bool // nil: no call is translated
}

// table works out the table of the channels. old, which may be nil, lends the health of what stays.
func (v vendors) table(channels []providers.Channel, aliases map[string]string, pauses pauses, old *table) *table {
	t := &table{
		routes:   make(map[routeKey][]route),
		open:     make(map[string][]route),
		wide:     make(map[string][]*channelState),
		aliases:  aliases,
		channels: make(map[string]*channelState, len(channels)),
		models:   make(map[string][]Model),
	}
	ordered := make([]*channelState, 0, len(channels))
	for _, channel := range channels {
		var before *channelState
		if old != nil {
			before = old.channels[channel.Name]
		}
		state := newChannelState(channel, v.catalog[channel.Vendor], before)
		state.pause = pauses.of(channel.Name)
		state.translated = v.translations(state)
		state.endpoints = state.takes()
		t.channels[channel.Name] = state
		if !channel.Disabled {
			ordered = append(ordered, state)
		}
	}
	slices.SortStableFunc(ordered, func(a, b *channelState) int { return cmp.Compare(b.Priority, a.Priority) })

	groups := make(map[string]*groupIndex)
	for _, state := range ordered {
		for _, group := range slices.Compact(slices.Sorted(slices.Values(state.Groups))) {
			if groups[group] == nil {
				groups[group] = &groupIndex{listed: make(map[string][]int)}
			}
			groups[group].add(state)
			if _, open := state.Models[providers.AnyModel]; open {
				t.open[group] = append(t.open[group], route{channel: state})
			}
		}
	}
	for group, index := range groups {
		if slices.ContainsFunc(index.wide, func(at int) bool { return !onlyOpen(index.states[at].Models) }) { // else open has all of them
			for _, at := range index.wide {
				t.wide[group] = append(t.wide[group], index.states[at])
			}
		}
		for _, model := range index.models(aliases) {
			public := cmp.Or(aliases[model], model)
			routes, listed := t.routes[routeKey{group, public}]
			if !listed {
				routes = index.routes(public)
				t.routes[routeKey{group, public}] = routes
			}
			if entry, ok := newModel(model, routes); ok {
				entry.Public = public
				t.models[group] = append(t.models[group], entry)
			}
		}
		t.compared += index.compared
	}
	t.list()
	return t
}

// list puts the names of channels, groups and models in order.
func (t *table) list() {
	t.channelNames, t.groups = slices.Sorted(maps.Keys(t.channels)), slices.Sorted(maps.Keys(t.models))
	for _, name := range t.channelNames {
		if channel := t.channels[name]; !channel.Disabled && hasPattern(channel.Models) {
			t.wideNames = append(t.wideNames, name)
		}
	}
	names := make(map[string]bool)
	for _, models := range t.models {
		for _, model := range models {
			names[model.ID] = true
		}
	}
	t.names = slices.Sorted(maps.Keys(names))
}

func hasPattern(models map[string]string) bool {
	for model := range models {
		if providers.IsPattern(model) {
			return true
		}
	}
	return false
}

// groupIndex has the channels of one group, by priority.
type groupIndex struct {
	states []*channelState
	listed map[string][]int // the channels that list a model by its name
	wide   []int            // the channels that have patterns
	// compared counts how often a model was looked for at a channel.
	compared int
}

// add adds a channel after those of higher or the same priority.
func (g *groupIndex) add(state *channelState) {
	at := len(g.states)
	g.states = append(g.states, state)
	for model := range state.Models {
		if !providers.IsPattern(model) {
			g.listed[model] = append(g.listed[model], at)
		}
	}
	if hasPattern(state.Models) {
		g.wide = append(g.wide, at)
	}
}

// models are the names that channels of the group list, the aliases, and the models behind them, in their order.
func (g *groupIndex) models(aliases map[string]string) []string {
	names := slices.Collect(maps.Keys(g.listed))
	for asked, public := range aliases {
		names = append(names, asked, public)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// routes are the routes of a model to the channels that list it and to those with a pattern that fits, by priority. The work grows
// with the channels that list the model and with those that have patterns, not with all channels.
func (g *groupIndex) routes(model string) []route {
	listed, wide := g.listed[model], g.wide
	routes := make([]route, 0, len(listed))
	for len(listed) > 0 || len(wide) > 0 {
		var at int
		if len(wide) == 0 || len(listed) > 0 && listed[0] <= wide[0] {
			if at = listed[0]; len(wide) > 0 && wide[0] == at {
				wide = wide[1:]
			}
			listed = listed[1:]
		} else {
			at, wide = wide[0], wide[1:]
		}
		g.compared++
		if upstream, ok := g.states[at].UpstreamModel(model); ok {
			routes = append(routes, route{channel: g.states[at], model: upstream})
		}
	}
	return routes
}

// onlyOpen tells whether the only pattern of a channel is the one that fits every name.
func onlyOpen(models map[string]string) bool {
	for model := range models {
		if providers.IsPattern(model) && model != providers.AnyModel {
			return false
		}
	}
	return true
}

// matching are the ways of a model that no channel of a group lists to those whose patterns it fits.
func matching(states []*channelState, model string) (routes []route) {
	for _, state := range states {
		if upstream, ok := state.UpstreamModel(model); ok {
			routes = append(routes, route{channel: state, model: upstream})
		}
	}
	return routes
}

// translations lists the endpoints whose calls the channel can get in another format.
func (v vendors) translations(c *channelState) (from []providers.Endpoint) {
	if v.reaches == nil || c.NativeOnly || c.vendor.Relay == nil {
		return nil
	}
	for _, vendor := range v.catalog {
		for _, endpoint := range vendor.Endpoints {
			if !c.native(endpoint) && !slices.Contains(from, endpoint) && slices.ContainsFunc(c.vendor.Takes, func(to providers.Endpoint) bool {
				return c.Speaks(to) && v.reaches(endpoint, to)
			}) {
				from = append(from, endpoint)
			}
		}
	}
	return from
}

// native tells whether the channel takes the endpoint as it is.
func (c *channelState) native(e providers.Endpoint) bool { return c.vendor.Serves(e) && c.Speaks(e) }

// takes lists what the channel takes, as it is or translated.
func (c *channelState) takes() []providers.Endpoint {
	v, endpoints := c.vendor, slices.Clone(c.translated)
	for _, endpoint := range v.Endpoints {
		if c.native(endpoint) {
			endpoints = append(endpoints, endpoint)
		}
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
	if channel.BaseURL == "" {
		channel.BaseURL = vendor.BaseURL
	}
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
