package config

import (
	"maps"
	"reflect"
	"slices"
	"strings"

	"modelrelay/storage/tokens"
)

// Group is what the tokens of a group have in common.
type Group struct {
	Defaults Defaults `yaml:"defaults"`
	Ceilings Ceilings `yaml:"ceilings"`
	Forbid   []string `yaml:"forbid" doc:"what changes the price of a call and its tokens may not ask for, else 400: background (true), service_tier, hosted_tools (tools that the vendor runs, such as a web search)"`
}

// Defaults are limits of tokens that are given none.
type Defaults struct {
	tokens.Limits
	Budget float64 `yaml:"budget" doc:"budget of a token that has none of its own"`
}

// Ceilings are the highest limits that a token may be given.
type Ceilings struct {
	tokens.Limits
	Budget float64 `yaml:"budget" doc:"highest budget of a token, and that of one without, where defaults has none; 0: any"`
}

// What Group.Forbid may hold.
const (
	ForbidBackground  = "background"
	ForbidServiceTier = "service_tier"
	ForbidHostedTools = "hosted_tools"
)

// filled is a token with its group's limits in place of those that it has none of: the default, else the ceiling.
func (g Group) filled(t tokens.Token) tokens.Token {
	limits := reflect.ValueOf(&t.Limits).Elem()
	for _, other := range []tokens.Limits{g.Defaults.Limits, g.Ceilings.Limits} {
		for field, value := range reflect.ValueOf(other).Fields() {
			if own := limits.FieldByIndex(field.Index); own.Int() == 0 {
				own.Set(value)
			}
		}
	}
	for _, budget := range []float64{g.Defaults.Budget, g.Ceilings.Budget} {
		if t.Budget == 0 {
			t.Budget = budget
		}
	}
	return t
}

// checkCeilings refuses what is above the group's.
func (g Group) checkCeilings(v *validator, at string, limits tokens.Limits, budget float64) {
	most := tokens.ListLimits(g.Ceilings.Limits)
	for i, limit := range tokens.ListLimits(limits) {
		if ceiling := most[i].Value; ceiling > 0 && (limit.Value > ceiling || limit.Value == tokens.Unlimited) {
			v.add(at+"."+limit.Key, "is above %d, the ceiling of the group", ceiling)
		}
	}
	if ceiling := g.Ceilings.Budget; ceiling > 0 && budget > ceiling {
		v.add(at+".budget", "is above %v, the ceiling of the group", ceiling)
	}
}

// checkGroups checks what the file says of groups.
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
				v.add(at+".ceilings."+limit.Key, "wants a number above 0; leave it out for none")
			}
		}
		group.checkCeilings(v, at+".defaults", group.Defaults.Limits, group.Defaults.Budget)
		for i, word := range group.Forbid {
			v.oneOf(key(at+".forbid", i), word, ForbidBackground, ForbidServiceTier, ForbidHostedTools)
		}
	}
}

// Forbids is what the tokens of a group may not ask for.
func (c Config) Forbids(group string) []string { return c.Groups[group].Forbid }
