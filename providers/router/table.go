package router

import (
	"cmp"
	"hash/fnv"
	"io"
	"maps"
	"slices"
	"sync/atomic"

	"modelrelay/providers"
	"modelrelay/providers/health"
)

// table is the routing of one configuration, computed once so that a pick is a lookup. Only health and turns of keys change.
type table struct {
	// routes has the channels of each group and listed model by priority, including those with a pattern that matches.
	routes map[routeKey][]route
	// open has the channels of each group that accept every name, for models that no channel lists. wide has all channels of a group
	// with patterns, if one has another pattern.
	open     map[string][]route
	wide     map[string][]*channel
	channels map[string]*channel
	models   map[string][]Model // by group
	// The sorted names of all channels, of the channels with patterns, of the groups with models, and of the models of all groups.
	channelNames, wideNames, groups, names []string
	// aliases maps names that clients may ask for to public names.
	aliases map[string]string
	// compared counts the look-ups of a model at a channel. A test bounds its growth.
	compared int
}

type routeKey struct{ group, model string }

// route is one channel that has a model.
type route struct {
	channel *channel
	// model is the upstream model, "" for the public name.
	model string
}

func (r *route) upstream(req *Request) string {
	if r.model == "" {
		return req.Model
	}
	return r.model
}

// compatibility is how a channel serves a request.
type compatibility int

const (
	incompatible compatibility = iota
	translated
	native
)

func (r *route) compatibility(req *Request) compatibility {
	c := r.channel
	switch {
	case req.OpenValues && !c.OpenValues, req.Several && !c.vendor.Several,
		req.Video != nil && c.vendor.CheckVideo(c.Channel, r.upstream(req), *req.Video) != nil:
		return incompatible
	case c.native(req.Endpoint):
		return native
	case len(c.translated) > 0 && slices.Contains(c.translated, req.Endpoint):
		return translated
	default:
		return incompatible
	}
}

func (r *route) serves(req *Request) bool { return r.compatibility(req) != incompatible }

type channel struct {
	providers.Channel

	vendor providers.Vendor
	// translated are the endpoints whose calls the channel receives in another format.
	translated []providers.Endpoint
	// endpoints are all that it serves, natively or translated, by name.
	endpoints []providers.Endpoint
	health    *health.Channel
	keys      []key
	// seed ranks the channel for an affinity. It is the same in every process.
	seed uint64
	// turn counts the picks, so that the keys take turns.
	turn atomic.Uint64
}

type key struct {
	*health.Key

	seed uint64
}

func (r *Router) newTable(channels []*health.Channel, aliases map[string]string) *table {
	t := &table{
		routes:   make(map[routeKey][]route),
		open:     make(map[string][]route),
		wide:     make(map[string][]*channel),
		aliases:  aliases,
		channels: make(map[string]*channel, len(channels)),
		models:   make(map[string][]Model),
	}
	ordered := make([]*channel, 0, len(channels))
	for _, configured := range channels {
		c := r.newChannel(configured)
		t.channels[c.Name] = c
		if !c.Disabled {
			ordered = append(ordered, c)
		}
	}
	slices.SortStableFunc(ordered, func(a, b *channel) int { return cmp.Compare(b.Priority, a.Priority) })

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
		if index.narrow { // otherwise open has all
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

func (t *table) list() {
	t.channelNames, t.groups = slices.Sorted(maps.Keys(t.channels)), slices.Sorted(maps.Keys(t.models))
	for _, name := range t.channelNames {
		if c := t.channels[name]; !c.Disabled && hasPattern(c.Models) {
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
	return slices.ContainsFunc(slices.Collect(maps.Keys(models)), providers.IsPattern)
}

// groupIndex holds the channels of one group, by priority.
type groupIndex struct {
	states []*channel
	listed map[string][]int // the channels that list a model by its name
	wide   []int            // the channels that have patterns
	narrow bool             // one of these is not that of every name
	// compared counts the look-ups of a model at a channel.
	compared int
}

// add adds a channel after those of higher or the same priority.
func (g *groupIndex) add(state *channel) {
	at := len(g.states)
	g.states = append(g.states, state)
	for model := range state.Models {
		if !providers.IsPattern(model) {
			g.listed[model] = append(g.listed[model], at)
		} else if model != providers.AnyModel {
			g.narrow = true
		}
	}
	if hasPattern(state.Models) {
		g.wide = append(g.wide, at)
	}
}

// models returns the sorted names that channels of the group list, the aliases, and their models.
func (g *groupIndex) models(aliases map[string]string) []string {
	names := slices.Collect(maps.Keys(g.listed))
	for asked, public := range aliases {
		names = append(names, asked, public)
	}
	slices.Sort(names)
	return slices.Compact(names)
}

// routes returns the routes of a model to the channels that list it and to those with a pattern that matches, by priority. Its cost
// grows with the channels that list the model and those with patterns, not with all channels.
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

// matching returns the routes of a model that no channel of a group lists, to the channels with a pattern that matches.
func matching(channels []*channel, model string) (routes []route) {
	for _, c := range channels {
		if upstream, ok := c.UpstreamModel(model); ok {
			routes = append(routes, route{channel: c, model: upstream})
		}
	}
	return routes
}

// translations lists the endpoints whose calls the channel can receive in another format.
func (r *Router) translations(c *channel) (from []providers.Endpoint) {
	if r.reaches == nil || c.NativeOnly || c.vendor.Relay == nil {
		return nil
	}
	for _, vendor := range r.catalog {
		for _, endpoint := range vendor.Endpoints {
			if !c.native(endpoint) && !slices.Contains(from, endpoint) && slices.ContainsFunc(c.vendor.Takes, func(to providers.Endpoint) bool {
				return c.Speaks(to) && r.reaches(endpoint, to)
			}) {
				from = append(from, endpoint)
			}
		}
	}
	return from
}

func (c *channel) native(e providers.Endpoint) bool { return c.vendor.Serves(e) && c.Speaks(e) }

func (c *channel) served() []providers.Endpoint {
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
	slices.SortFunc(endpoints, compareEndpoints)
	return slices.Compact(endpoints)
}

func (r *Router) newChannel(configured *health.Channel) *channel {
	config := configured.Config
	c := &channel{Channel: config, vendor: r.catalog[config.Vendor], seed: seed(config.Name), health: configured}
	for _, k := range configured.Keys {
		c.keys = append(c.keys, key{k, seed(k.Fingerprint)})
	}
	c.translated = r.translations(c)
	c.endpoints = c.served()
	return c
}

// seed returns a hash of a name that is the same in every process.
func seed(name string) uint64 {
	hash := fnv.New64a()
	_, _ = io.WriteString(hash, name) // never fails
	return hash.Sum64()
}
