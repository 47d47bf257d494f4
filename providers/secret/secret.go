// Package secret has the type of what must not be shown.
package secret

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
)

// Redacted is what a Text shows of itself.
const Redacted = "***"

// Text is a credential or another secret. Printing, logging and marshalling it show "***"; Reveal is the only way to its text.
// It must not be the key of a map: encoding/json writes keys of a string's kind as they are.
type Text string

// Reveal returns the credential itself, for the request or the record that needs it and nothing else.
func (s Text) Reveal() string { return string(s) }

// Format hides the credential from fmt whatever the verb; a wrong one would print it otherwise.
func (s Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Redacted) }

// String hides the credential.
func (s Text) String() string { return Redacted }

// LogValue hides the credential from slog.
func (s Text) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalJSON hides the credential from documents.
func (s Text) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// MarshalText hides the credential from YAML and text encoders.
func (s Text) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// Fingerprint names the credential without giving it away: twelve hexadecimal digits of its SHA-256. It may be in
// logs and workflow histories.
func (s Text) Fingerprint() string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}
