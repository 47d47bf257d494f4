package providers

import "slices"

// AnyModel as a public model name opens a channel to every model name, unmapped.
const AnyModel = "*"

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
	// Models maps public names to the upstream's. An empty value means the same name; AnyModel opens every name.
	Models map[string]string
	// Groups are the token groups that may use the channel.
	Groups []string
	// Priority orders channels, higher first; Weight shares calls among equals, 0 counts as 1.
	Priority, Weight int
	// MaxJobs limits video jobs in flight at this upstream; 0 means no limit.
	MaxJobs int
	// OpenValues lets enum values pass that the contract does not list.
	OpenValues bool
	// AllowPrivateResults lets links and redirects to results lead to private and loopback addresses beyond the channel's own
	// origin.
	AllowPrivateResults bool
	// Disabled takes the channel out of routing. Tasks that already run on it go on.
	Disabled bool
}

// UpstreamModel returns the upstream's name of a public model and whether the channel carries it.
func (c Channel) UpstreamModel(public string) (string, bool) {
	if name, ok := c.Models[public]; ok && public != AnyModel {
		if name == "" {
			return public, true
		}
		return name, true
	}
	_, open := c.Models[AnyModel]
	return public, open
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
