package form

import (
	"bytes"
	"errors"
	"io"
)

const (
	// firstRoom is the buffer with which a stream begins, in bytes: of one whose events come one by one it is all that is held.
	// Where more comes at once it goes on with eventRoom, so that events which came together are read together. keptRoom is the
	// largest that it keeps between events.
	firstRoom = 1 << 10
	eventRoom = 4 << 10
	keptRoom  = 64 << 10
	// maxEvent bounds one event.
	maxEvent = 16 << 20
)

// ErrEventTooLong says that an event of a stream is longer than is held.
var ErrEventTooLong = errors.New("an event is longer than 16 MiB")

// Sent is one server-sent event, or a line of comment: a sign of life. Its bytes are valid until the next one is read.
type Sent struct {
	// Name is that of the event, empty where it has none.
	Name []byte
	// Data are its lines, joined by line feeds; nil of a comment.
	Data []byte
	// Unended: the stream ended without the blank line that ends the event.
	Unended bool
}

// Stream reads server-sent events, with any ends of lines. It is of one reader, and one goroutine.
type Stream struct {
	from io.Reader
	err  error // of the reader

	room []byte
	// room[begin:end] was read and not given yet; room[begin:scanned] has no end of an event, and its last line begins at
	// line.
	begin, line, scanned, end int
	afterCR                   bool // a line feed at begin belongs to the line before
	begun                     bool // the byte order mark, if any, is gone
	read                      bool // it has been read from
	// name and data of the event so far, as parts of room relative to begin.
	name, data span
	hasData    bool
}

type span struct{ from, to int }

// NewStream reads the events of a stream.
func NewStream(from io.Reader) *Stream { return &Stream{from: from} }

// Ready tells whether an event, or a part of one, was read already that Next has not given.
func (s *Stream) Ready() bool { return s.begin < s.end }

// Next reads the next event. The error is io.EOF, that of the reader, or ErrEventTooLong; nothing follows it.
func (s *Stream) Next() (Sent, error) {
	for {
		if sent, ok := s.parse(); ok {
			return sent, nil
		}
		if s.err != nil {
			return s.last()
		}
		if err := s.fill(); err != nil {
			s.err = err
		}
	}
}

// Whole reads on without waiting: false where the next event has not come whole.
func (s *Stream) Whole() (Sent, bool) { return s.parse() }

// last is what the stream ended in.
func (s *Stream) last() (Sent, error) {
	if errors.Is(s.err, io.EOF) && s.line < s.end {
		s.takeLine(s.line, s.end)
		s.line, s.scanned = s.end, s.end
	}
	if errors.Is(s.err, io.EOF) && s.hasData {
		sent := s.sent(s.end)
		sent.Unended = true
		return sent, nil
	}
	s.begin, s.end, s.room = 0, 0, nil
	return Sent{}, s.err
}

// fill reads more behind what is there.
func (s *Stream) fill() error {
	full := s.end == len(s.room) // or there is no room
	switch {
	case s.begin == s.end:
		s.begin, s.line, s.scanned, s.end = 0, 0, 0, 0
		if len(s.room) > keptRoom {
			s.room = nil
		}
	case s.begin > 0:
		moved := s.begin
		s.end = copy(s.room, s.room[moved:s.end])
		s.line, s.scanned, s.begin = s.line-moved, s.scanned-moved, 0
	}
	switch {
	case s.room == nil && !s.read:
		s.grow(firstRoom)
	case full && len(s.room) < eventRoom, s.room == nil:
		s.grow(eventRoom)
	case s.end < len(s.room):
	case s.end >= maxEvent:
		return ErrEventTooLong
	default:
		s.grow(min(2*len(s.room), maxEvent))
	}
	s.read = true
	n, err := s.from.Read(s.room[s.end:])
	s.end += n
	return err
}

// grow makes the room one of a size, in bytes.
func (s *Stream) grow(size int) {
	larger := make([]byte, size)
	copy(larger, s.room[:s.end])
	s.room = larger
}

// parse reads the lines that are there up to the end of an event or a comment.
func (s *Stream) parse() (Sent, bool) {
	if !s.begun && s.end-s.begin >= len(byteOrderMark) {
		s.begun = true
		if bytes.HasPrefix(s.room[s.begin:s.end], []byte(byteOrderMark)) {
			s.begin += len(byteOrderMark)
			s.line, s.scanned = s.begin, s.begin
		}
	}
	for {
		if s.afterCR && s.line < s.end {
			s.afterCR = false
			if s.room[s.line] == '\n' {
				s.skip()
			}
		}
		length := lineLength(s.room[s.scanned:s.end])
		if length < 0 {
			s.scanned = s.end
			return Sent{}, false
		}
		from, to := s.line, s.scanned+length
		s.afterCR = s.room[to] == '\r'
		s.line, s.scanned = to+1, to+1
		switch {
		case from == to:
			if s.hasData {
				return s.sent(to + 1), true
			}
			s.reset(to + 1)
		case s.room[from] == ':':
			if !s.hasData && s.name == (span{}) {
				s.reset(to + 1)
			}
			return Sent{}, true
		default:
			s.takeLine(from, to)
		}
	}
}

// byteOrderMark may stand at the beginning of a stream.
const byteOrderMark = "\xEF\xBB\xBF"

// skip leaves out a line feed behind a carriage return, which ended its line already.
func (s *Stream) skip() {
	if s.begin == s.line {
		s.begin++
	}
	s.line++
	s.scanned = max(s.scanned, s.line)
}

// lineLength is where the first line ends, -1 where it does not.
func lineLength(b []byte) int {
	feed := bytes.IndexByte(b, '\n')
	if feed >= 0 {
		b = b[:feed]
	}
	if back := bytes.IndexByte(b, '\r'); back >= 0 {
		return back
	}
	return feed
}

// takeLine reads one field.
func (s *Stream) takeLine(from, to int) {
	line := s.room[from:to]
	colon := bytes.IndexByte(line, ':')
	value := to
	if colon < 0 {
		colon = len(line)
	} else {
		value = from + colon + 1
		if value < to && s.room[value] == ' ' {
			value++
		}
	}
	switch string(line[:colon]) {
	case "event":
		s.name = span{value - s.begin, to - s.begin}
	case "data":
		if !s.hasData {
			s.data, s.hasData = span{value - s.begin, to - s.begin}, true
			return
		}
		// Further lines move behind the first: what lies between was read.
		at := s.begin + s.data.to
		s.room[at] = '\n'
		s.data.to += 1 + copy(s.room[at+1:], s.room[value:to])
	}
}

// sent gives the event that ends at a place.
func (s *Stream) sent(end int) Sent {
	sent := Sent{Name: s.room[s.begin+s.name.from : s.begin+s.name.to], Data: s.room[s.begin+s.data.from : s.begin+s.data.to]}
	s.reset(end)
	return sent
}

// reset begins the next event at a place.
func (s *Stream) reset(at int) {
	s.begin = at
	s.name, s.data, s.hasData = span{}, span{}, false
}
