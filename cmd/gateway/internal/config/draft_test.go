package config_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
	"unicode"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
)

// A draft becomes text that the file's own parser takes, as what was asked for.
func TestDraftChannel(t *testing.T) {
	t.Parallel()
	has := config.Config{
		Channels: []config.Channel{{Name: "main", Vendor: "openai", Groups: []string{"default"}}},
		Prices:   map[string]config.Price{"gpt-4o": {}},
	}
	for _, test := range []struct {
		draft config.ChannelDraft
		want  string
		warn  string
	}{
		{
			config.ChannelDraft{Name: "openai-b", Vendor: "openai", BaseURL: "https://api.example/v1", Models: map[string]string{"gpt-4o": "", "fast": "gpt-4o-mini"}, Weight: 1, Groups: []string{"default"}},
			`channels:
  - name: openai-b
    vendor: openai
    base_url: "https://api.example/v1"
    keys: ["${OPENAI_B_API_KEY}"]
    models: {"fast": "gpt-4o-mini", "gpt-4o": }
    groups: ["default"]
`, `prices: has none for "fast"`,
		},
		{
			config.ChannelDraft{Name: "1: ${HOME} \"x\"", Vendor: "openai", BaseURL: "https://api.example/${HOME}", Models: map[string]string{"${HOME}": "a${file:gateway.yaml}#b"}, Groups: []string{"new"}, Priority: -1, Weight: 3, MaxJobs: 4, MaxCalls: 5, Variable: "K"},
			`channels:
  - name: "1: $${HOME} \"x\""
    vendor: openai
    base_url: "https://api.example/$${HOME}"
    keys: ["${K}"]
    models: {"${HOME}": "a$${file:gateway.yaml}#b"}
    groups: ["new"]
    priority: -1
    weight: 3
    max_jobs: 4
    max_calls: 5
`, `group "new" is new`,
		},
	} {
		drafted, problems := has.DraftChannel(test.draft, "sk-typed", testVendors())
		if len(problems) > 0 || drafted.YAML != test.want {
			t.Errorf("%q: %v\n%s", test.draft.Name, problems, drafted.YAML)
			continue
		}
		if !strings.Contains(config.LinesOf(drafted.Warnings).String(), test.warn) {
			t.Errorf("%q: warns of %v, want %s", test.draft.Name, drafted.Warnings, test.warn)
		}
		got := drafted.Channel
		if got.Name != test.draft.Name || got.BaseURL != test.draft.BaseURL || !slices.Equal(got.Groups, test.draft.Groups) || got.Priority != test.draft.Priority ||
			got.Weight != test.draft.Weight || got.MaxJobs != test.draft.MaxJobs || got.MaxCalls != test.draft.MaxCalls || got.Keys[0] != "sk-typed" {
			t.Errorf("%q: read back as %+v", test.draft.Name, got)
		}
		for public, upstream := range test.draft.Models {
			if got.Models[public] != upstream {
				t.Errorf("%q: model %q is %q", test.draft.Name, public, got.Models[public])
			}
		}
	}
}

// TestDraftChannelWarnsOfItself: a draft is told of its own models without a price, and not of those of other channels.
func TestDraftChannelWarnsOfItself(t *testing.T) {
	t.Parallel()
	has := config.Config{
		Channels: []config.Channel{{Name: "main", Vendor: "openai", Groups: []string{"default"}, Models: map[string]string{"old": "", "both": ""}}},
		Prices:   map[string]config.Price{"gpt-4o": {}},
	}
	for model, want := range map[string]string{"both": "", "new": `prices: has none for "new": their calls cost nothing`} {
		draft := config.ChannelDraft{Name: "b", Vendor: "openai", BaseURL: "https://api.example/v1", Models: map[string]string{model: ""}, Groups: []string{"default"}, Weight: 1}
		drafted, problems := has.DraftChannel(draft, "sk-typed", testVendors())
		if got := config.LinesOf(drafted.Warnings).String(); got != want || len(problems) > 0 {
			t.Errorf("%s: got %q %v, want %q", model, got, problems, want)
		}
	}
}

// What the file would refuse is refused of a draft, at the field that is wrong.
func TestDraftChannelRefused(t *testing.T) {
	t.Parallel()
	has := config.Config{Channels: []config.Channel{{Name: "main"}}}
	good := func(change func(d *config.ChannelDraft)) config.ChannelDraft {
		d := config.ChannelDraft{Name: "b", Vendor: "openai", BaseURL: "https://api.example/v1", Models: map[string]string{"gpt-4o": ""}, Weight: 1}
		change(&d)
		return d
	}
	for field, test := range map[string]struct {
		draft  config.ChannelDraft
		secret providers.Secret
		say    string
	}{
		"name":      {draft: good(func(d *config.ChannelDraft) { d.Name = "main" }), say: "that the file has"},
		"vendor":    {draft: good(func(d *config.ChannelDraft) { d.Vendor = "nobody" }), say: "known are"},
		"base_url":  {draft: good(func(d *config.ChannelDraft) { d.BaseURL = "ftp://x" }), say: "wants http"},
		"models":    {draft: good(func(d *config.ChannelDraft) { d.Models = nil }), say: "at least one"},
		"models.*":  {draft: good(func(d *config.ChannelDraft) { d.Models = map[string]string{"*": "x"} }), say: "no upstream name"},
		"groups[0]": {draft: good(func(d *config.ChannelDraft) { d.Groups = []string{" "} }), say: "is empty"},
		"weight":    {draft: good(func(d *config.ChannelDraft) { d.Weight = -1 }), say: "negative"},
		"max_jobs":  {draft: good(func(d *config.ChannelDraft) { d.MaxJobs = -1 }), say: "negative"},
		"variable":  {draft: good(func(d *config.ChannelDraft) { d.Variable = "A-B" }), say: "the name of an environment variable"},
		"key":       {draft: good(func(d *config.ChannelDraft) { d.Vendor, d.BaseURL = "vendorc", "https://c.example" }), secret: "no-pair"},
	} {
		drafted, problems := has.DraftChannel(test.draft, test.secret, testVendors())
		if len(problems) == 0 || problems[0].Key != field || !strings.Contains(problems[0].Message, test.say) || drafted.YAML != "" {
			t.Errorf("%s: got %v, want one that says %q", field, problems, test.say)
		}
		if strings.Contains(config.LinesOf(problems).String(), "no-pair") {
			t.Errorf("%s: says the key", field)
		}
	}
	if drafted, problems := has.DraftChannel(good(func(*config.ChannelDraft) {}), "${HOME}", testVendors()); len(problems) > 0 || drafted.Channel.Keys[0] != "${HOME}" {
		t.Errorf("a key is more than its characters: %v", problems)
	}
	if _, problems := has.DraftChannel(good(func(d *config.ChannelDraft) { d.Vendor, d.BaseURL = "vendorc", "https://c.example" }), "", testVendors()); len(problems) > 0 {
		t.Errorf("a key that nobody knows is held to the vendor's shape: %v", problems)
	}
}

// FuzzDraftChannel: a draft is read back as what was asked for, whatever characters are in it, or refused at one of its fields.
func FuzzDraftChannel(f *testing.F) {
	for _, text := range []string{
		"a", "\x7f", "a\u0085b", "\u2028", "a\u2029", "\ufeffa", "\ufffe", "\x00", "\x1b[31m", "\u00a0", "\u00ad", "\U000e0001", "\U0001f600", "\ue000", "\u202e",
		"${HOME}", "$${HOME}", "$$${", "${file:gateway.yaml}", "<<", "null", "~", "true", "- a", "a: b", "#", "'", "\"", "\\", "a\nb", "a\r\nb", "\t", "模型", "*", "&a", "!!str", "%", "{", "]", ",",
		strings.Repeat("模", 200),
	} {
		f.Add(text, "m", "u", "g")
		f.Add("b", text, "u", "g")
		f.Add("b", "m", text, "g")
		f.Add("b", "m", "u", text)
	}
	f.Fuzz(func(t *testing.T, name, public, upstream, group string) {
		for _, text := range []*string{&name, &public, &upstream, &group} {
			*text = strings.ToValidUTF8(*text, "\ufffd") // as JSON is read
		}
		draft := config.ChannelDraft{
			Name: name, Vendor: "openai", BaseURL: "https://api.example/v1", Models: map[string]string{public: upstream, "other": ""}, Groups: []string{group}, Weight: 1,
		}
		drafted, problems := config.Config{}.DraftChannel(draft, "sk-typed", testVendors())
		for _, problem := range problems {
			if problem.Key == "" || strings.Contains(problem.Message, "yaml") {
				t.Fatalf("%+v: %v", draft, problem)
			}
		}
		if len(problems) > 0 {
			return
		}
		got := drafted.Channel
		if got.Name != name || !maps.Equal(got.Models, draft.Models) || !slices.Equal(got.Groups, draft.Groups) || len(got.Keys) != 1 || got.Keys[0] != "sk-typed" {
			t.Errorf("%+v is read back as %+v from\n%s", draft, got, drafted.YAML)
		}
		for _, r := range drafted.YAML {
			if r != '\n' && !unicode.IsPrint(r) {
				t.Errorf("%U stands in\n%s", r, drafted.YAML)
			}
		}
	})
}
