package rawjson

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Text is a JSON string as it is in a document, including quotes and escapes. It is decoded only if its content is needed. nil is absent.
type Text []byte

// Quote returns the Text of a decoded text.
func Quote(text string) Text {
	raw, _ := jsontext.AppendQuote(nil, text) // the error reports bytes that are not UTF-8, which were replaced
	return raw
}

// Wrap returns the Text with the given parts between its quotes. Their escapes stay.
func Wrap(parts ...[]byte) Text {
	size := 2
	for _, part := range parts {
		size += len(part)
	}
	text := append(make(Text, 0, size), '"')
	for _, part := range parts {
		text = append(text, part...)
	}
	return append(text, '"')
}

// Inner returns the bytes between the quotes, including escapes.
func (t Text) Inner() []byte {
	if len(t) < 2 {
		return nil
	}
	return t[1 : len(t)-1]
}

// Plain reports whether the text has no escapes, so that Inner is its decoded text.
func (t Text) Plain() bool { return bytes.IndexByte(t, '\\') < 0 }

// Decoded returns the decoded text. It is a part of a plain Text, otherwise a copy. A lone surrogate becomes U+FFFD.
func (t Text) Decoded() []byte {
	if t.Plain() {
		return t.Inner()
	}
	decoded, _ := jsontext.AppendUnquote(nil, []byte(t)) // at worst a lone surrogate is replaced
	return decoded
}

// String returns the decoded text.
func (t Text) String() string { return string(t.Decoded()) }

// Is reports whether the decoded text is s.
func (t Text) Is(s string) bool {
	switch inner := t.Inner(); {
	case len(inner) < len(s): // an escape is longer than its character
		return false
	case len(inner) == len(s):
		return string(inner) == s && t.Plain()
	case t.Plain():
		return false
	}
	return string(t.Decoded()) == s
}

// Empty reports whether the text is absent or has no characters.
func (t Text) Empty() bool { return len(t) <= 2 }

// Blank reports whether the text has only white space.
func (t Text) Blank() bool {
	inner := t.Inner()
	for at := range inner {
		switch inner[at] {
		case ' ', '\t', '\n', '\r':
		case '\\':
			return len(bytes.TrimSpace(t.Decoded())) == 0
		default:
			return inner[at] >= 0x80 && len(bytes.TrimSpace(t.Decoded())) == 0
		}
	}
	return true
}

// Join concatenates texts with the separator between them. A single text is returned unchanged.
func Join(separator string, texts ...Text) Text {
	switch len(texts) {
	case 0:
		return nil
	case 1:
		return texts[0]
	}
	between := Quote(separator).Inner()
	size := 2
	for _, text := range texts {
		size += len(text) + len(between)
	}
	joined := append(make(Text, 0, size), '"')
	for i, text := range texts {
		if i > 0 {
			joined = append(joined, between...)
		}
		joined = append(joined, text.Inner()...)
	}
	return append(joined, '"')
}
