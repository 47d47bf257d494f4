package chat

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func (w *writer) completion() {
	w.Out.Grow(w.held + form.DocumentRoom)
	w.Out.Begin()
	w.head(&w.Out, "chat.completion")
	w.Out.Array("choices")
	for _, c := range w.choices {
		w.Out.JSON(`{"index":?,"message":`, int64(c.index))
		w.message(c)
		w.writeLogprobs(list(c.logprobs))
		w.Out.KeyString("finish_reason", w.finishReason(c))
		w.Out.End()
	}
	w.Out.EndArray()
	writeUsage(&w.Out, &w.counts)
	w.Out.End()
}

// list returns the array of the elements, absent for none.
func list(elements []byte) rawjson.Value {
	if len(elements) == 0 {
		return nil
	}
	return append(append([]byte{'['}, elements...), ']')
}

func (w *writer) message(c *choiceAnswer) {
	w.Out.JSON(`{"role":"assistant","content":`)
	orNull(&w.Out, c.text, len(c.calls) > 0 || c.refused)
	if len(c.thought) > 0 {
		w.Out.KeyQuoted("reasoning_content", c.thought)
	}
	w.Out.Key("refusal")
	orNull(&w.Out, c.refusal, true)
	w.Out.KeyRaw("annotations", []byte("["), c.annotations.Bytes(), []byte("]"))
	if len(c.calls) > 0 && w.ask.Legacy {
		w.Out.Object("function_call")
		w.function(c.calls[0])
	} else if len(c.calls) > 0 {
		w.Out.Array("tool_calls")
		for _, call := range c.calls {
			w.Out.Begin()
			w.writeCall(call)
			w.Out.Object(call.kind())
			w.function(call)
			w.Out.End()
		}
		w.Out.EndArray()
	}
	w.Out.End()
}

func (w *writer) function(call *toolCall) {
	w.Out.JSON(`"name":?,"`+call.member()+`":?}`, call.name, call.whole())
}

// orNull writes a text of its inside, or null if it is empty and null is permitted.
func orNull(out *form.Out, inner []byte, null bool) {
	if len(inner) == 0 && null {
		out.JSON("null")
		return
	}
	out.Quoted(inner)
}

// whole returns the complete input of a held call.
func (s *toolCall) whole() rawjson.Text {
	text := rawjson.Wrap(s.held)
	switch {
	case s.custom:
		return form.CustomText(form.ReadArguments(text))
	case !s.input:
		return rawjson.Text(`"{}"`)
	}
	return text
}
