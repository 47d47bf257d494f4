package messages

import (
	"bytes"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// NewWriter returns a writer of the client's message: events or a whole message, as requested.
func NewWriter(ask form.Ask) form.AnswerWriter {
	w := &message{ask: ask, id: form.NewID("msg_"), counts: form.Counts{Input: ask.Input}}
	w.order = form.NewSequencer(w.event)
	return w
}

// message writes one message. One block is open at a time, no block is empty, and their indices have no gaps.
type message struct {
	form.Sending

	ask   form.Ask
	id    string
	order *form.Sequencer
	// content are the blocks of a whole message.
	content form.Out
	// pending: the beginning of the message is not written yet.
	pending bool
	opened  block
	// before is state of the previous text. It is written before the next block, and not at the end, because agents show the last block
	// of an answer (the Agent SDK's result of @anthropic-ai/claude-code 2.1.330).
	before []byte
	index  int
	// searches is the number of web searches in the message.
	searches int64
	counts   form.Counts
	stop     form.Stop
	refused  bool
	done     bool
}

// block is the open block.
type block struct {
	kind blockKind
	of   int // the upstream's block
	call form.Call
	// text is that of a block in a whole message, the inside of a JSON text.
	text []byte
	// signature is that of a thought in a whole message; signed: the thought has its signature.
	signature []byte
	signed    bool
	input     inputKind
	// citations are the elements of the list of a whole message's text.
	citations form.Out
}

type blockKind int

const (
	noBlock blockKind = iota
	textBlock
	thinkingBlock
	callBlock
)

// inputKind is the kind of a call's input.
type inputKind int

const (
	noInput inputKind = iota
	objectInput
	// rawInput is not an object. It is sent as a text within one.
	rawInput
	// nullInput is null.
	nullInput
)

// Write implements form.AnswerWriter.
func (w *message) Write(event *form.Event) {
	if w.done || event.Choice != 0 {
		return
	}
	if event.Kind == form.EventEnd {
		w.end()
		return
	}
	w.order.Put(event)
}

// Take implements form.AnswerWriter.
func (w *message) Take() []byte {
	if w.ask.Stream {
		w.begin()
	}
	return w.Sending.Take()
}

// event writes the next event. The events of a call are consecutive.
func (w *message) event(event *form.Event) {
	switch event.Kind {
	case form.EventStart:
		w.pending = true
	case form.EventText:
		w.say(textBlock, event.Block, event.Text)
	case form.EventRefusal:
		w.refused = true
		w.say(textBlock, event.Block, event.Text)
	case form.EventSearch:
		w.search(event.Search)
	case form.EventCitation:
		w.cite(event)
	case form.EventThought:
		if w.ask.ShowThought {
			w.say(thinkingBlock, event.Block, event.Text)
		}
	case form.EventState:
		w.state(event.Block, &event.State)
	case form.EventCallBegin:
		w.open(block{kind: callBlock, of: event.Block, call: event.Call})
	case form.EventCallArgs:
		w.input(event.Text)
	case form.EventCallEnd:
		w.close()
	case form.EventStop:
		w.stop = event.Stop
		w.stop.Sequence = bytes.Clone(event.Stop.Sequence)
	case form.EventCounts:
		w.counts = *event.Counts
	case form.EventPing:
		if w.ask.Stream {
			w.begin()
			w.ping()
		}
	case form.EventFailed:
		w.done = true
		w.Failed(event.Fault)
	default: // media: a message cannot have them
	}
	if !w.done && w.content.Len()+len(w.opened.text) > form.MaxAnswer {
		w.done = true
		w.Failed(form.TooLong())
	}
}

// say writes a piece of a text or a thought, and begins its block if necessary.
func (w *message) say(kind blockKind, of int, text rawjson.Text) {
	if text.Empty() {
		return
	}
	if w.opened.kind != kind || w.opened.of != of {
		w.open(block{kind: kind, of: of})
	}
	if !w.ask.Stream {
		w.opened.text = append(w.opened.text, text.Inner()...)
		return
	}
	if kind == textBlock {
		w.delta(`{"type":"text_delta","text":?}`, text)
	} else {
		w.delta(`{"type":"thinking_delta","thinking":?}`, text)
	}
}

// state writes a vendor's state as a thought: the one that it ends, or an empty one.
func (w *message) state(of int, state *form.State) {
	if state.Kind == form.StateRedacted {
		w.close()
		var redacted form.Out
		redacted.JSON(`{"type":"redacted_thinking","data":?}`, state.Data)
		w.alone(redacted.Bytes(), nil)
		return
	}
	if state.Kind == form.StateGeminiBefore {
		w.close()
		w.before = []byte(state.Envelope())
		return
	}
	if w.opened.kind != thinkingBlock {
		w.open(block{kind: thinkingBlock, of: of})
	}
	signature := state.Data
	if state.Kind != form.StateAnthropic {
		signature = []byte(state.Envelope())
	}
	w.sign(signature)
	w.close() // a thought has one signature
}

// sign sets the signature of the open thought.
func (w *message) sign(signature []byte) {
	w.opened.signed = true
	if w.ask.Stream {
		w.delta(`{"type":"signature_delta","signature":?}`, signature)
	} else {
		w.opened.signature = append(w.opened.signature, signature...)
	}
}

// input writes a piece of the open call's input.
func (w *message) input(piece rawjson.Text) {
	b := &w.opened
	if b.kind != callBlock {
		return
	}
	if !w.ask.Stream {
		b.text = append(b.text, piece.Inner()...)
		return
	}
	if b.input == noInput {
		switch text := rawjson.Trim(piece.Decoded()); {
		case len(text) == 0:
			return
		case text[0] == '{':
			b.input = objectInput
		case text[0] == 'n':
			b.input = nullInput
		default:
			b.input = rawInput
			w.delta(inputDelta, rawjson.Text(`"{\"_raw\":\""`))
		}
	}
	switch b.input {
	case objectInput:
		w.delta(inputDelta, piece)
	case rawInput:
		w.delta(inputDelta, form.CustomArgs(piece))
	default:
	}
}

const inputDelta = `{"type":"input_json_delta","partial_json":?}`

func (w *message) open(b block) {
	w.close()
	if before := w.before; before != nil {
		w.before = nil
		w.open(block{kind: thinkingBlock, of: b.of})
		w.sign(before)
		w.close()
	}
	w.opened = b
	if w.ask.Stream {
		w.begins("content_block_start")
		w.Out.Key("content_block")
		b.write(&w.Out, rawjson.Text(`""`), rawjson.Value("{}"))
		w.Out.EndEvent()
	}
}

func (w *message) close() {
	if w.opened.kind == thinkingBlock && !w.opened.signed {
		w.sign([]byte(form.Unsigned))
	}
	b := w.opened
	w.opened = block{}
	switch {
	case b.kind == noBlock:
		return
	case !w.ask.Stream:
		b.write(w.inContent(), rawjson.Wrap(b.text), nil)
		return
	case b.input == rawInput:
		w.delta(inputDelta, rawjson.Text(form.CustomCloses))
	}
	w.begins("content_block_stop")
	w.Out.EndEvent()
	w.index++
}

// inContent returns the output for the blocks of a whole message.
func (w *message) inContent() *form.Out {
	if w.content.Len() == 0 {
		w.content.BeginArray()
	}
	return &w.content
}

// write writes the block with a text, or with the input of a call. An absent input is read from the text.
func (b *block) write(out *form.Out, text rawjson.Text, input rawjson.Value) {
	switch b.kind {
	case textBlock:
		if b.citations.Len() > 0 {
			out.JSON(`{"type":"text","citations":[`)
			out.Raw(b.citations.Bytes())
			out.JSON(`],"text":?}`, text)
		} else {
			out.JSON(`{"type":"text","citations":null,"text":?}`, text)
		}
	case thinkingBlock:
		out.JSON(`{"type":"thinking","thinking":?,"signature":?}`, text, b.signature)
	default:
		if input == nil {
			input = form.ReadArguments(text)
		}
		out.JSON(`{"type":"tool_use","id":?,"name":?,"input":?}`, b.call.ID, b.call.Name, input)
	}
}

// delta writes the event of a delta of the open block, by its shape and the value in it.
func (w *message) delta(shape string, value any) {
	w.begins("content_block_delta")
	w.Out.Key("delta")
	w.Out.JSON(shape, value)
	w.Out.EndEvent()
}

// begins begins an event of the open block.
func (w *message) begins(event string) {
	w.begin()
	w.Out.Event(event)
	w.Out.KeyInt("index", int64(w.index))
}
