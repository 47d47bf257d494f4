package providers

import (
	"bytes"
	"errors"
	"io"
)

const (
	// firstEventBuffer holds an ordinary event; the buffer grows for larger ones and shrinks back after them.
	firstEventBuffer = 4 << 10
	// keptEventBuffer is the largest buffer that is kept once its event is done.
	keptEventBuffer = 64 << 10
	// MaxEvent is the largest event, in bytes: a picture in base64 fits.
	MaxEvent = 32 << 20
)

// ErrEventTooLarge says that an event of a stream is longer than MaxEvent.
var ErrEventTooLarge = errors.New("an event of the stream is too large")

// Event is one server-sent event. Raw and Data are valid until the reader's next call.
type Event struct {
	// Raw is all bytes from the end of the event before to the end of this one, comments and blank line included. The
	// Raws of all events are the stream, byte for byte.
	Raw []byte
	// Name is the event field, "" where there is none.
	Name string
	// Data is the data lines joined by line feeds; nil when there is none, as in a heartbeat.
	Data []byte
}

// EventReader splits a stream of server-sent events. Lines may end in CR, LF or both, and the last event need not be
// followed by a blank line. It never waits for bytes beyond an event's end.
type EventReader struct {
	src io.Reader
	err error // of src, once it has ended

	buf []byte // bytes read and not yet handed out, behind those of the last event
	// begin is where the current event starts in buf, seen how far it was searched for its end.
	begin, seen int
	// blank: nothing but the line's start was seen of the current line. afterCR: the last byte was a CR, so that a
	// LF belongs to it.
	blank, afterCR bool
	started        bool
	name           string
	joined         []byte // the data of an event with several data lines
}

// NewEventReader reads the events of a stream. The caller closes the stream.
func NewEventReader(stream io.Reader) *EventReader {
	return &EventReader{src: stream, blank: true}
}

// Next returns the next event. At the end of the stream it returns io.EOF, and the stream's own error when it breaks
// off within an event, whose bytes are then lost.
func (r *EventReader) Next() (Event, error) {
	r.drop()
	for {
		if r.complete() {
			return r.cut(), nil
		}
		switch {
		case r.err == nil:
			r.fill()
		case errors.Is(r.err, io.EOF) && r.begin < len(r.buf):
			r.seen = len(r.buf)
			return r.cut(), nil
		default:
			return Event{}, r.err
		}
	}
}

// drop forgets the event handed out last, and its buffer when that has grown large.
func (r *EventReader) drop() {
	left := len(r.buf) - r.begin
	if r.begin == 0 {
		return
	}
	if cap(r.buf) > keptEventBuffer && left <= keptEventBuffer/2 {
		r.buf = append(make([]byte, 0, max(firstEventBuffer, left)), r.buf[r.begin:]...)
	} else if left <= cap(r.buf)/2 || cap(r.buf)-len(r.buf) == 0 {
		r.buf = r.buf[:copy(r.buf, r.buf[r.begin:])]
	} else {
		return
	}
	r.seen -= r.begin
	r.begin = 0
}

// complete searches on for the blank line that ends the event; seen is then behind it.
func (r *EventReader) complete() bool {
	for r.seen < len(r.buf) {
		b := r.buf[r.seen]
		r.seen++
		switch {
		case b == '\n' && r.afterCR:
			r.afterCR = false
		case b == '\n' || b == '\r':
			r.afterCR = b == '\r'
			if r.blank {
				if r.afterCR && r.seen < len(r.buf) && r.buf[r.seen] == '\n' {
					r.seen++
					r.afterCR = false
				}
				return true
			}
			r.blank = true
		default:
			r.blank, r.afterCR = false, false
		}
	}
	return false
}

// fill reads more of the stream behind what the buffer holds.
func (r *EventReader) fill() {
	if len(r.buf)-r.begin >= MaxEvent {
		r.err = ErrEventTooLarge
		return
	}
	if len(r.buf) == cap(r.buf) {
		grown := make([]byte, 0, max(firstEventBuffer, min(2*cap(r.buf), MaxEvent+firstEventBuffer)))
		r.seen -= r.begin
		r.buf = append(grown, r.buf[r.begin:]...)
		r.begin = 0
	}
	n, err := r.src.Read(r.buf[len(r.buf):cap(r.buf)])
	r.buf = r.buf[:len(r.buf)+n]
	r.err = err
}

// cut hands out the bytes from begin to seen as an event.
func (r *EventReader) cut() Event {
	event := Event{Raw: r.buf[r.begin:r.seen:r.seen]}
	r.begin = r.seen
	r.blank = true
	rest := event.Raw
	if !r.started {
		r.started = true
		rest = bytes.TrimPrefix(rest, []byte("\xef\xbb\xbf"))
	}
	lines := 0
	name := []byte(nil)
	for len(rest) > 0 {
		line := rest
		if end := bytes.IndexByte(rest, '\n'); end >= 0 {
			line, rest = rest[:end], rest[end+1:]
		} else {
			rest = nil
		}
		for len(line) > 0 { // what is left may hold lines that end in CR alone
			var field []byte
			field, line = cutLine(line)
			key, value, _ := bytes.Cut(field, []byte(":"))
			value = bytes.TrimPrefix(value, []byte(" "))
			switch string(key) {
			case "event":
				name = value
			case "data":
				event.Data = r.join(event.Data, value, lines)
				lines++
			}
		}
	}
	if string(name) != r.name {
		r.name = string(name)
	}
	event.Name = r.name
	return event
}

// cutLine splits at the first CR.
func cutLine(text []byte) (line, rest []byte) {
	line, rest, _ = bytes.Cut(text, []byte("\r"))
	return line, rest
}

// join appends the data line number n, counted from 0. A single line is not copied.
func (r *EventReader) join(data, line []byte, n int) []byte {
	switch n {
	case 0:
		if line == nil {
			line = []byte{}
		}
		return line
	case 1:
		r.joined = append(r.joined[:0], data...)
	}
	r.joined = append(append(r.joined, '\n'), line...)
	return r.joined
}
