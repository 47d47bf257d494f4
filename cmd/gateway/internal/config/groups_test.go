package config_test

import (
	"strings"
	"testing"

	"modelrelay/storage/tokens"
)

const groupsText = `groups:
  default:
    defaults: {requests_per_minute: 60, budget: 5}
    ceilings: {requests_per_minute: 600, concurrency: 8, max_sockets: 10, budget: 50}
    forbid: [background, hosted_tools]
  free: {ceilings: {requests_per_minute: 10}}
`

// TestGroups: a token takes its group's limits where it has none of its own, in the file and when it is made, and never more
// than the ceilings.
func TestGroups(t *testing.T) {
	t.Parallel()
	cfg, err := parse(groupsText + `tokens:
  - {name: plain, key: k1}
  - {name: own, key: k2, requests_per_minute: 600, concurrency: 2, budget: 7}
  - {name: other, key: k3, group: other}
`)
	if err != nil {
		t.Fatal(err)
	}
	filled := tokens.Limits{RequestsPerMinute: 60, Concurrency: 8, MaxSockets: 10}
	seeds := cfg.Seeds()
	held := func(token tokens.Token) tokens.Token { return cfg.GroupLimits()[token.Group].InForce(token) }
	if own, got := seeds[0].Token, held(seeds[0].Token); own.Limits != (tokens.Limits{}) || got.Limits != filled || got.Budget != 5 {
		t.Errorf("a token without limits: got %+v, budget %v", got.Limits, got.Budget)
	}
	if got, want := held(seeds[1].Token), (tokens.Limits{RequestsPerMinute: 600, Concurrency: 2, MaxSockets: 10}); got.Limits != want ||
		got.Budget != 7 {
		t.Errorf("limits of its own: got %+v, budget %v", got.Limits, got.Budget)
	}
	if got := held(seeds[2].Token); got.Limits != (tokens.Limits{}) || got.Budget != 0 {
		t.Errorf("of a group that the file does not name: got %+v", got)
	}
	made := tokens.Token{Name: "made", Group: "default", Weight: 1, Lane: "normal"}
	if got, problem := cfg.CheckToken(nil, made); problem != nil || got.Limits != (tokens.Limits{}) || got.Budget != 0 {
		t.Errorf("made at run time: got %+v, budget %v, %v; its own limits are stored", got.Limits, got.Budget, problem)
	}
	for key, change := range map[string]func(*tokens.Token){
		"requests_per_minute": func(t *tokens.Token) { t.RequestsPerMinute = 601 },
		"concurrency":         func(t *tokens.Token) { t.Concurrency = 9 },
		"max_sockets":         func(t *tokens.Token) { t.MaxSockets = tokens.Unlimited },
		"budget":              func(t *tokens.Token) { t.Budget = 50.5 },
	} {
		token := made
		change(&token)
		if _, problem := cfg.CheckToken(&token, token); problem != nil {
			t.Errorf("%s, as it was before: %v", key, problem)
		}
		was := token
		if was.Group = "free"; key == "budget" {
			was.Group = "other"
		}
		if _, problem := cfg.CheckToken(&was, token); problem == nil {
			t.Errorf("%s, from another group: no problem", key)
		}
		if _, problem := cfg.CheckToken(&made, token); problem == nil || problem.Key != key ||
			!strings.Contains(problem.Message, "the ceiling of the group") {
			t.Errorf("%s: got %v", key, problem)
		}
	}
	if words := cfg.Forbids("default"); len(words) != 2 || cfg.Forbids("free") != nil || cfg.Forbids("nobody") != nil {
		t.Errorf("forbids %v", words)
	}
	const negative = "channels: [{name: a, vendor: openai, base_url: \"http://u.test\", keys: [k], models: {m: }, max_calls: -1}]"
	for text, want := range map[string]string{
		groupsText + "tokens: [{name: a, key: k, concurrency: 9}]":                       "7:28: tokens[0].concurrency: is above 8, the ceiling of the group",
		groupsText + "tokens: [{name: a, key: k, group: free, requests_per_minute: 11}]": "tokens[0].requests_per_minute: is above 10, the ceiling of the group",
		"groups: {a: {forbid: [money]}}":                                                 `groups.a.forbid[0]: "money" is unknown; known are background, service_tier, hosted_tools, inference_geo, cached_content, long_cache, long_context, other_models`,
		"groups:\n  a:\n    defaults: {concurrency: 9}\n    ceilings: {concurrency: 8}":  "3:16: groups.a.defaults.concurrency: is above 8",
		"groups: {a: {ceilings: {max_sockets: -1}}}":                                     "groups.a.ceilings.max_sockets: must be a number above 0",
		"groups: {a: {defaults: {requests_per_minute: -5}}}":                             "groups.a.defaults.requests_per_minute: is negative",
		"groups: {a: {limits: {}}}":                                                      "groups.a.limits: unknown key; known here are ceilings, defaults, forbid",
		"egress_proxy: proxy.internal:3128":                                              "1:1: egress_proxy: must be http://host:port",
		"egress_proxy: ftp://proxy.internal":                                             "egress_proxy: must be http://host:port",
		"no_proxy: [a.example]":                                                          "1:1: no_proxy: has no effect without egress_proxy",
		negative:                                                                         "channels[0].max_calls: is negative",
	} {
		if _, err := parse(text); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s\ngot %v\nwant %s", text, err, want)
		}
	}
}
