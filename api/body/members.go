package body

import (
	"bytes"
	"errors"
	"slices"
	"strings"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers"
)

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
