package usage

import (
	"bytes"
	"math"
	"strconv"
)

const (
	// maxPath is the number of objects that may be open on the way to a counter.
	maxPath = 10
	// maxAnswer bounds the name of an answer; vendors' have about 60 bytes.
	maxAnswer = 200
	// maxWord bounds a member name or number that is read.
	maxWord = 40
)

// place says what a document expects next.
type place uint8

const (
	atValue  place = iota // a value: at the root, or of the member found
	atName                // a member's name or the end of the object
	inName                // the rest of a name
	atColon               // the colon after it
	inNumber              // the rest of a counter
	inAnswer              // the rest of the name of the answer, or of something else that it made
	inString              // the rest of a string that does not matter
	atItem                // the first item of the content array, or its end
	inOther               // the rest of an array or object that does not matter
	behind                // the rest of a value, up to the comma or the end of the object
)

// document picks counters out of a JSON document that it sees in pieces of any size and does not keep. It does not
// check the document: nonsense yields nothing, or nonsense.
type document struct {
	root *member

	// path are the open objects that lead to counters; depth counts all open objects and arrays.
	path  [maxPath]*member
	list  [maxPath]bool // it is an array, whose elements the member stands for
	level int
	depth int

	place   place
	back    place // where a string leads back to
	escaped bool
	found   *member // the member whose value comes next, nil for one that does not matter
	word    [maxWord]byte
	length  int // of word; beyond maxWord it was too long

	tally
	// answer is what names the answer, as far as it was read; named: to its end. Neither is reset: the first counts.
	answer []byte
	named  bool
	// made gets the names of what else the answer made; nil where they are not wanted. thing is the one that is being read.
	made    func(name string)
	thing   []byte
	isThing bool
	arrays
}

// tally is what the slots of a document, or of all documents of an answer, hold.
type tally struct {
	counts [maxSlots]int64
	seen   [maxSlots]bool
}

// take takes over a number. A zero does not erase an earlier number: some upstreams repeat members with zeros.
func (t *tally) take(slot int, n int64) {
	if n != 0 || !t.seen[slot] {
		t.counts[slot], t.seen[slot] = n, true
	}
}

// sum is what a counter's slots hold together; false: none of them was seen.
func (t *tally) sum(root *member, of counter) (sum int64, seen bool) {
	for slot, counter := range root.of {
		if counter == of && t.seen[slot] {
			sum, seen = sum+t.counts[slot], true
		}
	}
	return sum, seen
}

// arrays are what is known of a document's arrays that matter.
type arrays struct {
	// content and hollow: the content array was seen, with items in it or without.
	content, hollow bool
	// items of the arrays that count; within: one of them is being read.
	items  int64
	within bool
}

// reset makes the document ready for the next document.
func (s *document) reset() {
	answer, named := s.answer, s.named
	*s = document{root: s.root, made: s.made, thing: s.thing[:0]}
	if named {
		s.answer, s.named = answer, true
	}
}

// counted reports whether the document held tokens, cached ones apart.
func (s *document) counted() bool {
	_, input := s.sum(s.root, inputCounter)
	_, output := s.sum(s.root, outputCounter)
	return input || output
}

// feed reads the next piece of the document.
func (s *document) feed(b []byte) {
	for i := 0; i < len(b); {
		switch c := b[i]; s.place {
		case inString:
			i += s.text(b[i:])
		case inName:
			i += s.name(b[i:])
		case inAnswer:
			i += s.naming(b[i:])
		case inOther:
			i += s.other(b[i:])
		case inNumber:
			if !isNumber(c) {
				s.count()
				s.place = behind
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
		default: // behind
			switch c {
			case ',':
				s.place = atName
				if s.level > 0 && s.list[s.level-1] {
					s.place, s.found = atValue, s.path[s.level-1]
				}
			case '}', ']':
				s.leave()
			case '"':
				s.place, s.back = inString, behind
			}
			i++
		}
	}
}

// value begins a value with its first byte, and reports whether it took that byte.
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
		s.answer, s.isThing, s.place, s.back = s.answer[:0], false, inAnswer, s.after()
	case c == '"' && found != nil && found.made && s.made != nil:
		s.thing, s.isThing, s.place, s.back = s.thing[:0], true, inAnswer, s.after()
	case c == '"':
		s.place, s.back = inString, s.after()
	case isNumber(c) && found != nil && len(found.slots) > 0:
		s.length = 0
		s.place = inNumber
		return 0
	case s.level > 0:
		s.place = behind
		return 0
	}
	return 1
}

// after is where a value ends: at the root another may follow.
func (s *document) after() place {
	if s.level == 0 {
		return atValue
	}
	return behind
}

// enter opens an object of the path, or an array of such.
func (s *document) enter(at *member, list bool) {
	s.path[s.level], s.list[s.level] = at, list
	s.level++
	s.depth++
}

// leave closes the innermost object or array of the path.
func (s *document) leave() {
	s.level--
	s.depth--
	s.place = s.after()
}

// text reads on in a string that does not matter, and says how far it came.
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
		// Each byte is searched once for a quote and once for a backslash, however many of them there are.
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

// naming reads on in what names the answer, and says how far it came. A name that needs an escape or is too long is none.
func (s *document) naming(b []byte) int {
	name := &s.answer
	if s.isThing {
		name = &s.thing
	}
	for i, c := range b {
		switch {
		case c == '"':
			s.place = s.back
			switch {
			case !s.isThing:
				s.named = len(s.answer) > 0
			case len(s.thing) > 0:
				s.made(string(s.thing))
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

// name reads on in a member's name, and says how far it came.
func (s *document) name(b []byte) int {
	for i, c := range b {
		switch {
		case s.escaped:
			s.escaped = false
		case c == '\\':
			s.escaped = true
			s.length = maxWord + 1 // no name that is looked for needs an escape
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

// other reads on in what does not matter, and says how far it came.
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

// keep appends to the word as long as it fits.
func (s *document) keep(c byte) {
	if s.length < maxWord {
		s.word[s.length] = c
		s.length++
	} else {
		s.length = maxWord + 1
	}
}

// count puts the number read into its slots.
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
