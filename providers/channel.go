package providers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
	"slices"
)

// redacted is what a Secret shows of itself.
const redacted = "***"

// AnyModel as a public model name opens a channel to every model name, unmapped.
const AnyModel = "*"

// Secret is an upstream credential. Printing, logging and marshalling it show "***"; Reveal is the only way to its text.
type Secret string

// Reveal returns the credential itself, for the request to the upstream and nothing else.
func (s Secret) Reveal() string { return string(s) }

// Format hides the credential from fmt whatever the verb; a wrong one would print it otherwise.
func (s Secret) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, redacted) }

// String hides the credential.
func (s Secret) String() string { return redacted }

// GoString hides the credential from %#v.
func (s Secret) GoString() string { return redacted }

// LogValue hides the credential from slog.
func (s Secret) LogValue() slog.Value { return slog.StringValue(redacted) }

// MarshalJSON hides the credential from documents.
func (s Secret) MarshalJSON() ([]byte, error) { return []byte(`"` + redacted + `"`), nil }

// MarshalText hides the credential from YAML and text encoders.
func (s Secret) MarshalText() ([]byte, error) { return []byte(redacted), nil }

// Fingerprint names the credential without giving it away: twelve hexadecimal digits of its SHA-256. It may stand in
// logs and workflow histories.
func (s Secret) Fingerprint() string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}

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
