package tasks

import (
	"bytes"
	"encoding/json"
)

// Collected is a JSON object that the events of a stream extend.
type Collected = map[string]any

// grown is a text to which events append.
type grown []byte

// MarshalText implements encoding.TextMarshaler.
func (g grown) MarshalText() ([]byte, error) { return g, nil }

// ReadEvent decodes the data of an event, with numbers as they are written. It reports false if the data has another shape.
func ReadEvent(data []byte, into any) bool {
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.UseNumber()
	return decoder.Decode(into) == nil
}

// Grow appends a delta to the text of a member. A member that is not a text becomes one.
func Grow(object Collected, name, delta string) {
	text, begun := object[name].(grown)
	if !begun {
		begin, _ := object[name].(string)
		text = grown(begin)
	}
	object[name] = append(text, delta...)
}

// Grown returns the text of a member that Grow has extended, nil for none.
func Grown(object Collected, name string) []byte {
	text, _ := object[name].(grown)
	return text
}

// AppendTo appends values to the array of a member.
func AppendTo(object Collected, name string, values ...any) {
	array, _ := object[name].([]any)
	object[name] = append(array, values...)
}
