package sse

import "bytes"

// Passer decides how much of a stream is sent to a client. The client must not receive a part of an event: it would read the part as broken
// JSON, even if an error follows. The zero value is ready.
type Passer struct {
	lines Lines
	open  bool // a line of the current event has arrived
	split bool // the current event is larger than the buffer and was sent in part
}

// Next returns the number of bytes of b to send now: up to the end of its last event, or of the comments after it, which are heartbeats.
// Its first held bytes are those that the previous Next did not pass. An event that alone fills a buffer of most bytes is sent in parts.
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
	if p.lines.crlf { // a client need not support two kinds of line ends in one stream
		event = bytes.ReplaceAll(event, []byte("\n"), []byte("\r\n"))
	}
	return event
}
