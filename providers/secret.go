package providers

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
)

// redacted is what a Secret shows of itself.
const redacted = "***"

// Secret is a credential: an upstream's key, or one of the operator's own. Printing, logging and marshalling it show "***"; Reveal is the only
// way to its text. It must not be the key of a map that is marshalled: encoding/json writes the text of such keys.
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
