package form

import (
	"bytes"

	"modelrelay/providers/rawjson"
)

// customSchema is the schema of a custom tool that is sent as a function.
const customSchema = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`

// Function returns a custom tool as a function for dialects without custom tools: it has the text "input", and its grammar is at the end of
// the description. Function returns any other tool unchanged.
func (t Tool) Function() Tool {
	if !t.Custom {
		return t
	}
	t.Custom, t.Schema = false, rawjson.Value(customSchema)
	if !t.Grammar.Definition.Empty() {
		grammar := rawjson.Join("", rawjson.Quote("The input must follow this grammar ("), t.Grammar.Syntax, rawjson.Quote("):\n"),
			t.Grammar.Definition)
		if t.Description.Empty() {
			t.Description = grammar
		} else {
			t.Description = rawjson.Join("\n\n", t.Description, grammar)
		}
		t.Grammar = Grammar{}
	}
	return t
}

// CustomInput returns the input of a call with the text of a custom tool.
func CustomInput(text rawjson.Text) rawjson.Value {
	var out Out
	out.JSON(`{"input":?}`, text)
	return out.Bytes()
}

// CustomText returns the text in the input of a custom tool's call. An input of another shape is the text itself.
func CustomText(input rawjson.Value) rawjson.Text {
	if text := input.Get("input").Text(); text != nil {
		return text
	}
	return rawjson.Quote(string(bytes.TrimSpace(input)))
}

// CustomOpens and CustomCloses are the texts before and after the pieces of CustomArgs in EventCallArgs.
const (
	CustomOpens  = `"{\"input\":\""`
	CustomCloses = `"\"}"`
)

// CustomArgs returns a piece of a custom tool's text as a piece of its input in a text.
func CustomArgs(piece rawjson.Text) rawjson.Text { return rawjson.Quote(string(piece.Inner())) }
