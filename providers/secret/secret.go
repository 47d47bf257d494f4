// Package secret has the type of a text that must not be shown.
package secret

import (
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
	"log/slog"
)

// Redacted is printed instead of a Text.
const Redacted = "***"

// Text is a credential or another secret. Printing, logging and marshaling it show "***"; only Reveal returns its text. It must not be the
// key of a map: encoding/json writes keys of a string type unchanged.
type Text string

// Reveal returns the credential itself, only for the request or the record that needs it.
func (s Text) Reveal() string { return string(s) }

// Format hides the credential from fmt for every verb; a wrong verb would otherwise print it.
func (s Text) Format(f fmt.State, _ rune) { _, _ = io.WriteString(f, Redacted) }

// String hides the credential.
func (s Text) String() string { return Redacted }

// LogValue hides the credential from slog.
func (s Text) LogValue() slog.Value { return slog.StringValue(Redacted) }

// MarshalJSON hides the credential from documents.
func (s Text) MarshalJSON() ([]byte, error) { return []byte(`"` + Redacted + `"`), nil }

// MarshalText hides the credential from YAML and text encoders.
func (s Text) MarshalText() ([]byte, error) { return []byte(Redacted), nil }

// Fingerprint identifies the credential without revealing it: twelve hexadecimal digits of its SHA-256. Logs and histories may have it.
func (s Text) Fingerprint() string {
	sum := sha256.Sum256([]byte(s))
	return hex.EncodeToString(sum[:6])
}
