package usage

import (
	"bytes"
	"strings"
)

// Ends searches a stream, in pieces of any size, for its last event. It does not parse: a mark is a member's name and the beginning of
// its value. No text within JSON can contain a mark, since quotes in texts are escaped.
type Ends struct {
	marks []endMark
	seen  bool
	tail  []byte // of seam: the last bytes seen, in which a mark may begin
	seam  [2 * maxEndMark]byte
}

// endMark is a text up to a colon, and the bytes after the colon and white space. A value that is an empty text does not match.
type endMark struct{ name, value []byte }

// maxEndMark bounds a mark with its white space, in bytes.
const maxEndMark = 96

// compileEnds splits marks such as `"finish_reason":"`.
func compileEnds(marks []string) []endMark {
	var compiled []endMark
	for _, mark := range marks {
		at := strings.LastIndexByte(mark, ':') + 1
		compiled = append(compiled, endMark{[]byte(mark[:at]), []byte(mark[at:])})
	}
	return compiled
}

// NewEnds returns the Ends of one stream; nil if the shape has no ends.
func NewEnds(shape *Shape) *Ends {
	if len(shape.ends) == 0 {
		return nil
	}
	e := &Ends{marks: shape.ends}
	e.tail = append(e.seam[:0], '\n')
	return e
}

// Seen reports whether the last event has passed.
func (e *Ends) Seen() bool { return e.seen }

// Observe reads the next bytes of the stream.
func (e *Ends) Observe(b []byte) {
	if e.seen || len(b) == 0 {
		return
	}
	seam := append(e.tail, b[:min(len(b), maxEndMark)]...)
	e.seen = e.within(seam) || len(b) > maxEndMark && e.within(b)
	last := seam
	if len(b) > maxEndMark {
		last = b
	}
	e.tail = append(e.seam[:0], last[max(0, len(last)-maxEndMark):]...)
}

func (e *Ends) within(b []byte) bool {
	for i := range e.marks {
		if e.marks[i].in(b) {
			return true
		}
	}
	return false
}

func (m *endMark) in(b []byte) bool {
	for {
		at := bytes.Index(b, m.name)
		if at < 0 {
			return false
		}
		b = b[at+len(m.name):]
		value := bytes.TrimLeft(b, " \t\r\n")
		if rest, is := bytes.CutPrefix(value, m.value); is && len(rest) > 0 && (string(m.value) != `"` || rest[0] != '"') {
			return true
		}
	}
}
