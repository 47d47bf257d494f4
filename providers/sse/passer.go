package sse

import "bytes"

// Passer decides how much of a stream is sent on to a client, which must not be left with a part of an event: clients read what is before
// a blank line as an event, and a part of one as broken JSON, whatever error follows. The zero value is ready.
type Passer struct {
	lines Lines
	open  bool // a line of the current event has come
	split bool // the current event is larger than the buffer and was sent in part
}

// Next returns how much of b is sent now: up to the end of its last event or of the comments after it, which clients take for a sign of
// life. The first held bytes of b are what Next has left of it before. An event that alone fills a buffer of most bytes
// is sent as it comes.
func (p *Passer) Next(b []byte, held, most int) (pass int) {
	for at := held; at < len(b); {
		part, n := p.lines.Next(b[at:])
		at += n
		switch {
		case part.Kind == Blank:
			p.open, p.split, pass = false, false, at
		case p.open:
		case part.Kind == Feed, part.Kind == Comment:
			if p.lines.Ended() {
				pass = at
			}
		default:
			p.open = true
		}
	}
	if p.split || pass == 0 && len(b) == most {
		p.split, p.open = true, true
		return len(b)
	}
	return pass
}

// Failure returns the event that ends a stream which failed, with the stream's own line ends.
func (p *Passer) Failure(event []byte) []byte {
	if p.split {
		event = append([]byte("\n\n"), event...)
	}
	if p.lines.crlf { // a client that saw one kind of line end need not look for another
		event = bytes.ReplaceAll(event, []byte("\n"), []byte("\r\n"))
	}
	return event
}
