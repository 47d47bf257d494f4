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

// phase is the progress of an answer.
type phase int

const (
	waiting phase = iota
	running
	over
)

// Write implements form.AnswerWriter.
func (w *writer) Write(event *form.Event) { w.blocks.Put(event) }

// event writes the next event. One block is open at a time.
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
	case form.EventMedia: // the rest is the answer
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

// begin opens an event. It reports false if the client does not request a stream.
func (w *output) begin(name string) bool {
	if !w.ask.Stream {
		return false
	}
	w.Out.Event(name)
	return true
}

// finish closes an event. Its number is the last member, so that a reader of the stream finds it independent of the content.
func (w *output) finish() {
	w.Out.KeyInt("sequence_number", w.number)
	w.number++
	w.Out.EndEvent()
}

// send writes an event with the given members, if the client requests a stream.
func (w *output) send(name, members string, values ...any) {
	if w.begin(name) {
		w.Out.JSON(members, values...)
		w.finish()
	}
}

// sendOf is send of an event of the open item.
func (w *output) sendOf(name, members string, values ...any) {
	if w.begin(name) {
		w.Out.JSON(`"item_id":?,"output_index":?`, w.item.id, int64(w.items-1))
		w.Out.JSON(members, values...)
		w.finish()
	}
}

// sendPart is send of an event of the open part.
func (w *output) sendPart(name, members string, values ...any) {
	if w.begin(name) {
		w.Out.JSON(`"item_id":?,"output_index":?`, w.item.id, int64(w.items-1))
		w.Out.KeyInt(w.item.part.words().index, int64(w.item.parts-1))
		w.Out.JSON(members, values...)
		w.finish()
	}
}
