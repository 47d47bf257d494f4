package chat

import (
	"slices"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

type toolCall struct {
	block    int
	id, name string
	// custom: the client's tool accepts one text, which is held until it is complete.
	custom    bool
	input     bool // a piece of it was written
	ended     bool
	held      []byte // the inside of its arguments
	signature []byte
}

// beginCall begins a call. A client of the old form receives only the first one.
func (w *writer) beginCall(c *choiceAnswer, event *form.Event) {
	call := &toolCall{
		block: event.Block, id: event.Call.ID, name: event.Call.Name, custom: w.ask.Custom[event.Call.Name], signature: c.signature,
	}
	c.signature = nil
	if w.ask.Legacy && len(c.calls) > 0 {
		return
	}
	c.calls = append(c.calls, call)
	if !w.ask.Stream {
		return
	}
	w.piece(c, call, nil, true)
}

// member returns the name of the member with the input of a call.
func (s *toolCall) member() string {
	if s.custom {
		return "input"
	}
	return "arguments"
}

// kind returns the type of a call, which is also the name of the member with its name and input.
func (s *toolCall) kind() string {
	if s.custom {
		return "custom"
	}
	return "function"
}

// piece writes a chunk with a piece of a call's input. The first one begins the call.
func (w *writer) piece(c *choiceAnswer, call *toolCall, text rawjson.Text, first bool) {
	w.chunk(c)
	if w.ask.Legacy {
		w.Out.Object("function_call")
	} else {
		w.Out.JSON(`"tool_calls":[{"index":?`, int64(slices.Index(c.calls, call)))
		if first {
			w.writeCall(call)
		}
		w.Out.Object(call.kind())
	}
	if first {
		w.Out.KeyString("name", call.name)
	}
	w.Out.KeyText(call.member(), text)
	w.Out.End()
	if !w.ask.Legacy {
		w.Out.JSON("}]")
	}
	w.close("")
}

// writeCall writes the members next to the function of a call. The signature is only in the first chunk: the AI SDK does not read it in
// later ones, and the SDK for Python concatenates the texts of unknown fields.
func (w *writer) writeCall(call *toolCall) {
	w.Out.JSON(`"id":?,"type":?`, call.id, call.kind())
	if call.signature != nil {
		writeSignature(&w.Out, call.signature)
	}
}

// arguments writes or keeps a piece of the input of a call.
func (w *writer) arguments(c *choiceAnswer, call *toolCall, text rawjson.Text) {
	if text.Empty() {
		return
	}
	call.input = true
	if call.custom || !w.ask.Stream {
		w.keep(&call.held, text.Inner())
		return
	}
	w.piece(c, call, text, false)
}

// endCall ends a call. Its input is an object, even if the upstream sent none.
func (w *writer) endCall(c *choiceAnswer, call *toolCall) {
	call.ended = true
	if !w.ask.Stream {
		return
	}
	switch {
	case call.custom:
		w.piece(c, call, call.whole(), false)
		call.held = nil
	case !call.input:
		w.piece(c, call, rawjson.Text(`"{}"`), false)
	}
}
