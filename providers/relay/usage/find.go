package usage

import "bytes"

// pattern matches a quoted name, a colon and the beginning of a value in JSON that arrives in pieces of any size. No text within the
// JSON can match, since quotes in texts are escaped.
type pattern struct {
	text string // begins with a quote; no part of it begins another match
	at   int    // bytes matched
}

// feed reads the next byte and reports whether the pattern ends with it.
func (p *pattern) feed(c byte) bool {
	switch {
	case p.text == "":
	case c == p.text[p.at]:
		if p.at++; p.at == len(p.text) {
			p.at = 0
			return true
		}
	case p.at > 0 && isSpace(c) && (p.text[p.at] == ':' || p.text[p.at-1] == ':'):
	case c == '"':
		p.at = 1
	default:
		p.at = 0
	}
	return false
}

// marks counts a mark in JSON, outside of the objects that begin with the pattern free: a model chooses the names of their members.
type marks struct {
	mark, free pattern
	count      int64

	// depth counts the open objects since free matched. Within a text, escaped: the previous byte is a backslash.
	depth           int
	inText, escaped bool
}

func (m *marks) feed(b []byte) {
	for i := 0; i < len(b); i++ {
		if m.depth > 0 {
			m.skip(b[i])
			continue
		}
		if m.mark.at == 0 && m.free.at == 0 { // most bytes are within long texts
			quote := bytes.IndexByte(b[i:], '"')
			if quote < 0 {
				return
			}
			i += quote
		}
		if m.mark.feed(b[i]) {
			m.count++
		}
		if m.free.feed(b[i]) {
			m.depth = 1
		}
	}
}

// skip reads a byte of an object whose members do not count.
func (m *marks) skip(c byte) {
	switch {
	case m.escaped:
		m.escaped = false
	case m.inText && c == '\\':
		m.escaped = true
	case c == '"':
		m.inText = !m.inText
	case m.inText:
	case c == '{':
		m.depth++
	case c == '}':
		m.depth--
	}
}
