// Package sse reads server-sent events (https://html.spec.whatwg.org/multipage/server-sent-events.html): line by line in constant memory,
// event by event, or as bytes on their way to a client. It writes single events.
//
// It imports nothing of the product.
package sse

import "bytes"

// Kind is the kind of a line.
type Kind uint8

// The kinds of lines.
const (
	// Other is a field that is not read, or the beginning of a line whose field is not known yet.
	Other Kind = iota
	// Comment is a line that begins with a colon, such as a heartbeat.
	Comment
	// Name is the name of the event.
	Name
	// Data is a line of the event's data.
	Data
	// Blank is the empty line that ends an event.
	Blank
	// Feed is the line feed of a CR LF whose CR came in the piece before.
	Feed
)

// Part is a line, or a piece of one.
type Part struct {
	Kind Kind
	// From and To are where the field's value is in the bytes given to Next.
	From, To int
	// Begins: the part has the beginning of the value.
	Begins bool
}

// Lines follows the lines of a stream that arrives in pieces of any size, with any line ends. It keeps no bytes. The zero value is ready.
type Lines struct {
	name    [len("event")]byte // the field's name so far
	length  int                // of the line up to its colon; 0 at its beginning
	valued  bool               // the colon has arrived: kind is known
	kind    Kind
	blank   bool // the next byte may be the space after the colon
	begins  bool // no part of the value was returned yet
	afterCR bool // a line feed belongs to the line before
	crlf    bool // the last line ended in CR LF
	marked  int  // bytes of the byte order mark that have arrived; more than it has: the stream has begun
}

// byteOrderMark may be at the beginning of a stream.
const byteOrderMark = "\xEF\xBB\xBF"

// Ended reports whether the last part had the end of its line.
func (l *Lines) Ended() bool { return l.length == 0 && !l.valued }

// AfterCR reports whether a line feed as the next byte belongs to the last line.
func (l *Lines) AfterCR() bool { return l.afterCR }

// Next reads the line at the beginning of b, or as much of it as b has, and returns the number of bytes. b must not be empty.
func (l *Lines) Next(b []byte) (part Part, n int) {
	if l.Ended() && !l.afterCR && l.marked == len(byteOrderMark) {
		if part, n = plain(b); n > 0 {
			l.crlf = false
			return part, n
		}
	}
	if l.afterCR {
		l.afterCR = false
		if b[0] == '\n' {
			l.crlf = true
			return Part{Kind: Feed}, 1
		}
	}
	from := l.mark(b)
	end := lineEnd(b[from:])
	to := from + end
	if end < 0 {
		to = len(b)
	}
	part = l.field(b, from, to)
	if end < 0 {
		return part, to
	}
	switch {
	case l.valued:
		part.Begins = part.Begins || l.begins
	case l.length == 0:
		part.Kind = Blank
	case kindOf(l.name[:], l.length) == Data:
		part.Kind, part.Begins = Data, true // a field without a colon has an empty value
	}
	l.length, l.valued, l.begins = 0, false, false
	n = to + 1
	l.afterCR, l.crlf = b[to] == '\r', false
	if l.afterCR && n < len(b) {
		l.afterCR = false
		if b[n] == '\n' {
			l.crlf = true
			n++
		}
	}
	return part, n
}

// plain reads a blank line, or a data line, that b contains whole and that ends in LF, as most do; n is 0 for any other. It takes a third
// of the time of the general code.
func plain(b []byte) (part Part, n int) {
	if b[0] == '\n' {
		return Part{Kind: Blank}, 1
	}
	if !bytes.HasPrefix(b, []byte("data:")) {
		return part, 0
	}
	end := lineEnd(b)
	if end < 0 || b[end] == '\r' {
		return part, 0
	}
	from := len("data:")
	if b[from] == ' ' {
		from++
	}
	return Part{Kind: Data, From: from, To: end, Begins: true}, end + 1
}

// mark skips the byte order mark at the beginning of the stream.
func (l *Lines) mark(b []byte) (n int) {
	for l.marked < len(byteOrderMark) && n < len(b) {
		if b[n] != byteOrderMark[l.marked] {
			l.length = l.marked // a part of it is text
			l.marked = len(byteOrderMark)
			return 0
		}
		l.marked++
		n++
	}
	return n
}

// field reads b[from:to], which has no line end.
func (l *Lines) field(b []byte, from, to int) Part {
	for ; !l.valued && from < to; from++ {
		c := b[from]
		if c == ':' {
			l.valued, l.blank, l.begins = true, true, true
			l.kind = kindOf(l.name[:], l.length)
			continue
		}
		if l.length < len(l.name) {
			l.name[l.length] = c
		}
		l.length++
		if l.length > len(l.name) { // the fields that are read have shorter names
			l.valued, l.kind, l.begins, l.blank = true, Other, true, false
		}
	}
	if !l.valued {
		return Part{From: from, To: to}
	}
	if l.blank && from == to {
		return Part{Kind: l.kind, From: from, To: to} // the value has not begun
	}
	if l.blank {
		l.blank = false
		if b[from] == ' ' {
			from++
		}
	}
	part := Part{Kind: l.kind, From: from, To: to, Begins: l.begins}
	l.begins = false
	return part
}

// kindOf returns the kind of a line whose field has a name of that length.
func kindOf(name []byte, length int) Kind {
	if length == 0 {
		return Comment
	}
	if length <= len(name) {
		switch string(name[:length]) {
		case "data":
			return Data
		case "event":
			return Name
		}
	}
	return Other
}

// lineWindow is how many bytes are searched for a line feed before a search for a carriage return: a stream has only one of the two.
const lineWindow = 4 << 10

// lineEnd returns the end of the first line, -1 if b does not contain it.
func lineEnd(b []byte) int {
	for from := 0; from < len(b); from += lineWindow {
		window := b[from:min(len(b), from+lineWindow)]
		feed := bytes.IndexByte(window, '\n')
		if feed >= 0 {
			window = window[:feed]
		}
		if back := bytes.IndexByte(window, '\r'); back >= 0 {
			return from + back
		}
		if feed >= 0 {
			return from + feed
		}
	}
	return -1
}

// FirstData returns the data of the first event with data, as far as b contains it. ended reports whether that event has ended.
func FirstData(b []byte) (data []byte, ended bool) {
	var lines Lines
	for len(b) > 0 {
		part, n := lines.Next(b)
		switch {
		case part.Kind == Data && data == nil:
			data = b[part.From:part.To:part.To]
		case part.Kind == Data:
			data = append(append(data, '\n'), b[part.From:part.To]...)
		case part.Kind == Blank && data != nil:
			return data, true
		}
		b = b[n:]
	}
	return data, false
}
