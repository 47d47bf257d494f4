package rawjson

import (
	"iter"
	"strconv"
)

// Place is the position of a value within another one: the objects and arrays that contain it, from the outside in.
type Place []step

// step is one of these objects or arrays.
type step struct {
	name  Text // of the member, in an object
	index int  // of the element, in an array; -1 in an object
}

// In returns the name of the member whose value is the object that contains the place; absent if the object is not a member's value.
func (p Place) In() Text {
	if len(p) < 2 {
		return nil
	}
	return p[len(p)-2].name
}

// Name returns the name of the member at the place; absent for an element of an array.
func (p Place) Name() Text {
	if len(p) == 0 {
		return nil
	}
	return p[len(p)-1].name
}

// String writes a place as messages[0].content[1].ttl.
func (p Place) String() string {
	var text []byte
	for i, s := range p {
		switch {
		case s.index >= 0:
			text = append(strconv.AppendInt(append(text, '['), int64(s.index), 10), ']')
		case i > 0:
			text = append(append(text, '.'), s.name.Decoded()...)
		default:
			text = append(text, s.name.Decoded()...)
		}
	}
	return string(text)
}

// Texts yields the members whose value is a text, of all objects within the value, in one pass. It omits objects that are the value of a
// member for which skip returns true; nil omits none. A place is valid until the next one.
func (v Value) Texts(skip func(name Text) bool) iter.Seq2[Place, Text] {
	return func(yield func(Place, Text) bool) {
		var place Place
		for at := Space(v, 0); at < len(v); at = Space(v, at) {
			if len(place) > 0 {
				here := &place[len(place)-1]
				switch {
				case v[at] == ',':
					if here.index >= 0 {
						here.index++
					}
					at++
					continue
				case v[at] == '}' || v[at] == ']':
					if place = place[:len(place)-1]; len(place) == 0 {
						return
					}
					at++
					continue
				case here.index < 0: // a member's name
					end := textEnd(v, at)
					here.name = Text(v[at:end])
					if at = Space(v, end); at >= len(v) || v[at] != ':' {
						return
					}
					if at = Space(v, at+1); at >= len(v) {
						return
					}
				}
			}
			from := at
			switch {
			case v[at] == '[':
				place = append(place, step{})
				at++
				continue
			case v[at] == '{' && (skip == nil || !skip(place.Name())):
				place = append(place, step{index: -1})
				at++
				continue
			}
			at = End(v, from)
			if at == from || v[from] == '"' && place.Name() != nil && !yield(place, Text(v[from:at])) || len(place) == 0 {
				return
			}
		}
	}
}
