package providers

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"unicode"
	"unicode/utf8"

	"modelrelay/providers/secret"
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

// Says tells whether an upstream's text has one of the phrases, in lower case, word by word: "risk" is in "TextRiskDetected", in
// "text_risk" and in "Text Risk Not Pass", not in "asterisk".
func Says(text string, phrases ...string) bool {
	var words strings.Builder
	words.WriteByte(' ')
	lower, gap := false, true // what came before: a small letter; the end of a word
	for _, r := range text {
		switch {
		case !unicode.IsLetter(r) && !unicode.IsDigit(r):
			if !gap {
				words.WriteByte(' ')
			}
			lower, gap = false, true
			continue
		case unicode.IsUpper(r) && lower:
			words.WriteByte(' ')
		}
		words.WriteRune(unicode.ToLower(r))
		lower, gap = unicode.IsLower(r), false
	}
	words.WriteByte(' ')
	return slices.ContainsFunc(phrases, func(phrase string) bool { return strings.Contains(words.String(), " "+phrase+" ") })
}

// Limits of what is kept of an upstream's words, in bytes.
const (
	// ReasonLimit bounds its reason for a refusal or a failure.
	ReasonLimit = 400
	// WordLimit bounds its status words and error codes.
	WordLimit = 100
)

// leastSecret is how long the secret half of a pair is at least: a shorter one is a word that any text may have.
const leastSecret = 8

// Reason makes an upstream's reason for a refusal fit to be shown: short, without query strings, and without the
// credentials it may repeat, whole or, of ACCESS_KEY:SECRET_KEY, the secret alone.
func Reason(said string, hidden ...Secret) string {
	for _, key := range hidden {
		if key != "" {
			said = strings.ReplaceAll(said, key.Reveal(), secret.Redacted)
		}
		if _, half, pair := strings.Cut(key.Reveal(), ":"); pair && len(half) >= leastSecret {
			said = strings.ReplaceAll(said, half, secret.Redacted)
		}
	}
	return Cut(Words(said), ReasonLimit)
}

// Plain tells whether a text shows what it holds: it has no control characters, and none that change the direction or
// take no room, so that no terminal obeys it and no reader is deceived.
func Plain(text string) bool {
	for i, r := range text {
		if !unicode.IsGraphic(r) || r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			return false
		}
	}
	return true
}

// Shown is a text of a stranger's for a terminal: what is not plain stands as an escape.
func Shown(text string) string {
	if Plain(text) {
		return text
	}
	var out strings.Builder
	for i := 0; i < len(text); {
		r, size := utf8.DecodeRuneInString(text[i:])
		switch {
		case r == utf8.RuneError && size == 1:
			fmt.Fprintf(&out, `\x%02x`, text[i])
		case unicode.IsGraphic(r):
			out.WriteRune(r)
		case r > 0xFFFF:
			fmt.Fprintf(&out, `\U%08x`, r)
		default:
			fmt.Fprintf(&out, `\u%04x`, r)
		}
		i += size
	}
	return out.String()
}
