package router_test

import (
	"slices"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/router"
)

// TestCatalogue lists the models of all groups once, with what serves them in the order in which it is tried.
func TestCatalogue(t *testing.T) {
	t.Parallel()
	as := func(models map[string]string, groups ...string) func(*providers.Channel) {
		return func(c *providers.Channel) { c.Models, c.Groups, c.Weight = models, groups, 0 }
	}
	r := router.New(vendors(), []providers.Channel{
		channel("low", "talks", as(map[string]string{"m": "their-m"}, "one", "two")),
		channel("high", "talks", as(map[string]string{"m": ""}, "two"), func(c *providers.Channel) { c.Priority = 1 }),
		channel("wide", "talks", as(map[string]string{"x-*": ""}, "one")),
		channel("off", "talks", as(map[string]string{"gone": "", "*": ""}, "one"), func(c *providers.Channel) { c.Disabled = true }),
	}, &router.Options{Aliases: map[string]string{"fast": "m"}})
	models, open := catalogue(r), r.OpenChannels()
	if len(models) != 2 || models[0].ID != "fast" || models[0].Public != "m" || models[1].ID != "m" {
		t.Fatalf("listed %+v", models)
	}
	for _, model := range models {
		if !slices.Equal(model.Groups, []string{"one", "two"}) || !slices.Contains(model.Endpoints, chat) {
			t.Errorf("%s: groups %v, endpoints %v", model.ID, model.Groups, model.Endpoints)
		}
		if len(model.Channels) != 2 || model.Channels[0].Name != "high" || model.Channels[0].Upstream != "m" ||
			model.Channels[1].Upstream != "their-m" || model.Channels[1].Weight != 1 {
			t.Errorf("%s: served by %+v", model.ID, model.Channels)
		}
	}
	if !slices.Equal(open, []string{"wide"}) {
		t.Errorf("open: %v", open)
	}
	if _, listed := r.Listed("x-1"); listed {
		t.Error("a name that only a pattern fits is listed")
	}
}

// catalogue reads all models, one by one.
func catalogue(r *router.Router) (models []router.Listed) {
	for _, name := range r.ModelNames() {
		if model, listed := r.Listed(name); listed {
			models = append(models, model)
		}
	}
	return models
}
