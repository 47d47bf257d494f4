package main

import (
	"net/netip"
	"strings"

	"modelrelay/providers"
	"modelrelay/storage"
)

// stored is the token as the store keeps it.
func (t Token) stored() storage.Token {
	networks := make([]string, 0, len(t.Networks))
	for _, network := range t.Networks {
		if prefix, err := parseNetwork(network); err == nil { // Validate refused the others
			networks = append(networks, prefix.String())
		}
	}
	return storage.Token{
		Name: t.Name, Group: t.Group, Models: t.Models, TokenLimits: t.TokenLimits,
		Budget: t.Budget, Weight: t.Weight, Lane: t.Lane, Expires: t.Expires, Networks: networks, Operations: t.Operations,
		WebhookURL: t.WebhookURL, WebhookSecret: storage.Secret(t.WebhookSecret.Reveal()), Disabled: t.Disabled,
	}
}

// seeds are the file's tokens for the store.
func (c Config) seeds() []storage.Seed {
	seeds := make([]storage.Seed, 0, len(c.Tokens))
	for _, t := range c.Tokens {
		seeds = append(seeds, storage.Seed{Token: t.stored(), Key: t.Key.Reveal()})
	}
	return seeds
}

// proxies are the networks of trusted reverse proxies.
func (c Config) proxies() []netip.Prefix {
	networks := make([]netip.Prefix, 0, len(c.TrustedProxies))
	for _, network := range c.TrustedProxies {
		if prefix, err := parseNetwork(network); err == nil { // Validate refused the others
			networks = append(networks, prefix)
		}
	}
	return networks
}

// prices are the file's price list.
func (c Config) prices() map[string]providers.Price {
	list := make(map[string]providers.Price, len(c.Prices))
	for model, price := range c.Prices {
		list[model], _ = price.list() // Validate refused the others
	}
	return list
}

// list is the price as calls are charged by it, and what is wrong with it.
func (p Price) list() (providers.Price, []Problem) {
	var price providers.Price
	var problems []Problem
	unit := units()[p.Unit]
	if unit == 0 {
		unit = 1 // what is wrong with the unit is said elsewhere
	}
	for _, rate := range []struct {
		key    string
		amount Amount
		per    int64
		into   **providers.Rate
	}{
		{"input", p.Input, unit, &price.Input},
		{"cached_input", p.CachedInput, unit, &price.Cached},
		{"output", p.Output, unit, &price.Output},
		{"request", p.Request, 1, &price.Request},
		{"image", p.Image, 1, &price.Image},
		{"audio_second", p.AudioSecond, 1, &price.AudioSecond},
		{"second", p.Second, 1, &price.VideoSecond},
	} {
		var err error
		if *rate.into, err = rate.amount.rate(rate.per); err != nil {
			problems = append(problems, Problem{Key: rate.key, Message: err.Error()})
		}
	}
	return price, problems
}

// routes are the file's channels for the router.
func (c Config) routes() []providers.Channel {
	channels := make([]providers.Channel, 0, len(c.Channels))
	for _, channel := range c.Channels {
		channels = append(channels, channel.route())
	}
	return channels
}

func (c Channel) route() providers.Channel {
	return providers.Channel{
		Name: c.Name, Vendor: c.Vendor, BaseURL: strings.TrimRight(c.BaseURL, "/"), Keys: c.Keys, Models: c.Models, Groups: c.Groups,
		Priority: c.Priority, Weight: c.Weight, MaxJobs: c.MaxJobs, OpenValues: c.OpenValues, AllowPrivateResults: c.AllowPrivateResults, Disabled: c.Disabled,
	}
}
