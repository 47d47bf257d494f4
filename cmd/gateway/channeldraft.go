package main

import (
	"context"
	"fmt"
	"maps"
	"slices"
	"strings"

	"modelrelay/api/admin"
	"modelrelay/api/console/words"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/providers/trial"
	"modelrelay/providers/veo"
)

// draftChannel writes a channel for the configuration file as it is now, and tries its key. What it answers is the same whatever
// the environment has: who may draft must not learn which variables are set. It is admin.ChannelOptions' Draft.
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
		said := make([]string, len(problems))
		for i, problem := range problems {
			said[i] = fmt.Sprintf("'%s' %s", problem.Key, problem.Message)
		}
		return admin.ChannelDrafted{}, providers.InvalidField(problems[0].Key, "Invalid request: %s.", strings.Join(said, "; "))
	}
	made := admin.ChannelDrafted{YAML: drafted.YAML, Variable: drafted.Variable, Warnings: warned(drafted.Warnings, "")}
	switch channel := (config.Config{Channels: []config.Channel{drafted.Channel}}).Routes()[0]; {
	case in.Key == "":
	case veo.LeadsElsewhere(providers.Secret(in.Key), nil):
		made.Warnings = append(made.Warnings, findingOf(words.Load(), admin.SetupWarning, "", "draft.account"))
	case !desk.knownAddress(cfg, channel):
		made.Warnings = append(made.Warnings, findingOf(words.Load(), admin.SetupWarning, "", "draft.address"))
	default:
		tested, err := desk.tryKey(ctx, channel, providers.Secret(in.Key))
		if err != nil {
			return admin.ChannelDrafted{}, err
		}
		made.Tested = &tested
	}
	return made, nil
}

// keyNotTyped refuses a typed key that veo.LeadsElsewhere.
const keyNotTyped = "an account's key names an address of its own that the file does not have, or is the account of the machine. Such a key is tried once the file has it: gateway channels test."

// knownAddress tells whether a channel leads where the file leads with the same vendor already, or the vendor's adapter. A draft
// must not have the gateway ask any address that its sender thinks of.
func (d channelDesk) knownAddress(cfg config.Config, channel providers.Channel) bool {
	if channel.BaseURL == "" {
		return true
	}
	return below(channel.BaseURL, d.catalog[channel.Vendor].BaseURL) || slices.ContainsFunc(cfg.Channels, func(c config.Channel) bool {
		return c.Vendor == channel.Vendor && below(channel.BaseURL, c.BaseURL)
	})
}

// below tells whether an address is another, or a path below it.
func below(address, known string) bool {
	known = strings.TrimSuffix(known, "/")
	return known != "" && (address == known || strings.HasPrefix(address, known+"/")) && !strings.Contains(address, "..")
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
