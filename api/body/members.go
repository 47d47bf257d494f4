package body

import (
	"bytes"
	"errors"
	"slices"
	"strings"
	"time"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// DuplicateName returns the path, with dots, of the first duplicate name of an object in a JSON value; "" for none.
func DuplicateName(value []byte) string {
	_, err := jsontext.NewDecoder(bytes.NewBuffer(value), jsontext.AllowInvalidUTF8(true)).ReadValue()
	wrong, _ := errors.AsType[*jsontext.SyntacticError](err)
	if wrong == nil || !errors.Is(err, jsontext.ErrDuplicateName) {
		return ""
	}
	return strings.Join(slices.Collect(wrong.JSONPointer.Tokens()), ".")
}

// InsertMember adds a first member to the object that begins at or after from.
func InsertMember(raw []byte, from int, member string) providers.Edit {
	inside := from + bytes.IndexByte(raw[from:], '{') + 1
	if rest := bytes.TrimLeft(raw[inside:], " \t\r\n"); rest[0] != '}' {
		member += ","
	}
	return providers.Edit{At: providers.Span{From: inside, To: inside}, Text: []byte(member)}
}

// AppendMember adds a member to an object without its closing brace. An empty object means no members yet.
func AppendMember(object, name, value []byte) []byte {
	if len(object) == 0 {
		object = append(object, '{')
	} else {
		object = append(object, ',')
	}
	object = append(object, name...)
	object = append(object, ':')
	return append(object, value...)
}

// OrNull returns a pointer to the value, or nil for the zero value.
func OrNull[T comparable](value T) *T {
	var zero T
	if value == zero {
		return nil
	}
	return &value
}

// UnixOrNull returns the Unix time in seconds, or nil for the zero time.
func UnixOrNull(at time.Time) *int64 {
	if at.IsZero() {
		return nil
	}
	return new(at.Unix())
}

// Named returns the edit that sets a member.
func Named(name string, value []byte) rawjson.Edit { return rawjson.Edit{Name: name, Value: value} }

// WithMembers returns an edited object.
func WithMembers(object rawjson.Value, members ...rawjson.Edit) []byte {
	size := len(object) + len("{}")
	for _, m := range members {
		size += len(m.Name) + len(m.Value) + len(`"":,`)
	}
	out := make([]byte, 0, size)
	done := make([]bool, len(members))
	for name, value := range object.Members() {
		for i, m := range members {
			if name.Is(m.Name) {
				value, done[i] = m.Value, true
			}
		}
		out = AppendMember(out, name, value)
	}
	for i, m := range members {
		if !done[i] && !m.Only {
			out = AppendMember(out, rawjson.Quote(m.Name), m.Value)
		}
	}
	return closed(out)
}

// WithoutMember returns an object without a member.
func WithoutMember(object rawjson.Value, member string) []byte {
	var out []byte
	for name, value := range object.Members() {
		if !name.Is(member) {
			out = AppendMember(out, name, value)
		}
	}
	return closed(out)
}

// closed adds the closing brace to an object of AppendMember.
func closed(object []byte) []byte {
	if len(object) == 0 {
		return []byte("{}")
	}
	return append(object, '}')
}
