package chat

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

type saidCall struct {
	block    int
	id, name string
	// custom: the client's tool takes one text, which is held until it is whole.
	custom    bool
	input     bool // some of it was given
	ended     bool
	held      []byte // the inside of its arguments
	signature []byte
}

// beginCall begins a call. A client of the old kind gets the first one alone.
func (w *writer) beginCall(c *said, event *form.Event) {
	call := &saidCall{
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
	w.openPiece(c, call)
	if !w.ask.Legacy {
		w.writeCall(call)
		w.inner(call)
	}
	w.Out.KeyString("name", call.name)
	w.Out.Literal(`"` + call.member() + `":""`)
	w.closePiece()
}

// member is where the input of a call stands.
func (s *saidCall) member() string {
	if s.custom {
		return "input"
	}
	return "arguments"
}

func (w *writer) openPiece(c *said, call *saidCall) {
	w.chunk(c)
	if w.ask.Legacy {
		w.Out.Object("function_call")
		return
	}
	index := 0
	for c.calls[index] != call {
		index++
	}
	w.Out.Array("tool_calls")
	w.Out.Begin()
	w.Out.KeyInt("index", int64(index))
}

// writeCall writes what is next to the function of a call. The signature is in the opening chunk alone: the AI SDK reads
// it nowhere else, and the SDK for Python joins the texts of fields that it does not know.
func (w *writer) writeCall(call *saidCall) {
	w.Out.KeyString("id", call.id)
	w.Out.Key("type")
	if call.custom {
		w.Out.String("custom")
	} else {
		w.Out.String("function")
	}
	if call.signature != nil {
		writeSignature(&w.Out, call.signature)
	}
}

func (w *writer) inner(call *saidCall) {
	if call.custom {
		w.Out.Key("custom")
	} else {
		w.Out.Key("function")
	}
	w.Out.Begin()
}

func (w *writer) closePiece() {
	w.Out.End()
	if !w.ask.Legacy {
		w.Out.End()
		w.Out.EndArray()
	}
	w.close("")
}

// arguments writes a piece of the input of a call, or keeps it.
func (w *writer) arguments(c *said, call *saidCall, text rawjson.Text) {
	if text.Empty() {
		return
	}
	call.input = true
	if call.custom || !w.ask.Stream {
		w.keep(&call.held, text.Inner())
		return
	}
	w.piece(c, call, text)
}

func (w *writer) piece(c *said, call *saidCall, text rawjson.Text) {
	w.openPiece(c, call)
	if !w.ask.Legacy {
		w.inner(call)
	}
	w.Out.KeyText(call.member(), text)
	w.closePiece()
}

// endCall ends a call. Its input is an object, even where its upstream gave none.
func (w *writer) endCall(c *said, call *saidCall) {
	call.ended = true
	if !w.ask.Stream {
		return
	}
	switch {
	case call.custom:
		w.piece(c, call, call.whole())
		call.held = nil
	case !call.input:
		w.piece(c, call, rawjson.Text(`"{}"`))
	}
}
