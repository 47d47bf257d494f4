package main

import (
	"context"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"modelrelay/api/admin"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/providers/trial"
)

// draftChannel writes a channel for the configuration file as it is now, and tries its key. It is admin.ChannelOptions' Draft.
func (p *parts) draftChannel(ctx context.Context, in admin.ChannelDraft) (admin.ChannelDrafted, error) {
	cfg, desk := p.current(), p.desk(p.cfg, p.log)
	draft := config.ChannelDraft{
		Name: in.Name, Vendor: in.Vendor, BaseURL: in.BaseURL, Models: in.Models, Groups: in.Groups, Priority: in.Priority, Weight: 1,
		MaxJobs: in.MaxJobs, MaxCalls: in.MaxCalls, Variable: in.Variable,
	}
	if in.Weight != nil {
		draft.Weight = *in.Weight
	}
	drafted, problems := cfg.DraftChannel(draft, providers.Secret(in.Key), p.catalog)
	if len(problems) > 0 {
		words := make([]string, len(problems))
		for i, problem := range problems {
			words[i] = fmt.Sprintf("'%s' %s", problem.Key, problem.Message)
		}
		return admin.ChannelDrafted{}, providers.InvalidField(problems[0].Key, "Invalid request: %s.", strings.Join(words, "; "))
	}
	made := admin.ChannelDrafted{YAML: drafted.YAML, Variable: drafted.Variable, Warnings: drafted.Warnings}
	if _, set := p.env(drafted.Variable); !set {
		made.Warnings = append(made.Warnings, fmt.Sprintf("The environment variable %s is not set in the process that answered: a file that names it is refused until it is.", drafted.Variable))
	}
	switch channel := (config.Config{Channels: []config.Channel{drafted.Channel}}).Routes()[0]; {
	case in.Key == "":
	case !desk.knownAddress(cfg, channel):
		made.Warnings = append(made.Warnings, "The key was not tried: it goes to addresses of vendors alone, and to those of channels that the file has. Once the file has this one: gateway channels test.")
	default:
		tested, err := desk.tryKey(ctx, channel, providers.Secret(in.Key))
		if err != nil {
			return admin.ChannelDrafted{}, err
		}
		made.Tested = &tested
	}
	return made, nil
}

// knownAddress tells whether a channel leads where the file, or a vendor's adapter, leads already. A draft must not have the
// gateway ask any address that its sender thinks of.
func (d channelDesk) knownAddress(cfg config.Config, channel providers.Channel) bool {
	if channel.BaseURL == "" {
		return true
	}
	origin := originOf(channel.BaseURL)
	for _, vendor := range d.catalog {
		if vendor.BaseURL != "" && originOf(vendor.BaseURL) == origin {
			return true
		}
	}
	return slices.ContainsFunc(cfg.Channels, func(c config.Channel) bool { return c.BaseURL != "" && originOf(c.BaseURL) == origin })
}

// originOf is scheme and host of an address that was checked.
func originOf(address string) string {
	u, err := url.Parse(address)
	if err != nil {
		return address
	}
	return strings.ToLower(u.Scheme + "://" + u.Host)
}

// tryKey asks something free with a key, at a channel that is not routed.
func (d channelDesk) tryKey(ctx context.Context, channel providers.Channel, secret providers.Secret) (admin.ChannelTested, error) {
	vendor := d.catalog[channel.Vendor]
	ask, err := trial.New(vendor, channel, secret)
	if err != nil {
		return admin.ChannelTested{}, err
	}
	tested := admin.ChannelTested{Object: "channel.test", Test: true}
	tested.Channel, tested.Key = channel.Name, ask.Target.Key.Fingerprint()
	err = d.check(ctx, ask, admin.ChannelTrial{Channel: channel.Name}, d.chats(vendor, ""), &tested)
	return tested, err
}

// vendors are the catalog's. It is admin.ChannelOptions' Vendors.
func (d channelDesk) vendors() []admin.ChannelVendor {
	list := make([]admin.ChannelVendor, 0, len(d.catalog))
	for _, name := range slices.Sorted(maps.Keys(d.catalog)) {
		vendor := d.catalog[name]
		shown := admin.ChannelVendor{Name: name, BaseURL: vendor.BaseURL, Operations: []string{}}
		if vendor.Relay != nil {
			shown.Operations = append(shown.Operations, "relay")
		}
		if vendor.Video != nil {
			shown.Operations = append(shown.Operations, "video")
		}
		if vendor.Realtime != nil {
			shown.Operations = append(shown.Operations, "realtime")
		}
		list = append(list, shown)
	}
	return list
}
