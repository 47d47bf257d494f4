package config

import (
	"maps"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/storage/tokens"
)

// Group has the rules for the tokens of a group.
type Group struct {
	tokens.GroupLimits
	Forbid []string `yaml:"forbid" doc:"features that the tokens of the group may not request, because they change the price of a call; such a request is answered with 400. background (true), service_tier (and Anthropic's speed), hosted_tools (tools that the vendor runs, such as a web search), inference_geo (Anthropic's, except global), cached_content (Gemini's), long_cache (cache marks longer than 5m), long_context (Anthropic's beta context-1m), other_models (models and hosts other than the model that the call names)"`
}

// GroupLimits returns the limits of the groups in the file.
func (c Config) GroupLimits() map[string]tokens.GroupLimits {
	limits := make(map[string]tokens.GroupLimits, len(c.Groups))
	for name, group := range c.Groups {
		limits[name] = group.GroupLimits
	}
	return limits
}

// GroupNames returns all groups: those of the file, those that channels name, and the default.
func (c Config) GroupNames() []string {
	names := map[string]bool{DefaultGroup: true}
	for name := range c.Groups {
		names[name] = true
	}
	for _, channel := range c.Channels {
		for _, name := range channel.Groups {
			names[name] = true
		}
	}
	return slices.Sorted(maps.Keys(names))
}

// ChannelsOf returns the names of the channels for the tokens of a group, in the order of the file.
func (c Config) ChannelsOf(group string) []string {
	var names []string
	for _, channel := range c.Channels {
		if slices.Contains(channel.Groups, group) && !channel.Disabled {
			names = append(names, channel.Name)
		}
	}
	return names
}

// checkCeilings refuses limits above the group's ceilings, except limits that the token had before: a ceiling that was lowered since
// applies anyway, and must not prevent other changes.
func (g Group) checkCeilings(v *validator, at string, limits tokens.Limits, budget float64, had *tokens.Token) {
	if had == nil {
		had = new(tokens.Token)
	}
	most, before := tokens.ListLimits(g.Ceilings.Limits), tokens.ListLimits(had.Limits)
	for i, limit := range tokens.ListLimits(limits) {
		if ceiling := most[i].Value; ceiling > 0 && (limit.Value > ceiling || limit.Value == tokens.Unlimited) && limit.Value != before[i].Value {
			v.add(at+"."+limit.Key, "is above %d, the ceiling of the group", ceiling)
		}
	}
	if ceiling := g.Ceilings.Budget; ceiling > 0 && budget > ceiling && budget != had.Budget {
		v.add(at+".budget", "is above %v, the ceiling of the group", ceiling)
	}
}

func checkGroups(v *validator, groups map[string]Group) {
	for _, name := range slices.Sorted(maps.Keys(groups)) {
		group, at := groups[name], "groups."+name
		if strings.TrimSpace(name) == "" {
			v.add("groups", "a name is empty")
		}
		checkLimits(v, at+".defaults", group.Defaults.Limits)
		checkLimits(v, at+".ceilings", group.Ceilings.Limits)
		v.amount(at+".defaults.budget", group.Defaults.Budget)
		v.amount(at+".ceilings.budget", group.Ceilings.Budget)
		for _, limit := range tokens.ListLimits(group.Ceilings.Limits) {
			if limit.Value == tokens.Unlimited {
				v.add(at+".ceilings."+limit.Key, "must be a number above 0; omit it for no ceiling")
			}
		}
		group.checkCeilings(v, at+".defaults", group.Defaults.Limits, group.Defaults.Budget, nil)
		for i, word := range group.Forbid {
			v.oneOf(key(at+".forbid", i), word, providers.Forbiddable()...)
		}
	}
}

// Forbids returns what the tokens of a group may not request.
func (c Config) Forbids(group string) []string { return c.Groups[group].Forbid }
