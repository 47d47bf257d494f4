package router

import (
	"cmp"
	"slices"
	"strings"

	"modelrelay/providers"
)

// Model is one entry of a model list.
type Model struct {
	// ID is the name that clients ask for. Public is the public name: the same, except for an alias.
	ID, Public string
	// Vendor is that of the first channel of the model.
	Vendor string
	// Endpoints are all that some channel serves for the model, natively or translated. A video create is {Operation: VideoTask}.
	Endpoints []providers.Endpoint
	// Video is the model's entry in the vendor's table; nil if it has none or makes no videos.
	Video *providers.VideoModel
}

// Models lists by name what the group can call, including aliases, without patterns. The caller must not change the list.
func (r *Router) Models(group string) []Model { return r.table.Load().models[group] }

// Model returns the entry of a name that a group can call, also by patterns. It reports false if the group cannot call the name.
func (r *Router) Model(group, name string) (Model, bool) {
	t := r.table.Load()
	if model, listed := t.listed(group, name); listed {
		return model, true
	}
	model, known := newModel(name, t.routesOf(&Request{Group: group, Model: name}))
	model.Public = name
	return model, known
}

func (t *table) listed(group, name string) (Model, bool) {
	list := t.models[group]
	i, found := slices.BinarySearchFunc(list, name, func(m Model, name string) int { return strings.Compare(m.ID, name) })
	if !found {
		return Model{}, false
	}
	return list[i], true
}

// newModel returns the list entry of a model. It reports false if no channel serves anything for it.
func newModel(id string, routes []route) (Model, bool) {
	model := Model{ID: id}
	for _, route := range routes {
		endpoints := route.channel.endpoints
		if len(endpoints) > 0 && model.Vendor == "" {
			model.Vendor = route.channel.Vendor
		}
		if model.Video == nil {
			if known, ok := route.channel.vendor.VideoModel(route.channel.Channel, cmp.Or(route.model, id)); ok && known.Describes() {
				model.Video = &known
			}
		}
		model.Endpoints = union(model.Endpoints, endpoints)
	}
	return model, len(model.Endpoints) > 0
}

// union returns the endpoints of two sorted lists, sorted. Models share the list of a channel that has all of theirs, so it is not changed.
func union(a, b []providers.Endpoint) []providers.Endpoint {
	if len(a) == 0 {
		return b
	}
	both := slices.Clip(a)
	for _, endpoint := range b {
		if _, found := slices.BinarySearchFunc(a, endpoint, compareEndpoints); !found {
			both = append(both, endpoint)
		}
	}
	if len(both) > len(a) {
		slices.SortFunc(both, compareEndpoints)
	}
	return both
}

func compareEndpoints(a, b providers.Endpoint) int {
	return cmp.Or(cmp.Compare(a.Format, b.Format), cmp.Compare(a.Operation, b.Operation))
}

// Listed is a model that some channel lists, or an alias of one, with its channels in all groups.
type Listed struct {
	Model
	// Groups are the groups whose tokens may call it.
	Groups []string
	// Channels are the channels that serve it, in the order in which they are tried.
	Channels []ListedChannel
}

// ListedChannel is a channel that serves a model.
type ListedChannel struct {
	Name     string   `json:"name"`
	Vendor   string   `json:"vendor"`
	Upstream string   `json:"upstream" doc:"The model's name at the upstream"`
	Groups   []string `json:"groups" nullable:"false"`
	Priority int      `json:"priority"`
	Weight   int      `json:"weight"`
}

// ModelNames lists by name the models of all groups, including aliases, without patterns. The caller must not change the list.
func (r *Router) ModelNames() []string { return r.table.Load().names }

// ChannelNames lists the names of all channels. The caller must not change the list.
func (r *Router) ChannelNames() []string { return r.table.Load().channelNames }

// OpenChannels lists the names of the channels that have patterns. The caller must not change the list.
func (r *Router) OpenChannels() []string { return r.table.Load().wideNames }

// Listed returns a model of ModelNames. It reports false for another name.
func (r *Router) Listed(name string) (Listed, bool) {
	t := r.table.Load()
	var listed *Listed
	joined := make(map[*channel]bool)
	for _, group := range t.groups {
		model, known := t.listed(group, name)
		if !known {
			continue
		}
		if listed == nil {
			listed = &Listed{Model: model}
		}
		listed.join(model, group, t.routes[routeKey{group, model.Public}], joined)
	}
	if listed == nil {
		return Listed{}, false
	}
	slices.SortStableFunc(listed.Channels, func(a, b ListedChannel) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
	})
	return *listed, true
}

// join adds the model of a group. joined are the channels that were added before.
func (l *Listed) join(model Model, group string, routes []route, joined map[*channel]bool) {
	l.Groups = append(l.Groups, group)
	l.Endpoints = union(l.Endpoints, model.Endpoints)
	if l.Video == nil {
		l.Video = model.Video
	}
	for _, route := range routes {
		c := route.channel
		if !joined[c] {
			joined[c] = true
			l.Channels = append(l.Channels, ListedChannel{
				Name: c.Name, Vendor: c.Vendor, Upstream: cmp.Or(route.model, model.Public), Groups: c.Groups, Priority: c.Priority,
				Weight: max(c.Weight, 1),
			})
		}
	}
}
