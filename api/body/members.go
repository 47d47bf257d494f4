package body

import (
	"bytes"
	"errors"
	"iter"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
)

// What follows reads JSON that a Checker has passed, or a part of it, and yields spans of it.

func newDecoder(value []byte) *jsontext.Decoder {
	return jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true))
}

// Twice is the place of the first name that an object gives more than once, of any JSON value, with points between the names that lead
// there; "" where there is none.
func Twice(value []byte) string {
	_, err := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowInvalidUTF8(true)).ReadValue()
	wrong, _ := errors.AsType[*jsontext.SyntacticError](err)
	if wrong == nil || !errors.Is(err, jsontext.ErrDuplicateName) {
		return ""
	}
	return strings.Join(slices.Collect(wrong.JSONPointer.Tokens()), ".")
}

// readSpan reads the next value and tells where it stands.
func readSpan(dec *jsontext.Decoder) (providers.Span, error) {
	value, err := dec.ReadValue()
	to := int(dec.InputOffset())
	return providers.Span{From: to - len(value), To: to}, err
}

// Members yields where the names of an object, in their quotes, and the values stand; nothing for any other value.
func Members(object []byte) iter.Seq2[providers.Span, providers.Span] {
	return func(yield func(name, value providers.Span) bool) {
		dec := newDecoder(object)
		if token, err := dec.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginObject {
			return
		}
		for dec.PeekKind() == jsontext.KindString {
			name, err := readSpan(dec)
			if err != nil {
				return
			}
			value, err := readSpan(dec)
			if err != nil || !yield(name, value) {
				return
			}
		}
	}
}

// Items yields where the elements of an array stand; nothing for any other value.
func Items(array []byte) iter.Seq[providers.Span] {
	return func(yield func(item providers.Span) bool) {
		dec := newDecoder(array)
		if token, err := dec.ReadToken(); err != nil || token.Kind() != jsontext.KindBeginArray {
			return
		}
		for dec.PeekKind() != jsontext.KindEndArray {
			if item, err := readSpan(dec); err != nil || !yield(item) {
				return
			}
		}
	}
}

// Member finds the last value of a member, by any of its names, of an object; the zero Span when it has none.
func Member(object []byte, names ...string) (at providers.Span) {
	for name, value := range Members(object) {
		spelt := Unquote(object[name.From:name.To])
		if slices.ContainsFunc(names, func(name string) bool { return name == string(spelt) }) {
			at = value
		}
	}
	return at
}

// EachText calls visit with every member of objects within an array whose value is a text, until it says no.
func EachText(array []byte, visit func(name, text []byte) bool) bool {
	if len(array) == 0 || array[0] != '[' {
		return true
	}
	dec := newDecoder(array)
	var name []byte
	for {
		switch dec.PeekKind() {
		case jsontext.KindInvalid: // the end
			return true
		case jsontext.KindString:
			value, err := dec.ReadValue()
			if err != nil {
				return true // the check has read it
			}
			kind, n := dec.StackIndex(dec.StackDepth())
			switch {
			case kind != jsontext.KindBeginObject:
			case n%2 == 1: // a name
				name = append(name[:0], Unquote(value)...)
			case !visit(name, Unquote(value)):
				return false
			}
		default:
			if _, err := dec.ReadToken(); err != nil {
				return true
			}
		}
	}
}

// Unquote decodes a JSON string, to a part of raw where nothing in it is escaped; nil for anything else.
func Unquote(raw []byte) []byte {
	if len(raw) < 2 || raw[0] != '"' {
		return nil
	}
	if bytes.IndexByte(raw, '\\') < 0 {
		return raw[1 : len(raw)-1]
	}
	text, _ := jsontext.AppendUnquote(nil, raw) // the decoder has read it: at worst a lone surrogate is replaced
	return text
}

// Shift moves the span of a part to where it stands in the whole, which the part begins at; the zero Span stays.
func Shift(at providers.Span, by int) providers.Span {
	if at == (providers.Span{}) {
		return at
	}
	return providers.Span{From: at.From + by, To: at.To + by}
}

// InsertMember adds a member in front of the others of the object that begins at or after from.
func InsertMember(raw []byte, from int, member string) providers.Edit {
	inside := from + bytes.IndexByte(raw[from:], '{') + 1
	if rest := bytes.TrimLeft(raw[inside:], " \t\r\n"); rest[0] != '}' {
		member += ","
	}
	return providers.Edit{At: providers.Span{From: inside, To: inside}, Text: []byte(member)}
}

// AppendMember adds a member to an object without its closing brace, nil for one without members.
func AppendMember(object, name, value []byte) []byte {
	if object == nil {
		object = append(object, '{')
	} else {
		object = append(object, ',')
	}
	object = append(object, name...)
	object = append(object, ':')
	return append(object, value...)
}
