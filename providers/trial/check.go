// Package trial asks one channel something outside of routing: what costs nothing, or for one video. Nothing of it counts for or
// against the channel, and no token pays.
//
// Of the product it imports providers, providers/pricing and providers/upstream alone.
package trial

import (
	"context"
	"maps"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
)

// Ask is who is asked, and with which key.
type Ask struct {
	Vendor providers.Vendor
	// Target has no Model.
	Target providers.Target
}

// New asks a channel of a vendor; key stands in place of the channel's first one, unless it is "", and nothing of it outlives the
// Ask. The error is a *providers.Fault: there is no key.
func New(vendor providers.Vendor, channel providers.Channel, key providers.Secret) (Ask, error) {
	if apart, keeps := vendor.Video.(keeper); keeps && key != "" {
		vendor.Video = apart.Apart()
	}
	if key == "" && len(channel.Keys) > 0 {
		key = channel.Keys[0]
	}
	if key == "" {
		return Ask{}, providers.InvalidField("key", "Invalid request: 'key' is required: the channel %q has none.", channel.Name)
	}
	if channel.BaseURL == "" {
		channel.BaseURL = vendor.BaseURL
	}
	return Ask{Vendor: vendor, Target: providers.Target{Channel: channel, Key: key}}, nil
}

// keeper is an adapter that keeps something of the keys that it is given. Apart is one of the same vendor that shares nothing with
// it: with the trial of a typed key all that was kept of the key goes.
type keeper interface{ Apart() providers.VideoAdapter }

// Verdict is what came of a check.
type Verdict struct {
	Said

	// OK: address, key and rights are good.
	OK bool
	// Asked is what the vendor was asked, "" for nothing.
	Asked string
	// Lacks are the channel's upstream models that the key may not use, as far as the vendor tells.
	Lacks []string
	// Fault is why it did not say that all is good; nil where it did, and where models are lacking.
	Fault *providers.Fault
}

// Check asks the vendor something that costs nothing: models, the account, or the look-up of an unknown job.
func (a Ask) Check(ctx context.Context) Verdict {
	checker, ok := a.Vendor.Relay.(providers.Checker)
	if !ok {
		checker, ok = a.Vendor.Video.(providers.Checker)
	}
	if !ok {
		return Verdict{Said: say("trial.nothing_free"), Fault: providers.Faultf(providers.Invalid, "The vendor %q has nothing that is free to ask.", a.Vendor.Name)}
	}
	models := a.models()
	names := make([]string, 0, len(models))
	for _, name := range slices.Sorted(maps.Values(models)) {
		if !slices.Contains(names, name) {
			names = append(names, name)
		}
	}
	checked, err := checker.Check(ctx, a.Target, names)
	v := Verdict{Asked: checked.Asked, Lacks: checked.Lacks}
	switch {
	case err != nil:
		v.Said, v.Fault = Refused(err, a.Target.Key), providers.AsFault(err)
	case len(checked.Lacks) > 0:
		v.Said = say("trial.lacks", "models", providers.Shown(strings.Join(checked.Lacks, ", ")))
	case len(names) == 0:
		v.OK, v.Said = true, say("trial.good")
	case !checked.Told:
		v.OK, v.Said = true, say("trial.untold")
	case len(names) == 1:
		v.OK, v.Said = true, say("trial.right", "model", providers.Shown(names[0]))
	default:
		v.OK, v.Said = true, say("trial.rights", "n", strconv.Itoa(len(names)))
	}
	return v
}

// models are the upstream's names of the channel's models by their public names, without patterns.
func (a Ask) models() map[string]string {
	models := make(map[string]string)
	for public := range a.Target.Channel.Models {
		if name, ok := a.Target.Channel.UpstreamModel(public); ok && !providers.IsPattern(public) {
			models[public] = name
		}
	}
	return models
}
