package providers

import (
	"cmp"
	"slices"
	"strings"

	"modelrelay/providers/secret"
)

// AnyModel as a public model name opens a channel to every model name, unmapped.
const AnyModel = "*"

// wildcard stands in a pattern for any run of characters, slashes too. A pattern has one.
const wildcard = "*"

// IsPattern tells whether a public name of Channel.Models stands for all names that fit it.
func IsPattern(name string) bool { return strings.Contains(name, wildcard) }

// OpenAI's two APIs for chats, of which an upstream of its kind may lack one.
const (
	DialectBoth      = "both"
	DialectChat      = "chat"
	DialectResponses = "responses"
)

// Secret is a credential of an upstream.
type Secret = secret.Text

// Channel is one configured way to one upstream. It is immutable once loaded.
type Channel struct {
	// Name is unique among the configured channels.
	Name string
	// Vendor names an entry of the catalog.
	Vendor string
	// BaseURL is the upstream's address as that vendor's own SDK takes it, without a trailing slash.
	BaseURL string
	// Keys are used in turn; a refused one rests alone. At least one.
	Keys []Secret
	// Models maps public names, and patterns of them with one "*", to the upstream's. An empty value means the same name; a "*"
	// in one stands for what the pattern's matched. AnyModel opens every name.
	Models map[string]string
	// Groups are the token groups that may use the channel.
	Groups []string
	// Priority orders channels, higher first; Weight shares calls among equals, 0 counts as 1.
	Priority, Weight int
	Capacity
	// Dialect says which of OpenAI's APIs for chats the upstream has, "" for both. Of other vendors it says nothing.
	Dialect string
	// NativeOnly: calls in other formats are not translated for this channel.
	NativeOnly bool
	ModelFacts
	// NoStreamUsage: the upstream refuses the field that asks for the counts of a stream, so it is not added.
	NoStreamUsage bool
	// OpenValues lets enum values pass that the contract does not list.
	OpenValues bool
	// AllowPrivateResults lets links and redirects to results lead to private and loopback addresses beyond the channel's own
	// origin.
	AllowPrivateResults bool
	// Disabled takes the channel out of routing. Tasks that already run on it go on.
	Disabled bool
}

// Capacity is how much a channel's upstream may have under way at a time.
type Capacity struct {
	// MaxJobs limits video jobs in flight at this upstream; 0 means no limit.
	MaxJobs int
	// MaxCalls limits the synchronous calls and conversations that one process has under way at this upstream; 0 means no limit.
	MaxCalls int
}

// ModelFacts are what the operator says of upstream models, by the beginning of their names.
type ModelFacts struct {
	// Traits overrule what the names say of chats: words.
	Traits map[string][]string
	// Fields are what models call the fields of a video request, at vendors that host many models.
	Fields map[string]VideoFields
}

// FieldsOf are what an upstream model calls the fields of a video request, by the longest beginning of its name; nil where
// nobody says.
func (f ModelFacts) FieldsOf(model string) VideoFields {
	best, found := "", false
	for name := range f.Fields {
		if strings.HasPrefix(model, name) && (!found || len(name) > len(best)) {
			best, found = name, true
		}
	}
	return f.Fields[best]
}

// UpstreamModel returns the upstream's name of a public model and whether the channel carries it: by its name, else by the
// longest pattern that fits.
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

// match tells whether a name fits a pattern, and what stands for its wildcard. A name without one is no pattern.
func match(pattern, name string) (between string, fits bool) {
	before, after, is := strings.Cut(pattern, wildcard)
	if !is || len(name) < len(before)+len(after) || !strings.HasPrefix(name, before) || !strings.HasSuffix(name, after) {
		return "", false
	}
	return name[len(before) : len(name)-len(after)], true
}

// Speaks tells whether the upstream has an endpoint that its vendor has.
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

// Serves tells whether tokens of the group may use the channel.
func (c Channel) Serves(group string) bool { return slices.Contains(c.Groups, group) }

// KeyByFingerprint finds the key a ticket remembers; false when the configuration no longer has it.
func (c Channel) KeyByFingerprint(fingerprint string) (Secret, bool) {
	for _, key := range c.Keys {
		if key.Fingerprint() == fingerprint {
			return key, true
		}
	}
	return "", false
}

// Target is one channel with the one key chosen for this attempt and the model's name at the upstream.
type Target struct {
	Channel Channel
	Key     Secret
	// Model is the upstream model, already mapped.
	Model string
}

// KeyRef names one key of one channel without giving it away.
type KeyRef struct{ Channel, Fingerprint string }

// Ref names the target's key.
func (t Target) Ref() KeyRef {
	return KeyRef{Channel: t.Channel.Name, Fingerprint: t.Key.Fingerprint()}
}
