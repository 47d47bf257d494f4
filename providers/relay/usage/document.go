package usage

import (
	"bytes"
	"math"
	"strconv"
)

const (
	// maxPath bounds the depth of a counter, in objects.
	maxPath = 10
	// maxAnswer bounds the id of an answer, in bytes; those of vendors have about 60.
	maxAnswer = 200
	// maxWord bounds a member name or number that is read, in bytes.
	maxWord = 40
)

// place is what a document expects next.
type place uint8

const (
	atValue    place = iota // a value: at the root, or of the member found
	atName                  // a member's name or the end of the object
	inName                  // the rest of a name
	atColon                 // the colon after it
	inNumber                // the rest of a counter
	inID                    // the rest of the id of the answer, or of something else that it made, or of a media type
	inString                // the rest of an ignored string
	atItem                  // the first item of the content array, or its end
	inOther                 // the rest of an ignored array or object
	afterValue              // the rest of a value, up to the comma or the end of the object
)

// document reads counters from a JSON document that arrives in pieces of any size, without storing it. It does not check the document:
// the counts of an invalid one are undefined.
type document struct {
	root *member

	// path are the open objects that lead to counters; depth counts all open objects and arrays.
	path  [maxPath]*member
	list  [maxPath]bool // it is an array; the member describes its elements
	level int
	depth int

	place   place
	back    place // the place after the string
	escaped bool
	found   *member // the member of the next value, nil for an ignored one
	word    [maxWord]byte
	length  int // of word; above maxWord: it was too long

	tally
	// answer is the answer's id as far as it was read; named: it is complete. reset keeps a complete id, because the first one counts.
	answer []byte
	named  bool
	// made receives the ids of what else the answer made; nil: they are ignored. otherID is the current one of them, or a media type.
	made    func(id string)
	otherID []byte
	isOther bool
	images  int64 // media types of images
	arrays
}

// tally has the slots of a document, or of all documents of an answer.
type tally struct {
	counts [maxSlots]int64
	seen   [maxSlots]bool
}

// take stores a number. A zero does not replace an earlier number: some upstreams repeat members with zeros.
func (t *tally) take(slot int, n int64) {
	if n != 0 || !t.seen[slot] {
		t.counts[slot], t.seen[slot] = n, true
	}
}

// sum returns the sum of a counter's slots. It reports false if none of them was seen.
func (t *tally) sum(root *member, of counter) (sum int64, seen bool) {
	for slot, counter := range root.of {
		if counter == of && t.seen[slot] {
			sum, seen = sum+t.counts[slot], true
		}
	}
	return sum, seen
}

// arrays is the state of the content array and of the counted arrays.
type arrays struct {
	// content and hollow: the content array was seen, with items in it or without.
	content, hollow bool
	// items of the counted arrays; within: the document is in one of them.
	items  int64
	within bool
}

func (s *document) reset() {
	answer, named := s.answer, s.named
	*s = document{root: s.root, made: s.made, otherID: s.otherID[:0]}
	if named {
		s.answer, s.named = answer, true
	}
}

// counted reports whether the document contained tokens other than cached ones.
func (s *document) counted() bool {
	_, input := s.sum(s.root, inputCounter)
	_, output := s.sum(s.root, outputCounter)
	return input || output
}

func (s *document) feed(b []byte) {
	for i := 0; i < len(b); {
		switch c := b[i]; s.place {
		case inString:
			i += s.text(b[i:])
		case inName:
			i += s.name(b[i:])
		case inID:
			i += s.id(b[i:])
		case inOther:
			i += s.other(b[i:])
		case inNumber:
			if !isNumber(c) {
				s.count()
				s.place = afterValue
				continue
			}
			s.keep(c)
			i++
		case atItem:
			if isSpace(c) {
				i++
				continue
			}
			if s.within && c != ']' {
				s.items++
			} else if !s.within {
				s.content, s.hollow = c != ']', c == ']'
			}
			s.place = inOther
		case atName:
			switch c {
			case '"':
				s.length = 0
				s.place = inName
			case '}':
				s.leave()
			}
			i++
		case atColon:
			if c == ':' {
				s.place = atValue
			}
			i++
		case atValue:
			i += s.value(c)
		default: // afterValue
			switch c {
			case ',':
				s.place = atName
				if s.level > 0 && s.list[s.level-1] {
					s.place, s.found = atValue, s.path[s.level-1]
				}
			case '}', ']':
				s.leave()
			case '"':
				s.place, s.back = inString, afterValue
			}
			i++
		}
	}
}

// value begins a value with its first byte. It returns 1 if it consumed the byte, otherwise 0.
func (s *document) value(c byte) int {
	found := s.found
	if s.level == 0 {
		found = s.root
	}
	switch {
	case isSpace(c), c == '[' && s.level == 0 && found != nil:
	case c == '{' && found != nil && len(found.children) > 0 && s.level < maxPath:
		if s.level > 0 && s.list[s.level-1] && found.content {
			s.content = true
		}
		s.enter(found, false)
		s.place = atName
	case c == '[' && found != nil && found.each && s.level < maxPath:
		s.enter(found, true) // its first value follows
	case c == ']' && s.level > 0 && s.list[s.level-1]:
		s.hollow = s.hollow || s.path[s.level-1].content && !s.content
		s.leave()
	case c == '[' && found != nil && (found.content || found.items):
		s.within = found.items
		s.depth++
		s.place = atItem
	case c == '{' || c == '[':
		s.depth++
		s.place = inOther
	case c == '"' && found != nil && found.answer && !s.named:
		s.answer, s.isOther, s.place, s.back = s.answer[:0], false, inID, s.after()
	case c == '"' && found != nil && (found.made && s.made != nil || found.media):
		s.otherID, s.isOther, s.place, s.back = s.otherID[:0], true, inID, s.after()
	case c == '"':
		s.place, s.back = inString, s.after()
	case isNumber(c) && found != nil && len(found.slots) > 0:
		s.length = 0
		s.place = inNumber
		return 0
	case s.level > 0:
		s.place = afterValue
		return 0
	}
	return 1
}

// after returns the place after a value: at the root, another value may follow.
func (s *document) after() place {
	if s.level == 0 {
		return atValue
	}
	return afterValue
}

// enter opens an object of the path, or an array of such objects.
func (s *document) enter(at *member, list bool) {
	s.path[s.level], s.list[s.level] = at, list
	s.level++
	s.depth++
}

func (s *document) leave() {
	s.level--
	s.depth--
	s.place = s.after()
}

// text reads an ignored string and returns the number of bytes read.
func (s *document) text(b []byte) int {
	i := 0
	if s.escaped {
		s.escaped = false
		i = 1
	}
	for i < len(b) {
		quote := bytes.IndexByte(b[i:], '"')
		end := i + quote
		if quote < 0 {
			end = len(b)
		}
		// Each byte is searched once for a quote and once for a backslash, independent of their number.
		for i < end {
			slash := bytes.IndexByte(b[i:end], '\\')
			if slash < 0 {
				i = end
				break
			}
			i += slash + 2
		}
		switch {
		case i == end && end < len(b):
			s.place = s.back
			return end + 1
		case i > len(b):
			s.escaped = true
		}
	}
	return len(b)
}

// id reads an id or a media type, and returns the number of bytes read. It ignores one with an escape or too long.
func (s *document) id(b []byte) int {
	name := &s.answer
	if s.isOther {
		name = &s.otherID
	}
	for i, c := range b {
		switch {
		case c == '"':
			s.place = s.back
			switch {
			case !s.isOther:
				s.named = len(s.answer) > 0
			case s.found.media:
				if bytes.HasPrefix(s.otherID, []byte("image/")) {
					s.images++
				}
			case len(s.otherID) > 0:
				s.made(string(s.otherID))
			}
			return i + 1
		case c == '\\' || len(*name) == maxAnswer:
			*name, s.place = nil, inString
			return i
		}
		*name = append(*name, c)
	}
	return len(b)
}

// name reads a member's name and returns the number of bytes read.
func (s *document) name(b []byte) int {
	for i, c := range b {
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
			s.length = maxWord + 1 // no member of a shape needs an escape
		case c == '"':
			s.found = nil
			if s.length <= maxWord {
				s.found = s.path[s.level-1].child(s.word[:s.length])
			}
			s.place = atColon
			return i + 1
		default:
			s.keep(c)
		}
	}
	return len(b)
}

// other reads an ignored array or object and returns the number of bytes read.
func (s *document) other(b []byte) int {
	for i, c := range b {
		switch c {
		case '"':
			s.place, s.back = inString, inOther
			return i + 1
		case '{', '[':
			s.depth++
		case ',':
			if s.within && s.depth == s.level+1 {
				s.items++
			}
		case '}', ']':
			s.depth--
			if s.depth == s.level {
				s.within = false
				s.place = s.after()
				return i + 1
			}
		}
	}
	return len(b)
}

// keep appends a byte to the word if it fits.
func (s *document) keep(c byte) {
	if s.length < maxWord {
		s.word[s.length] = c
		s.length++
	} else {
		s.length = maxWord + 1
	}
}

// count stores the number in its slots.
func (s *document) count() {
	if s.length > maxWord {
		return
	}
	number, err := strconv.ParseFloat(string(s.word[:s.length]), 64)
	if err != nil || number < 0 || number > 1<<53 {
		return
	}
	for _, slot := range s.found.slots {
		n := number
		if s.root.of[slot] == audioCounter {
			n *= 1000 // seconds to ms
		}
		s.take(slot, int64(math.Round(n)))
	}
}

func isSpace(c byte) bool { return c == ' ' || c == '\n' || c == '\t' || c == '\r' }

func isNumber(c byte) bool {
	return c >= '0' && c <= '9' || c == '-' || c == '+' || c == '.' || c == 'e' || c == 'E'
}
