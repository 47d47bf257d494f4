package providers

import (
	"regexp"
	"strings"
)

// query finds the query string of an address in a text.
var query = regexp.MustCompile(`(://[^\s"'<>?]*)\?[^\s"'<>]*`)

// Words takes out of an upstream's words what must be neither shown nor kept: the query string of every address. An
// upstream that could not fetch an input repeats the client's link, signature and all.
func Words(text string) string { return query.ReplaceAllString(text, "${1}?…") }

// Cut shortens an upstream's words to a number of bytes, between two characters.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// Limits of what is kept of an upstream's words, in bytes.
const (
	// ReasonLimit bounds its reason for a refusal or a failure.
	ReasonLimit = 400
	// WordLimit bounds its status words and error codes.
	WordLimit = 100
)

// Reason makes an upstream's reason for a refusal fit to be shown: short, without query strings, and without the
// credentials it may repeat.
func Reason(said string, hidden ...Secret) string {
	for _, secret := range hidden {
		if secret != "" {
			said = strings.ReplaceAll(said, secret.Reveal(), redacted)
		}
	}
	return Cut(Words(said), ReasonLimit)
}
