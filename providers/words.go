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

// query finds the query string of a URL in a text.
var query = regexp.MustCompile(`(://[^\s"'<>?]*)\?[^\s"'<>]*`)

// WithoutQueries removes the query strings of all URLs from an upstream's text. They must be neither shown nor stored: an upstream that
// cannot fetch an input repeats the client's link with its signature.
func WithoutQueries(text string) string { return query.ReplaceAllString(text, "${1}?…") }

// Cut shortens a text to a number of bytes, between two characters.
func Cut(s string, limit int) string {
	if len(s) <= limit {
		return s
	}
	return strings.ToValidUTF8(s[:limit], "") + "…"
}

// Mentions reports whether an upstream's text contains one of the phrases, which are in lower case. It compares whole words: "risk" is in
// "TextRiskDetected", in "text_risk" and in "Text Risk Not Pass", not in "asterisk".
func Mentions(text string, phrases ...string) bool {
	var words strings.Builder
	words.WriteByte(' ')
	lower, gap := false, true // of the previous character: it is a small letter; it ends a word
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

// Limits of an upstream's texts, in bytes.
const (
	// ReasonLimit bounds the reason for a refusal or a failure.
	ReasonLimit = 400
	// WordLimit bounds status words and error codes.
	WordLimit = 100
)

// leastSecret is the shortest part of a pair that Reason removes. A shorter one may be an ordinary word.
const leastSecret = 8

// Reason prepares an upstream's reason for display: short, without query strings and credentials, whole or a part of ACCESS_KEY:SECRET_KEY.
func Reason(text string, hidden ...Secret) string {
	for _, key := range hidden {
		if key != "" {
			text = strings.ReplaceAll(text, key.Reveal(), secret.Redacted)
		}
		for _, part := range strings.SplitN(key.Reveal(), ":", 2) {
			if len(part) >= leastSecret {
				text = strings.ReplaceAll(text, part, secret.Redacted)
			}
		}
	}
	return Cut(WithoutQueries(text), ReasonLimit)
}

// Plain reports whether a text has only graphic characters that a terminal shows unchanged: none that change direction or lack width.
func Plain(text string) bool {
	for i, r := range text {
		if !unicode.IsGraphic(r) || r == utf8.RuneError && !strings.HasPrefix(text[i:], "\uFFFD") {
			return false
		}
	}
	return true
}

// Shown returns a text for a terminal. It escapes the characters that are not plain.
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
