package form

import (
	"bytes"

	"modelrelay/providers/rawjson"
)

// customSchema is what a custom tool takes where it has to be a function.
const customSchema = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`

// Function is the tool as dialects without custom tools can declare it: a function with the one text "input", whose grammar
// is at the end of the description. Another tool is returned as it is.
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

// CustomInput is the input of a call with the one text of a custom tool.
func CustomInput(text rawjson.Text) rawjson.Value {
	var out Out
	out.Begin()
	out.KeyText("input", text)
	out.End()
	return out.Bytes()
}

// CustomText is the one text in the input of a call of a custom tool. Input that is of another shape is that text itself.
func CustomText(input rawjson.Value) rawjson.Text {
	if text := input.Get("input").Text(); text != nil {
		return text
	}
	return rawjson.Quote(string(bytes.TrimSpace(input)))
}

// CustomOpens and CustomCloses stand around the pieces of CustomArgs, as EventCallArgs give them.
const (
	CustomOpens  = `"{\"input\":\""`
	CustomCloses = `"\"}"`
)

// CustomArgs is a piece of a custom tool's text as a piece of the text of its input.
func CustomArgs(piece rawjson.Text) rawjson.Text { return rawjson.Quote(string(piece.Inner())) }
