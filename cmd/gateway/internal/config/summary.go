package config

import (
	"maps"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
)

// Summary describes a configuration, without secrets.
type Summary struct {
	File     string           `json:"file"`
	Listen   string           `json:"listen"`
	Temporal string           `json:"temporal"` // "ok", or why Temporal was not checked
	Tokens   []TokenSummary   `json:"tokens"`
	Channels []ChannelSummary `json:"channels"`
	// Warnings are what the configuration does that is probably not intended.
	Warnings []string `json:"warnings"`
}

// TokenSummary is one token of a Summary.
type TokenSummary struct {
	Name     string   `json:"name"`
	Group    string   `json:"group"`
	Models   []string `json:"models"`
	Disabled bool     `json:"disabled"`
	// Expires is zero for a token without expiry.
	Expires time.Time `json:"expires,omitzero"`
}

// ChannelSummary is one channel of a Summary.
type ChannelSummary struct {
	Name     string   `json:"name"`
	Vendor   string   `json:"vendor"`
	BaseURL  string   `json:"base_url"`
	Keys     int      `json:"keys"`
	Models   []string `json:"models"`
	Groups   []string `json:"groups"`
	Disabled bool     `json:"disabled"`
}

// Summarize returns the summary of a file's configuration. It does not check Temporal.
func (c Config) Summarize(file string, vendors providers.Catalog) Summary {
	s := Summary{File: file, Listen: c.Listen, Tokens: []TokenSummary{}, Channels: []ChannelSummary{}, Warnings: []string{}}
	for _, warning := range c.Warnings(vendors) {
		s.Warnings = append(s.Warnings, warning.String())
	}
	for _, t := range c.Tokens {
		s.Tokens = append(s.Tokens, TokenSummary{Name: t.Name, Group: t.Group, Models: t.Models, Disabled: t.Disabled, Expires: t.Expires})
	}
	for _, channel := range c.Channels {
		address, _, _ := strings.Cut(channel.BaseURL, "?") // which may hold a credential
		s.Channels = append(s.Channels, ChannelSummary{
			Name: channel.Name, Vendor: channel.Vendor, BaseURL: address, Keys: len(channel.Keys),
			Models: slices.Sorted(maps.Keys(channel.Models)), Groups: channel.Groups, Disabled: channel.Disabled,
		})
	}
	return s
}
