package body

import (
	"iter"
	"strconv"

	"github.com/go-json-experiment/json/jsontext"
)

// Place is where a member stands within an object: the objects and arrays on the way to it, from the outside in.
type Place []step

// step is one object or array on the way.
type step struct {
	name  []byte // of the member, in an object
	index int    // of the element, in an array; -1 in an object
}

// In is the name of the member whose value is the object that the place is in, "" where that object is none's.
func (p Place) In() string {
	if len(p) < 2 {
		return ""
	}
	return string(p[len(p)-2].name)
}

// String writes a place as messages[0].content[1].ttl.
func (p Place) String() string {
	var text []byte
	for i, s := range p {
		switch {
		case s.index >= 0:
			text = append(strconv.AppendInt(append(text, '['), int64(s.index), 10), ']')
		case i > 0:
			text = append(append(text, '.'), s.name...)
		default:
			text = append(text, s.name...)
		}
	}
	return string(text)
}

// clientsOwn tells members whose objects are a client's own words: arguments of its tools, and what these look like.
func clientsOwn(name []byte) bool {
	switch string(name) {
	case "input", "input_schema", "parameters", "parametersJsonSchema", "args":
		return true
	}
	return false
}

// TextsNamed yields the members of that name whose value is a text, with their places, of an object and of those within it. What
// clients pass to their own tools is left out. A place is good until the next one.
func TextsNamed(object []byte, name string) iter.Seq2[Place, []byte] {
	return func(yield func(Place, []byte) bool) {
		dec := newDecoder(object)
		var place Place
		for {
			kind, depth := dec.PeekKind(), dec.StackDepth()
			in, n := dec.StackIndex(depth)
			switch {
			case kind == jsontext.KindInvalid: // the end; the check has read it
				return
			case kind == jsontext.KindEndObject, kind == jsontext.KindEndArray:
			case in == jsontext.KindBeginArray:
				place[depth-1] = step{index: int(n)}
			case in == jsontext.KindBeginObject && n%2 == 0:
				at, err := readSpan(dec)
				if err != nil {
					return
				}
				place[depth-1] = step{name: Unquote(object[at.From:at.To]), index: -1}
				continue
			case in == jsontext.KindBeginObject && kind == jsontext.KindString && string(place[depth-1].name) == name:
				at, err := readSpan(dec)
				if err != nil || !yield(place, Unquote(object[at.From:at.To])) {
					return
				}
				continue
			case in == jsontext.KindBeginObject && kind == jsontext.KindBeginObject && clientsOwn(place[depth-1].name):
				if dec.SkipValue() != nil {
					return
				}
				continue
			}
			if _, err := dec.ReadToken(); err != nil {
				return
			}
			if depth = dec.StackDepth(); depth > len(place) {
				place = append(place, step{})
			}
			place = place[:depth]
		}
	}
}
