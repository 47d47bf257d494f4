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

// Seeds returns the file's tokens for the store.
func (c Config) Seeds() []tokens.Seed {
	seeds := make([]tokens.Seed, 0, len(c.Tokens))
	for _, t := range c.Tokens {
		token := t.Token
		token.Networks = storedNetworks(token.Networks)
		seeds = append(seeds, tokens.Seed{Token: token, Key: t.Key.Reveal()})
	}
	return seeds
}

// Proxies returns the networks of trusted reverse proxies.
func (c Config) Proxies() []netip.Prefix {
	networks := make([]netip.Prefix, 0, len(c.TrustedProxies))
	for _, network := range c.TrustedProxies {
		if prefix, err := parseNetwork(network); err == nil { // Validate refused invalid networks
			networks = append(networks, prefix)
		}
	}
	return networks
}

// Named returns models that the file names outside of channels: in prices, and as the targets of aliases.
func (c Config) Named() iter.Seq[string] {
	return slices.Values(slices.AppendSeq(slices.Collect(maps.Keys(c.Prices)), maps.Values(c.Aliases)))
}

// Routes returns the file's channels for the router.
func (c Config) Routes() []providers.Channel {
	channels := make([]providers.Channel, 0, len(c.Channels))
	for _, channel := range c.Channels {
		route := channel.Channel
		route.BaseURL = strings.TrimRight(route.BaseURL, "/")
		route.NativeOnly, route.NoStreamUsage = !channel.Translate, !channel.StreamUsage
		route.RunsBackground = channel.Background == BackgroundUpstream
		channels = append(channels, route)
	}
	return channels
}

const (
	// bodyPart is the divisor of the process's memory that request bodies may use by default. While a body is read or decoded, a second copy
	// exists for a moment, and the garbage collector lets the heap double.
	bodyPart = 4
	// leastBodies is the minimum of that memory, in bodies of the maximum size. A token's half must hold one.
	leastBodies = 4
)

// BodyMemory returns relay.max_body_memory, or for 0 the default in a process that may use limit bytes of memory.
func (r Relay) BodyMemory(limit int64) int64 {
	if r.MaxBodyMemory > 0 {
		return int64(r.MaxBodyMemory)
	}
	return max(limit/bodyPart, leastBodies*int64(r.MaxBody))
}
