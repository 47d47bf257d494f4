package relay

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
