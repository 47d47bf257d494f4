package usage

import "bytes"

// marks counts how often a mark stands in JSON that it sees in pieces of any size: a quoted name, a colon and the begin of a
// text. No text within the JSON can hold one, since its quotes are escaped.
type marks struct {
	mark  string // begins with a quote and holds no other byte twice in a way that a part of it could begin another one
	at    int    // bytes matched
	count int64
}

func (m *marks) feed(b []byte) {
	for i := 0; i < len(b); i++ {
		if m.at == 0 { // most bytes are the inside of long texts
			quote := bytes.IndexByte(b[i:], '"')
			if quote < 0 {
				return
			}
			i += quote
			m.at = 1
			continue
		}
		c := b[i]
		switch {
		case c == m.mark[m.at]:
			if m.at++; m.at == len(m.mark) {
				m.count++
				m.at = 0
			}
		case isSpace(c) && (m.mark[m.at] == ':' || m.mark[m.at-1] == ':'):
		case c == '"':
			m.at = 1
		default:
			m.at = 0
		}
	}
}

// finder finds the texts of a member, wherever it stands in JSON that it sees in pieces of any size. No text within the JSON
// can hold the quoted name, since its quotes are escaped. The zero finder must not be fed.
type finder struct {
	name []byte // with its quotes

	place finderPlace
	at    int // bytes of the name matched
	text  []byte
}

type finderPlace uint8

const (
	beforeName finderPlace = iota
	beforeColon
	beforeText
	inText
)

func (f *finder) feed(b []byte, found func(text string)) {
	for i := 0; i < len(b); i++ {
		c := b[i]
		switch {
		case f.place == beforeName && f.at == 0: // most bytes are the inside of long texts
			quote := bytes.IndexByte(b[i:], '"')
			if quote < 0 {
				return
			}
			i += quote
			f.at = 1
		case f.place == beforeName && c == f.name[f.at]:
			if f.at++; f.at == len(f.name) {
				f.place, f.at = beforeColon, 0
			}
		case f.place == inText && c == '"':
			if len(f.text) > 0 {
				found(string(f.text))
			}
			f.place = beforeName
		case f.place == inText && c != '\\' && len(f.text) < maxAnswer:
			f.text = append(f.text, c)
		case (f.place == beforeColon || f.place == beforeText) && isSpace(c):
		case f.place == beforeColon && c == ':':
			f.place = beforeText
		case f.place == beforeText && c == '"':
			f.place, f.text = inText, f.text[:0]
		default: // something else, or a text that needs an escape or is too long
			f.place, f.at = beforeName, 0
			if c == '"' {
				f.at = 1
			}
		}
	}
}
