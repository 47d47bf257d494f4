package form

import (
	"bytes"

	"modelrelay/providers/rawjson"
)

// Parameters is the schema of a function as OpenAI's dialects take it: an object of no properties where there is none, and
// properties where an object names none. The vendor refuses it otherwise: "object schema missing properties."
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
