package router

import (
	"cmp"
	"maps"
	"slices"
	"strings"

	"modelrelay/providers"
)

// Listed is a model that some channel lists, or an alias of one, with what serves it, whatever its group.
type Listed struct {
	Model
	// Groups are those whose tokens may call it.
	Groups []string
	// Channels are what serves it, in the order in which they are tried.
	Channels []ListedChannel
}

// ListedChannel is a channel that serves a model.
type ListedChannel struct {
	Name, Vendor string
	// Upstream is the model's name there.
	Upstream string
	Groups   []string
	Priority int
	Weight   int
}

// Catalogue lists all models by name, aliases too. A channel's patterns add none; Open names the channels that have some.
func (r *Router) Catalogue() (models []Listed, open []string) {
	t := r.table.Load()
	byName := make(map[string]*Listed)
	for _, group := range slices.Sorted(maps.Keys(t.models)) {
		for _, model := range t.models[group] {
			listed := byName[model.ID]
			if listed == nil {
				listed = &Listed{Model: model}
				listed.Endpoints = slices.Clone(model.Endpoints)
				byName[model.ID] = listed
			}
			listed.join(model, group, t.routes[routeKey{group, model.Public}])
		}
	}
	for _, name := range slices.Sorted(maps.Keys(byName)) {
		listed := byName[name]
		slices.SortStableFunc(listed.Channels, func(a, b ListedChannel) int {
			return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.Name, b.Name))
		})
		slices.SortFunc(listed.Endpoints, func(a, b providers.Endpoint) int { return strings.Compare(a.String(), b.String()) })
		models = append(models, *listed)
	}
	for name, channel := range t.channels {
		if !channel.Disabled && slices.ContainsFunc(slices.Collect(maps.Keys(channel.Models)), providers.IsPattern) {
			open = append(open, name)
		}
	}
	slices.Sort(open)
	return models, open
}

// join adds what a group has of the model.
func (l *Listed) join(model Model, group string, routes []route) {
	l.Groups = append(l.Groups, group)
	for _, endpoint := range model.Endpoints {
		if !slices.Contains(l.Endpoints, endpoint) {
			l.Endpoints = append(l.Endpoints, endpoint)
		}
	}
	if l.Video == nil {
		l.Video = model.Video
	}
	for _, route := range routes {
		c := route.channel
		if !slices.ContainsFunc(l.Channels, func(known ListedChannel) bool { return known.Name == c.Name }) {
			l.Channels = append(l.Channels, ListedChannel{
				Name: c.Name, Vendor: c.Vendor, Upstream: cmp.Or(route.model, model.Public), Groups: c.Groups, Priority: c.Priority, Weight: max(c.Weight, 1),
			})
		}
	}
}
