package chat

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// completion writes a whole answer.
func (w *writer) completion() {
	w.out.Grow(w.held + form.DocumentRoom)
	w.out.Begin()
	w.head(&w.out, "chat.completion")
	w.out.Array("choices")
	for _, c := range w.choices {
		w.out.Begin()
		w.out.KeyInt("index", int64(c.index))
		w.out.Key("message")
		w.message(c)
		w.writeLogprobs(list(c.logprobs))
		w.out.KeyString("finish_reason", w.finishReason(c))
		w.out.End()
	}
	w.out.EndArray()
	writeUsage(&w.out, &w.counts)
	w.out.End()
}

// list makes an array of its elements, absent where there are none.
func list(elements []byte) rawjson.Value {
	if len(elements) == 0 {
		return nil
	}
	return append(append([]byte{'['}, elements...), ']')
}

func (w *writer) message(c *said) {
	w.out.Begin()
	w.out.Literal(`"role":"assistant"`)
	w.out.Key("content")
	orNull(&w.out, c.text, len(c.calls) > 0 || c.refused)
	if len(c.thought) > 0 {
		w.out.KeyQuoted("reasoning_content", c.thought)
	}
	w.out.Key("refusal")
	orNull(&w.out, c.refusal, true)
	w.out.KeyRaw("annotations", []byte("["), c.annotations.Bytes(), []byte("]"))
	if len(c.calls) > 0 && w.ask.Legacy {
		w.out.Object("function_call")
		w.function(c.calls[0])
	} else if len(c.calls) > 0 {
		w.out.Array("tool_calls")
		for _, call := range c.calls {
			w.out.Begin()
			w.writeCall(call)
			w.inner(call)
			w.function(call)
			w.out.End()
		}
		w.out.EndArray()
	}
	w.out.End()
}

// function writes the name and the whole input of a call.
func (w *writer) function(call *saidCall) {
	w.out.KeyString("name", call.name)
	w.out.KeyText(call.member(), call.whole())
	w.out.End()
}

// orNull writes the inside of a text, or null where there is none and it may be.
func orNull(out *form.Out, inner []byte, null bool) {
	if len(inner) == 0 && null {
		out.Literal("null")
		return
	}
	out.Quoted(inner)
}

// whole is the input of a call that was held.
func (s *saidCall) whole() rawjson.Text {
	text := append(append(make(rawjson.Text, 0, len(s.held)+2), '"'), s.held...)
	text = append(text, '"')
	switch {
	case s.custom:
		return form.CustomText(form.ReadArguments(text))
	case !s.input:
		return rawjson.Text(`"{}"`)
	}
	return text
}
