package rawjson

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"
)

// Text is a JSON string as it is in a document, quotes and escapes included. What is not joined or looked into is never
// decoded. nil is absent.
type Text []byte

// Quote makes a Text of decoded text.
func Quote(text string) Text {
	raw, _ := jsontext.AppendQuote(nil, text) // the error is of bytes that are no UTF-8, which have been replaced
	return raw
}

// Wrap makes a Text of what stands between its quotes, escapes included, in parts.
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

// Inner is what stands between the quotes, escapes included.
func (t Text) Inner() []byte {
	if len(t) < 2 {
		return nil
	}
	return t[1 : len(t)-1]
}

// Plain reports whether nothing in the text is escaped, so that Inner is what it says.
func (t Text) Plain() bool { return bytes.IndexByte(t, '\\') < 0 }

// Decoded is what the text says: a part of it where it is plain. A lone surrogate becomes U+FFFD.
func (t Text) Decoded() []byte {
	if t.Plain() {
		return t.Inner()
	}
	decoded, _ := jsontext.AppendUnquote(nil, []byte(t)) // at worst a lone surrogate is replaced
	return decoded
}

// String is what the text says.
func (t Text) String() string { return string(t.Decoded()) }

// Is reports whether the text says s.
func (t Text) Is(s string) bool {
	switch inner := t.Inner(); {
	case len(inner) < len(s): // an escape is longer than what it says
		return false
	case len(inner) == len(s):
		return string(inner) == s && t.Plain()
	case t.Plain():
		return false
	}
	return string(t.Decoded()) == s
}

// Empty reports whether there is no text, or one without characters.
func (t Text) Empty() bool { return len(t) <= 2 }

// Blank reports whether there is nothing but white space.
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

// Join puts texts behind one another with the separator between them. A single text is returned as it is.
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
