// Package usage counts what an answer used from its bytes as they pass, in constant memory: the tokens of a JSON document, of
// each event of a stream, or of a conversation. It changes nothing but what a Hider leaves out.
//
// Of a document of 1 MiB that comes in pieces it takes no memory; to collect the pieces and read them with rawjson takes 5.4 MB and about
// seventy times the time (BenchmarkDocument).
//
// It knows no vendor: a providers.UsageShape says where an answer counts. Of the product it imports providers and providers/sse alone.
package usage

import (
	"bytes"
	"slices"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/sse"
)

// Shape is a providers.UsageShape as a Scanner wants it.
type Shape struct {
	root *member
	// sign is a text that is in every event that counts; "" where there is none that all names have.
	sign string
	mark string
	free string
	// item is a text in every event that names something that the answer made; "" for none.
	item string
	turn providers.TurnShape
	ends []endMark
}

// Compile makes the Shape of one; nil for the zero one, which counts nothing.
func Compile(of providers.UsageShape) *Shape {
	if root := newMember(of); root != nil {
		return &Shape{
			root: root, sign: signOf(of), mark: of.ImageMark, free: of.FreeMark, item: of.MadeMark, turn: of.Turn,
			ends: compileEnds(of.Ends),
		}
	}
	return nil
}

// leastSign is how long a text must be to tell events that count from others.
const leastSign = 4

// signOf is the longest text that the names of all counters have in common, such as "tokens".
func signOf(of providers.UsageShape) string {
	var names []string
	for _, paths := range slices.Concat(of.Input, of.Cached, of.Output, of.Seconds) {
		for path := range strings.SplitSeq(paths, "|") {
			names = append(names, path[strings.LastIndexByte(path, '.')+1:])
		}
	}
	for length := len(names[0]); length >= leastSign; length-- {
		for from := range len(names[0]) - length + 1 {
			sign := names[0][from : from+length]
			if !slices.ContainsFunc(names, func(name string) bool { return !strings.Contains(name, sign) }) {
				return sign
			}
		}
	}
	return ""
}

// Named reports whether a later call may go on from such an answer.
func (s *Shape) Named() bool { return s.root.named }

// Scanner counts what one answer used: a JSON document, or the events of a stream.
type Scanner struct {
	doc    document
	stream bool
	sign   []byte // of the Shape, nil for none
	item   []byte // of the Shape, nil where what an answer made is not wanted
	images marks
	// found gets what names the answer, once, and what else the answer made; nil where that is not needed.
	found func(id string)

	all     tally // of the documents that have ended
	usage   providers.Usage
	counted bool
	named   bool // found has got what names the answer

	lines sse.Lines // of a stream
}

// NewScanner makes a scanner of one answer; stream: it comes as server-sent events.
func NewScanner(shape *Shape, stream bool) *Scanner {
	s := &Scanner{
		doc: document{root: shape.root}, images: marks{mark: pattern{text: shape.mark}, free: pattern{text: shape.free}},
		stream: stream,
	}
	if stream && shape.sign != "" {
		s.sign = []byte(shape.sign)
	}
	return s
}

// Find makes the scanner report what names the answer, and what else it made that a later call may go on from.
func (s *Scanner) Find(shape *Shape, found func(id string)) {
	s.found = found
	if shape.item != "" {
		s.doc.made, s.item = found, []byte(shape.item)
	}
}

// Usage is what was counted so far; false when that has no tokens. Images and seconds may be counted all the same.
func (s *Scanner) Usage() (providers.Usage, bool) {
	usage := s.usage
	if !s.counted {
		usage.Input, usage.Cached, usage.Output = 0, 0, 0
	}
	return usage, s.counted
}

// Observe reads the next bytes of the answer.
func (s *Scanner) Observe(b []byte) {
	if s.images.mark.text != "" {
		s.images.feed(b)
		s.usage.Images = s.images.count
	}
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

// End takes over what the document or event that ends here counted.
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
	heard, _ := s.all.sum(s.doc.root, audioCounter)
	s.usage.Audio = time.Duration(heard) * time.Millisecond
	switch {
	case !s.stream:
		s.usage.Images += s.doc.items
	case s.doc.root.lists && s.doc.counted():
		s.usage.Images++
	}
	s.counted = s.counted || s.doc.counted()
	s.doc.reset()
}

// skip is the length of the event that b begins with where it is there as a whole and says nothing that is looked for; 0
// where it must be read. Most events of a stream are such, and a search for one text reads them ten times faster.
func (s *Scanner) skip(b []byte) int {
	names := s.found != nil && !s.named && s.doc.root.named
	if s.sign == nil || !s.lines.Ended() || s.lines.AfterCR() || names || len(b) == 0 || b[0] == '\n' {
		return 0
	}
	end := bytes.Index(b, []byte("\n\n"))
	if end < 0 {
		return 0
	}
	end += len("\n\n")
	if event := b[:end]; bytes.IndexByte(event, '\r') >= 0 || bytes.Contains(event, s.sign) || s.item != nil && bytes.Contains(event, s.item) {
		return 0
	}
	return end
}

// advance reads a stream up to the end of the current event or of b. It says how far it came and whether the event
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
