package form

import (
	"bytes"

	"modelrelay/providers/rawjson"
)

// Parameters returns the schema of a function for OpenAI's dialects: without a schema, an object without properties; and an object without
// properties receives an empty list of them. The vendor otherwise refuses it: "object schema missing properties."
// (https://github.com/openai/openai-agents-python/issues/449)
func (t *Tool) Parameters() rawjson.Value {
	var members, properties int
	var kind rawjson.Text
	for name, value := range t.Schema.Members() {
		members++
		switch string(name.Inner()) {
		case "type":
			kind = value.Text()
		case "properties":
			properties++
		}
	}
	switch {
	case members == 0:
		return rawjson.Value(`{"type":"object","properties":{}}`)
	case kind.Is("object") && properties == 0:
		return append(bytes.TrimRight(bytes.Clone(t.Schema[:len(t.Schema)-1]), " \t\r\n"), `,"properties":{}}`...)
	}
	return t.Schema
}
