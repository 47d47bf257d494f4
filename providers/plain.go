package providers

import (
	"fmt"
	"strings"
	"unicode"
	"unicode/utf8"
)

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
