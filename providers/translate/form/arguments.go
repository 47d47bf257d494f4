package form

import (
	"bytes"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers/rawjson"
)

// ReadArguments returns the input of a call from the JSON text in two of the dialects. An empty text is {}. A text that is not an object
// becomes an object that contains the text; see Arguments.
func ReadArguments(arguments rawjson.Text) rawjson.Value {
	input := rawjson.Trim(arguments.Decoded())
	switch {
	case len(input) == 0 || string(input) == "null":
		return rawjson.Value("{}")
	case input.IsObject() && rawjson.Valid(input):
		return input
	}
	var out Out
	out.JSON(`{"_raw":?}`, arguments)
	return out.Bytes()
}

// Arguments returns the input of a call as compact JSON in a text, or the text that ReadArguments found instead of JSON.
func (c *Call) Arguments() rawjson.Text {
	if c.Input.Absent() {
		return rawjson.Text(`"{}"`)
	}
	if raw := c.Input.Get("_raw").Text(); raw != nil && members(c.Input) == 1 {
		return raw
	}
	return Compact(c.Input)
}

// Compact returns a valid value as a text, without its white space.
func Compact(value rawjson.Value) rawjson.Text {
	compact := jsontext.Value(bytes.Clone(value))
	_ = compact.Compact(jsontext.AllowDuplicateNames(true), jsontext.AllowInvalidUTF8(true)) // the value is valid
	return rawjson.Quote(string(compact))
}

func members(v rawjson.Value) (n int) {
	for range v.Members() {
		n++
	}
	return n
}

// Space is the client's name of a tool in a namespace.
type Space struct{ Namespace, Name string }

// Flat returns the name of the tool for dialects without namespaces.
func (s Space) Flat() string {
	if s.Namespace == "" {
		return s.Name
	}
	if n := len(s.Namespace); n > 2 && s.Namespace[n-2:] == "__" {
		return s.Namespace + s.Name
	}
	return s.Namespace + "__" + s.Name
}
