package config

import (
	"iter"
	"maps"
	"net/netip"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/storage/tokens"
)

// Seeds are the file's tokens for the store.
func (c Config) Seeds() []tokens.Seed {
	seeds := make([]tokens.Seed, 0, len(c.Tokens))
	for _, t := range c.Tokens {
		token := t.Token
		token.Networks = storedNetworks(token.Networks)
		seeds = append(seeds, tokens.Seed{Token: token, Key: t.Key.Reveal()})
	}
	return seeds
}

// Proxies are the networks of trusted reverse proxies.
func (c Config) Proxies() []netip.Prefix {
	networks := make([]netip.Prefix, 0, len(c.TrustedProxies))
	for _, network := range c.TrustedProxies {
		if prefix, err := parseNetwork(network); err == nil { // Validate refused the others
			networks = append(networks, prefix)
		}
	}
	return networks
}

// Named are models that the file names other than in its channels: those that have a price, and those that aliases replace.
func (c Config) Named() iter.Seq[string] {
	return slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(c.Prices)), maps.Values(c.Aliases)))
}

// Routes are the file's channels for the router.
func (c Config) Routes() []providers.Channel {
	channels := make([]providers.Channel, 0, len(c.Channels))
	for _, channel := range c.Channels {
		channels = append(channels, channel.route())
	}
	return channels
}

func (c Channel) route() providers.Channel {
	c.BaseURL = strings.TrimRight(c.BaseURL, "/")
	c.NativeOnly, c.NoStreamUsage, c.RunsBackground = !c.Translate, !c.StreamUsage, c.Background == BackgroundUpstream
	return c.Channel
}

const (
	// bodyPart is which part of the process's memory request bodies get where the file does not set it. While one is read or decoded
	// there is a second copy of it for a moment, and the garbage collector lets the heap double.
	bodyPart = 4
	// leastBodies is how many of the largest bodies there is room for at least, so that a token's half holds one.
	leastBodies = 4
)

// BodyMemory is relay.max_body_memory, or what stands for its 0 in a process that may take so much memory.
func (r Relay) BodyMemory(limit int64) int64 {
	if r.MaxBodyMemory > 0 {
		return int64(r.MaxBodyMemory)
	}
	return max(limit/bodyPart, leastBodies*int64(r.MaxBody))
}
