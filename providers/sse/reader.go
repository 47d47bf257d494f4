package sse

import (
	"errors"
	"io"
)

const (
	// firstRoom is the first buffer of a stream, in bytes. It is enough for events that arrive one by one. For more at once the buffer grows
	// to eventRoom, so that they are read together. keptRoom is the largest buffer that is kept between events.
	firstRoom = 1 << 10
	eventRoom = 4 << 10
	keptRoom  = 64 << 10
	// MaxEvent bounds one event that is held whole, in bytes.
	MaxEvent = 16 << 20
)

// ErrTooLong reports an event that is longer than MaxEvent.
var ErrTooLong = errors.New("an event is longer than 16 MiB")

// Event is one event, or a comment line, such as a heartbeat. Its bytes are valid until the next one is read.
type Event struct {
	// Name is empty for an event without one.
	Name []byte
	// Data are its lines, joined by line feeds; nil for a comment.
	Data []byte
	// Unended: the stream ended without the blank line that ends the event.
	Unended bool
}

// Reader reads the events of a stream. One goroutine uses it.
type Reader struct {
	from  io.Reader
	err   error // of from
	read  bool  // from has been read
	lines Lines

	room []byte
	// room[begin:end] was read and not returned yet. The lines of room[begin:scanned] are known.
	begin, scanned, end int
	// name and data of the event so far, as parts of room relative to begin.
	name, data     span
	named, hasData bool
}

type span struct{ from, to int }

// NewReader returns a reader of the stream's events.
func NewReader(from io.Reader) *Reader { return &Reader{from: from} }

// Next reads the next event. The error is io.EOF, that of the reader, or ErrTooLong; it is final.
func (r *Reader) Next() (Event, error) {
	for {
		if event, ok := r.Whole(); ok {
			return event, nil
		}
		if r.err != nil {
			return r.last()
		}
		if err := r.fill(); err != nil {
			r.err = err
		}
	}
}

// Whole returns the next event without reading more of the stream. It reports false if the event was not read completely.
func (r *Reader) Whole() (Event, bool) {
	for r.scanned < r.end {
		from := r.scanned
		part, n := r.lines.Next(r.room[from:r.end])
		r.scanned += n
		switch part.Kind {
		case Blank:
			if r.hasData {
				return r.event(), true
			}
			r.reset()
		case Comment:
			if !r.lines.Ended() {
				continue
			}
			if !r.hasData && !r.named {
				r.reset()
			}
			return Event{}, true
		case Feed:
			if !r.hasData && !r.named {
				r.reset()
			}
		case Name:
			if part.Begins {
				r.named, r.name = true, span{from + part.From - r.begin, from + part.From - r.begin}
			}
			r.name.to += part.To - part.From
		case Data:
			r.add(from+part.From, from+part.To, part.Begins)
		case Other:
		}
	}
	return Event{}, false
}

// add adds a piece of a data line. It moves further lines next to the first one, over bytes that are not needed any more.
func (r *Reader) add(from, to int, begins bool) {
	switch {
	case !begins:
	case !r.hasData:
		r.hasData, r.data = true, span{from - r.begin, from - r.begin}
	default:
		r.room[r.begin+r.data.to] = '\n'
		r.data.to++
	}
	r.data.to += copy(r.room[r.begin+r.data.to:], r.room[from:to])
}

func (r *Reader) event() Event {
	event := Event{Name: r.room[r.begin+r.name.from : r.begin+r.name.to], Data: r.room[r.begin+r.data.from : r.begin+r.data.to]}
	r.reset()
	return event
}

func (r *Reader) reset() {
	r.begin = r.scanned
	r.name, r.data, r.named, r.hasData = span{}, span{}, false, false
}

// last returns the unended event at the end of the stream.
func (r *Reader) last() (Event, error) {
	if errors.Is(r.err, io.EOF) && r.hasData {
		event := r.event()
		event.Unended = true
		return event, nil
	}
	r.begin, r.scanned, r.end, r.room = 0, 0, 0, nil
	return Event{}, r.err
}

func (r *Reader) fill() error {
	full := r.end == len(r.room) // or the buffer is empty
	switch {
	case r.begin == r.end:
		r.begin, r.scanned, r.end = 0, 0, 0
		if len(r.room) > keptRoom {
			r.room = nil
		}
	case r.begin > 0:
		rest := r.room[r.begin:r.end]
		if len(r.room) > keptRoom && len(rest) < keptRoom/2 { // a long event came with the beginning of the next
			r.room = make([]byte, max(eventRoom, 2*len(rest)))
		}
		r.end = copy(r.room, rest)
		r.scanned, r.begin = r.scanned-r.begin, 0
	}
	switch {
	case r.room == nil && !r.read:
		r.grow(firstRoom)
	case full && len(r.room) < eventRoom, r.room == nil:
		r.grow(eventRoom)
	case r.end < len(r.room):
	case r.end >= MaxEvent:
		return ErrTooLong
	default:
		r.grow(min(2*len(r.room), MaxEvent))
	}
	r.read = true
	n, err := r.from.Read(r.room[r.end:])
	r.end += n
	return err
}

// grow sets the size of the buffer, in bytes.
func (r *Reader) grow(size int) {
	larger := make([]byte, size)
	copy(larger, r.room[:r.end])
	r.room = larger
}
