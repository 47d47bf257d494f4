package providers

import (
	"cmp"
	"slices"
	"strings"

	"modelrelay/providers/secret"
)

// AnyModel as a public name in Channel.Models matches every name and maps it to itself.
const AnyModel = "*"

// wildcard matches any text in a pattern, including slashes. A pattern has one.
const wildcard = "*"

// IsPattern reports whether a public name of Channel.Models is a pattern.
func IsPattern(name string) bool { return strings.Contains(name, wildcard) }

// The values of Channel.Dialect: OpenAI's two APIs for chats.
const (
	DialectBoth      = "both"
	DialectChat      = "chat"
	DialectResponses = "responses"
)

// The values of Channel.LostAnswer.
const (
	// LostRepeat: the call is sent once more.
	LostRepeat = "repeat"
	// LostFail: the call fails.
	LostFail = "fail"
)

// Secret is a credential of an upstream.
type Secret = secret.Text

// Channel is one configured route to an upstream. It is immutable once loaded.
type Channel struct {
	Name   string `yaml:"name" required:"true" doc:"unique name; tasks record it"`
	Vendor string `yaml:"vendor" doc:"code for this kind of upstream"`
	// BaseURL has no trailing slash once it is loaded.
	BaseURL  string            `yaml:"base_url" doc:"address, in the form that the vendor's own SDK expects; optional if the vendor has a public address"`
	Keys     []Secret          `yaml:"keys" doc:"upstream keys, used in turn; a cooldown of a refused key affects only that key"`
	Models   map[string]string `yaml:"models" doc:"public name: upstream name; empty: the same name. A * in a public name matches any characters, and a * in its upstream name is replaced by them. An exact name comes first, then the longest pattern that matches; \"*\" allows every name"`
	Groups   []string          `yaml:"groups" doc:"token groups that may use it"`
	Priority int               `yaml:"priority" doc:"a higher priority comes first"`
	Weight   int               `yaml:"weight" range:"0-" doc:"share among channels of one priority; 0: 1"`
	Capacity
	OpenValues bool   `yaml:"open_values" doc:"accept enum values that the contract does not list"`
	Dialect    string `yaml:"dialect" enum:"both,chat,responses" doc:"for vendor openai: both, chat (the upstream has no /responses) or responses (the upstream has no /chat/completions); the gateway translates calls of the missing endpoint"`
	ModelFacts
	AllowPrivateResults bool   `yaml:"allow_private_results" doc:"also read results at private and loopback addresses if their links or redirects lead to another origin than base_url"`
	LostAnswer          string `yaml:"lost_answer" enum:",repeat,fail" doc:"repeat or fail: replaces background.lost_answer for this channel; empty: background.lost_answer"`
	Disabled            bool   `yaml:"disabled" doc:"exclude the channel from routing; running tasks continue"`

	// NativeOnly: calls in other formats are not translated for this channel.
	NativeOnly bool
	// NoStreamUsage: the upstream refuses the field that requests the usage of a stream, so the gateway does not add it.
	NoStreamUsage bool
	// RunsBackground: the vendor runs background calls that it can run, under a ticket.
	RunsBackground bool
}

// Capacity limits what is in progress at a channel's upstream.
type Capacity struct {
	MaxJobs  int `yaml:"max_jobs" range:"0-" doc:"maximum number of unfinished video jobs at this upstream; 0: no limit"`
	MaxCalls int `yaml:"max_calls" range:"0-" doc:"maximum number of open synchronous calls and conversations at this upstream, for each gateway process: divide the limit of the upstream by the number of processes. If the channel is full, a call takes the next one; if all are full, it waits up to 3 seconds and is then answered with 503. 0: no limit"`
}

// ModelFacts are the operator's facts about upstream models, by prefixes of their names.
type ModelFacts struct {
	Traits map[string][]string    `yaml:"traits" doc:"prefix of an upstream name: traits of these models, which replace the known traits of the name; the words are in reference/traits.md of the manual"`
	Fields map[string]VideoFields `yaml:"fields" doc:"for vendors fal and replicate; prefix of an upstream name: field of the gateway: name of the field at these models, or {name, as}; \"\": they have no such field. The fields are in reference/traits.md of the manual"`
}

// FieldsOf returns the Fields of an upstream model by the longest matching prefix; nil for none.
func (f ModelFacts) FieldsOf(model string) VideoFields {
	best, found := "", false
	for name := range f.Fields {
		if strings.HasPrefix(model, name) && (!found || len(name) > len(best)) {
			best, found = name, true
		}
	}
	return f.Fields[best]
}

// UpstreamModel returns the upstream model of a public name: by its name, else by the longest matching pattern; false for none.
func (c Channel) UpstreamModel(public string) (string, bool) {
	if name, ok := c.Models[public]; ok && !IsPattern(public) {
		return cmp.Or(name, public), true
	}
	best, matched := "", ""
	for pattern := range c.Models {
		between, fits := match(pattern, public)
		if fits && (len(pattern) > len(best) || len(pattern) == len(best) && pattern < best) {
			best, matched = pattern, between
		}
	}
	upstream := c.Models[best]
	if best == AnyModel || upstream == "" {
		return public, best != ""
	}
	return strings.Replace(upstream, wildcard, matched, 1), true
}

// match reports whether a name matches a pattern, and the text that the wildcard matched. A name without a wildcard matches nothing.
func match(pattern, name string) (between string, fits bool) {
	before, after, is := strings.Cut(pattern, wildcard)
	if !is || len(name) < len(before)+len(after) || !strings.HasPrefix(name, before) || !strings.HasSuffix(name, after) {
		return "", false
	}
	return name[len(before) : len(name)-len(after)], true
}

// Speaks reports whether the upstream has an endpoint of its vendor.
func (c Channel) Speaks(e Endpoint) bool {
	if e.Format != OpenAI {
		return true
	}
	switch e.Operation {
	case Chat:
		return c.Dialect != DialectResponses
	case Responses, CompactResponse, InputTokens:
		return c.Dialect != DialectChat
	default:
		return true
	}
}

// Serves reports whether tokens of the group may use the channel.
func (c Channel) Serves(group string) bool { return slices.Contains(c.Groups, group) }

// KeyByFingerprint returns the key of a ticket. It reports false if the configuration no longer has it.
func (c Channel) KeyByFingerprint(fingerprint string) (Secret, bool) {
	for _, key := range c.Keys {
		if key.Fingerprint() == fingerprint {
			return key, true
		}
	}
	return "", false
}

// Target is a channel with the key of an attempt and the upstream model.
type Target struct {
	Channel Channel
	Key     Secret
	Model   string
}

// KeyRef identifies a key of a channel without containing it.
type KeyRef struct{ Channel, Fingerprint string }

// Ref returns the KeyRef of the target.
func (t Target) Ref() KeyRef {
	return KeyRef{Channel: t.Channel.Name, Fingerprint: t.Key.Fingerprint()}
}
