package main

import (
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
		Name: t.Name, Group: t.Group, Models: t.Models, RequestsPerMinute: t.RequestsPerMinute,
		TokensPerMinute: t.TokensPerMinute, Concurrency: t.Concurrency, MaxTasks: t.MaxTasks, MaxSockets: t.MaxSockets,
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
		Priority: c.Priority, Weight: c.Weight, MaxJobs: c.MaxJobs, OpenValues: c.OpenValues, Disabled: c.Disabled,
	}
}
