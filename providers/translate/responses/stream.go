package responses

import (
	"time"

	"modelrelay/providers/translate/form"
)

// NewWriter returns the writer of a client's answer: the events of a response, or the response.
func NewWriter(ask form.Ask) form.AnswerWriter {
	w := &writer{output: output{ask: ask}, id: newResponseID(), created: time.Now().Unix()}
	w.blocks = form.NewSequencer(w.event)
	return w
}

type writer struct {
	output
	blocks  *form.Sequencer
	id      string
	created int64
	counts  form.Counts
	summary []byte
	phase   phase
}

// phase is how far an answer has come.
type phase int

const (
	waiting phase = iota
	running
	over
)

// Write implements form.AnswerWriter.
func (w *writer) Write(event *form.Event) { w.blocks.Put(event) }

// event takes the next event in an order in which one block is open at a time.
func (w *writer) event(event *form.Event) {
	if w.phase == over || event.Choice != 0 {
		return
	}
	if w.ask.Compact && isContent(event.Kind) {
		w.summarize(event)
		return
	}
	switch event.Kind {
	case form.EventStart:
		w.start()
	case form.EventText:
		w.text(event, outputText)
	case form.EventRefusal:
		w.text(event, refusal)
	case form.EventSearch:
		w.search(event.Search)
	case form.EventCitation:
		w.cite(event)
	case form.EventThought:
		w.thought(event)
	case form.EventState:
		w.state(event)
	case form.EventCallBegin:
		w.beginCall(event)
	case form.EventCallArgs:
		w.arguments(event.Text)
	case form.EventCallEnd:
		w.closeItem()
	case form.EventCounts:
		w.counts = *event.Counts
	case form.EventPing:
		if w.ask.Stream {
			w.Out.Plain(": ping\n\n")
		}
	case form.EventStop:
		w.stop = event.Stop.Reason
		if !w.ask.Compact {
			w.closeItem()
		}
	case form.EventEnd:
		w.end()
	case form.EventFailed:
		w.fail(event.Fault)
	case form.EventMedia: // what else there is stands for the answer
	}
	if w.phase != over && len(w.written)+len(w.item.custom)+len(w.item.hidden)+len(w.item.logprobs) > form.MaxAnswer {
		w.fail(form.TooLong())
	}
}

func isContent(kind form.EventKind) bool {
	switch kind {
	case form.EventStart, form.EventCounts, form.EventPing, form.EventStop, form.EventEnd, form.EventFailed:
		return false
	}
	return true
}

// begin opens an event; false where the client wants no stream.
func (w *output) begin(name string) bool {
	if !w.ask.Stream {
		return false
	}
	w.Out.Plain("event: ")
	w.Out.Plain(name)
	w.Out.Plain("\ndata: ")
	w.Out.Begin()
	w.Out.KeyString("type", name)
	return true
}

// finish closes an event. The number is last, where a reader of the stream finds it whatever the answer says.
func (w *output) finish() {
	w.Out.KeyInt("sequence_number", w.number)
	w.number++
	w.Out.End()
	w.Out.Plain("\n\n")
}

// beginOf opens an event of the item that is open.
func (w *output) beginOf(name string) bool {
	if !w.begin(name) {
		return false
	}
	w.Out.KeyString("item_id", w.item.id)
	w.Out.KeyInt("output_index", int64(w.items-1))
	return true
}
