package gemini

import (
	"cmp"
	"slices"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// NewWriter returns a writer of the client's answer: server-sent events, the elements of one JSON array, or one document. The API sends
// complete calls, so the writer holds a call until its input is complete.
func NewWriter(ask form.Ask) form.AnswerWriter {
	w := &writer{ask: ask, id: form.NewID("")}
	w.order = form.NewSequencer(w.take)
	return w
}

type writer struct {
	form.Sending

	ask     form.Ask
	id      string
	order   *form.Sequencer
	answers []*answer
	counts  form.Counts
	counted bool
	begun   bool // of an array: its first element was written
	over    bool // nothing more is written
}

type answer struct {
	index int
	// states are those of other vendors. They are written on the first call, otherwise at the end. own is Google's signature of the next part.
	states []form.State
	own    []byte
	call   form.Call
	input  []byte
	// parts are those of a document, open the kind of the part that is not written yet, text its text.
	parts  form.Out
	open   form.EventKind
	text   []byte
	reason string
	ground ground
}

// ground is the search of an answer.
type ground struct {
	queries  []string
	pages    []form.Source
	supports []form.Citation
}

// page adds a page to the list and returns its index. OpenAI's searches have no titles; those of cited pages are in the citations.
func (g *ground) page(source form.Source) int {
	for i := range g.pages {
		if page := &g.pages[i]; page.URL == source.URL {
			page.Title = cmp.Or(page.Title, source.Title)
			return i
		}
	}
	g.pages = append(g.pages, source)
	return len(g.pages) - 1
}

// Write implements form.AnswerWriter.
func (w *writer) Write(event *form.Event) {
	switch {
	case w.over:
	case event.Kind == form.EventEnd:
		w.end()
	default:
		w.order.Put(event)
	}
}

// take writes the events, ordered by the Sequencer.
func (w *writer) take(event *form.Event) {
	switch event.Kind {
	case form.EventCounts:
		w.counts, w.counted = *event.Counts, true
		return
	case form.EventFailed:
		w.Failed(event.Fault)
		w.over = true // the caller writes the error itself, in the client's format
		return
	case form.EventStart, form.EventPing, form.EventMedia, form.EventEnd:
		return
	}
	a := w.answer(event.Choice)
	switch event.Kind {
	case form.EventText, form.EventRefusal:
		w.say(a, form.EventText, event.Text)
	case form.EventThought:
		if w.ask.ShowThought {
			w.say(a, form.EventThought, event.Text)
		}
	case form.EventSearch:
		a.ground.queries = append(a.ground.queries, event.Search.Query)
		for _, source := range event.Search.Sources {
			a.ground.page(source)
		}
	case form.EventCitation:
		a.ground.supports = append(a.ground.supports, *event.Citation)
	case form.EventState:
		w.state(a, &event.State)
	case form.EventCallBegin:
		a.call, a.input = event.Call, a.input[:0]
	case form.EventCallArgs:
		a.input, _ = jsontext.AppendUnquote(a.input, []byte(event.Text)) // a lone surrogate is in a string of the input
		if len(a.input) >= form.MaxCall {
			w.Failed(form.CallsTooLong())
			w.over = true
		}
	case form.EventCallEnd:
		w.called(a)
	case form.EventStop:
		w.stop(a, event.Stop)
	}
	held := 0
	for _, a := range w.answers { // a stream holds none of it
		held += a.parts.Len() + len(a.text)
	}
	if !w.over && held > form.MaxAnswer {
		w.Failed(form.TooLong())
		w.over = true
	}
}

func (w *writer) answer(index int) *answer {
	for _, a := range w.answers {
		if a.index == index {
			return a
		}
	}
	a := &answer{index: index, open: -1}
	w.answers = append(w.answers, a)
	return a
}

// state keeps a vendor's state for its part. Google's signature of a text that was already sent is a part without text.
func (w *writer) state(a *answer, state *form.State) {
	switch state.Kind {
	case form.StateGemini:
		a.close()
		a.own = slices.Clone(state.Data)
	case form.StateGeminiBefore:
		w.signed(a, state.Data)
	default:
		a.states = append(a.states, form.State{
			Kind: state.Kind, Data: slices.Clone(state.Data), Text: slices.Clone(state.Text), ID: state.ID,
		})
	}
}

// signed writes a part with only a signature.
func (w *writer) signed(a *answer, signature []byte) {
	w.part(a, `{"text":"","thoughtSignature":?}`, signature)
}

// say writes a piece of a text or a thought: a separate part in a stream, a piece of a part in a document.
func (w *writer) say(a *answer, kind form.EventKind, text rawjson.Text) {
	if w.ask.Stream {
		w.begin()
		a.spoken(&w.Out, kind, text.Inner())
		w.finish(a)
		return
	}
	if a.open != kind {
		a.close()
		a.open = kind
	}
	a.text = append(a.text, text.Inner()...)
}

// spoken writes a part with a text or a thought.
func (a *answer) spoken(out *form.Out, kind form.EventKind, text []byte) {
	switch {
	case kind == form.EventThought:
		out.JSON(`{"text":?,"thought":true}`, text)
	case a.own != nil:
		out.JSON(`{"text":?,"thoughtSignature":?}`, text, a.own)
		a.own = nil
	default:
		out.JSON(`{"text":?}`, text)
	}
}

// close writes the open part of a document.
func (a *answer) close() {
	if a.open >= 0 {
		a.spoken(&a.parts, a.open, a.text)
		a.open, a.text = -1, a.text[:0]
	}
}

// part writes a separate part of a shape.
func (w *writer) part(a *answer, shape string, values ...any) {
	if !w.ask.Stream {
		a.close()
		a.parts.JSON(shape, values...)
		return
	}
	w.begin()
	w.Out.JSON(shape, values...)
	w.finish(a)
}

func (w *writer) called(a *answer) {
	input := rawjson.Trim(a.input)
	if !input.IsObject() || !rawjson.Valid(input) {
		input = form.ReadArguments(rawjson.Quote(string(a.input)))
	}
	a.close()
	const unsigned = `{"functionCall":{"id":?,"name":?,"args":?}}`
	const signed = `{"functionCall":{"id":?,"name":?,"args":?},"thoughtSignature":?}`
	switch {
	case a.own != nil:
		w.part(a, signed, a.call.ID, a.call.Name, input, a.own)
		a.own = nil
	case len(a.states) > 0:
		w.part(a, signed, a.call.ID, a.call.Name, input, seal(a.states))
		a.states = nil
	default:
		w.part(a, unsigned, a.call.ID, a.call.Name, input)
	}
}

// stop ends a candidate. State without a call becomes an empty thought.
func (w *writer) stop(a *answer, stop form.Stop) {
	a.close()
	if len(a.states) > 0 {
		w.part(a, `{"text":"","thought":true,"thoughtSignature":?}`, seal(a.states))
		a.states = nil
	}
	if a.own != nil {
		w.signed(a, a.own)
	}
	a.reason = finishReason(stop.Reason)
	if w.ask.Stream { // SDKs treat a piece without parts as an invalid answer, and the vendor also sends an empty text here
		w.part(a, `{"text":""}`)
	}
}

func finishReason(reason form.StopReason) string {
	return [...]string{
		form.StopEnd: "STOP", form.StopSequence: "STOP", form.StopMaxTokens: "MAX_TOKENS", form.StopCalls: "STOP",
		form.StopRefusal: "SAFETY", form.StopFiltered: "SAFETY", form.StopContextFull: "MAX_TOKENS", form.StopPaused: "MAX_TOKENS",
		form.StopOther: "OTHER",
	}[reason]
}
