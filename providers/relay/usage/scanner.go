// Package usage counts the usage of an answer from its bytes as they pass, in constant memory: of a JSON document, of each event of a
// stream, or of a conversation. It changes no bytes, except that a Hider omits events.
//
// A document of 1 MiB in pieces needs no allocation. To collect the pieces and read them with rawjson takes 5.4 MB and about seventy
// times the time (BenchmarkDocument).
//
// It has no code of a vendor: a providers.UsageShape describes where an answer contains usage.
package usage

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/sse"
)

// Shape is a providers.UsageShape, compiled for a Scanner.
type Shape struct {
	root *member
	// sign is a text that is in every event with usage; nil if the counters' names have none in common. made is a text in every event with
	// an id of something that the answer made, media one in every event with a media type; nil for none.
	sign, made, media []byte
	turn              providers.TurnShape
	ends              []endMark
}

// Compile returns the Shape of a UsageShape; nil for the zero one, which counts nothing.
func Compile(of providers.UsageShape) *Shape {
	root := newMember(of)
	if root == nil {
		return nil
	}
	shape := &Shape{root: root, sign: signOf(of), turn: of.Turn, ends: compileEnds(of.Ends)}
	if of.CreatedMark != "" {
		shape.made = []byte(of.CreatedMark)
	}
	if len(of.MediaTypes) > 0 {
		shape.media = []byte(lastName(of.MediaTypes[0]))
	}
	return shape
}

// lastName returns the last name of a path.
func lastName(path string) string { return path[strings.LastIndexByte(path, '.')+1:] }

// leastSign is the least length of a sign, in bytes.
const leastSign = 4

// signOf returns the longest text that the names of all counters have in common, such as "tokens".
func signOf(of providers.UsageShape) []byte {
	var names []string
	for _, paths := range slices.Concat(of.Input, of.Cached, of.Output, of.Seconds) {
		for path := range strings.SplitSeq(paths, "|") {
			names = append(names, lastName(path))
		}
	}
	for length := len(names[0]); length >= leastSign; length-- {
		for from := range len(names[0]) - length + 1 {
			sign := names[0][from : from+length]
			if !slices.ContainsFunc(names, func(name string) bool { return !strings.Contains(name, sign) }) {
				return []byte(sign)
			}
		}
	}
	return nil
}

// Named reports whether a later call may continue such an answer.
func (s *Shape) Named() bool { return s.root.named }

// Scanner counts the usage of one answer: of a JSON document, or of the events of a stream.
type Scanner struct {
	doc    document
	shape  *Shape
	stream bool
	// found receives the answer's id, once, and the ids of what else the answer made; nil: they are ignored.
	found func(id string)

	all     tally // of the documents that have ended
	usage   providers.Usage
	counted bool
	named   bool // found has received the answer's id

	lines sse.Lines // of a stream
}

// NewScanner returns a scanner of one answer; stream: the answer is server-sent events.
func NewScanner(shape *Shape, stream bool) *Scanner {
	return &Scanner{doc: document{root: shape.root}, shape: shape, stream: stream}
}

// Find makes the scanner pass to found the answer's id, and the ids of what else it made that a later call may continue.
func (s *Scanner) Find(found func(id string)) {
	s.found = found
	if s.shape.made != nil {
		s.doc.made = found
	}
}

// Usage returns the usage so far. It reports false if no tokens were counted; images and seconds may be counted nevertheless.
func (s *Scanner) Usage() (providers.Usage, bool) {
	usage := s.usage
	usage.Images += s.doc.images // of a document or an event that has not ended
	if !s.counted {
		usage.Input, usage.Cached, usage.Output = 0, 0, 0
	}
	return usage, s.counted
}

// Observe reads the next bytes of the answer.
func (s *Scanner) Observe(b []byte) {
	if s.stream {
		for len(b) > 0 {
			n, ended := s.advance(b)
			b = b[n:]
			if ended {
				s.End()
			}
		}
	} else {
		s.doc.feed(b)
	}
	if s.found != nil && s.doc.named && !s.named {
		s.found(string(s.doc.answer))
		s.named = true
	}
}

// End adds the usage of the document or event that ends here.
func (s *Scanner) End() {
	if s.doc.place == inNumber {
		s.doc.count()
	}
	for slot := range s.doc.root.of {
		if s.doc.seen[slot] {
			s.all.take(slot, s.doc.counts[slot])
		}
	}
	s.usage.Input, _ = s.all.sum(s.doc.root, inputCounter)
	s.usage.Cached, _ = s.all.sum(s.doc.root, cachedCounter)
	s.usage.Output, _ = s.all.sum(s.doc.root, outputCounter)
	audio, _ := s.all.sum(s.doc.root, audioCounter)
	s.usage.Audio = time.Duration(audio) * time.Millisecond
	s.usage.Images += s.doc.images
	switch {
	case !s.stream:
		s.usage.Images += s.doc.items
	case s.doc.root.lists && s.doc.counted():
		s.usage.Images++
	}
	s.counted = s.counted || s.doc.counted()
	s.doc.reset()
}

// skip returns the length of the first event of b if b contains it whole and it has none of the shape's texts; otherwise 0, and the event
// must be read. Most events have none, and a search for a text is ten times faster than reading them.
func (s *Scanner) skip(b []byte) int {
	names := s.found != nil && !s.named && s.doc.root.named
	if s.shape.sign == nil || !s.lines.Ended() || s.lines.AfterCR() || names || len(b) == 0 || b[0] == '\n' {
		return 0
	}
	end := bytes.Index(b, []byte("\n\n"))
	if end < 0 {
		return 0
	}
	end += len("\n\n")
	if event := b[:end]; bytes.IndexByte(event, '\r') >= 0 || bytes.Contains(event, s.shape.sign) || s.doc.made != nil &&
		bytes.Contains(event, s.shape.made) || s.shape.media != nil && bytes.Contains(event, s.shape.media) {
		return 0
	}
	return end
}

// advance reads a stream up to the end of the current event or of b. It returns the number of bytes read and reports whether the event
// ended there; the caller then calls End.
func (s *Scanner) advance(b []byte) (n int, ended bool) {
	if n := s.skip(b); n > 0 {
		return n, true
	}
	for n < len(b) {
		part, read := s.lines.Next(b[n:])
		if part.Kind == sse.Data {
			s.doc.feed(b[n+part.From : n+part.To])
		}
		n += read
		if part.Kind == sse.Blank {
			return n, true
		}
	}
	return n, false
}
