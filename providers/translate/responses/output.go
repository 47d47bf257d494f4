package responses

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// itemKind is the kind of an item of the output.
type itemKind int

const (
	noItem itemKind = iota
	message
	reasoning
	functionCall
	customCall
	searchCall
	compaction
)

// partKind is the kind of a part of an item.
type partKind int

const (
	noPart partKind = iota
	outputText
	refusal
	summary
)

// item is the open item.
type item struct {
	kind itemKind
	id   string
	from int // its offset in written
	// The open part, and the offsets of the part and of its text in written.
	part     partKind
	block    int
	parts    int // begun so far
	partFrom int
	textFrom int
	logprobs []byte // of the part, without brackets
	// annotations are the elements of the part's list of citations, and their number.
	annotations form.Out
	citations   int64
	sealed      string // encrypted_content
	custom      []byte // the input of a custom tool so far, as the inside of a text of JSON
	hidden      []byte // the thought that is not shown, as a text of JSON without its last quote
}

// output writes the items of one answer. written has them in their form in the response, the last of them as far as it has arrived.
type output struct {
	form.Sending

	ask     form.Ask
	written []byte
	item    item
	items   int // begun so far
	number  int64
	stop    form.StopReason
}

func (w *output) keep(pieces ...string) {
	for _, piece := range pieces {
		w.written = append(w.written, piece...)
	}
}

// open begins an item with the known members. Further members are appended to written.
func (w *output) open(kind itemKind, prefix string) {
	w.closeItem()
	if w.items > 0 {
		w.keep(",")
	}
	w.items++
	w.item = item{kind: kind, id: form.NewID(prefix), from: len(w.written), logprobs: w.item.logprobs[:0]}
}

// added writes the event of an item that has begun: its part in written, closed with closing.
func (w *output) added(closing string) {
	if w.begin("response.output_item.added") {
		w.Out.KeyInt("output_index", int64(w.items-1))
		w.Out.KeyRaw("item", w.written[w.item.from:], []byte(closing))
		w.finish()
	}
}

func (w *output) text(event *form.Event, kind partKind) {
	if event.Text.Empty() {
		return
	}
	if w.item.kind != message {
		w.open(message, "msg_")
		w.keep(`{"type":"message","id":"`, w.item.id, `","role":"assistant","content":[`)
		w.added(`],"status":"in_progress"}`)
	}
	if w.item.part != kind || w.item.block != event.Block {
		w.closePart()
		w.openPart(kind, event.Block)
	}
	w.written = append(w.written, event.Text.Inner()...)
	var logprobs rawjson.Value
	if kind == outputText && event.Logprobs.IsArray() {
		logprobs = event.Logprobs
		if inside := rawjson.Trim(logprobs[1 : len(logprobs)-1]); len(inside) > 0 {
			if len(w.item.logprobs) > 0 {
				w.item.logprobs = append(w.item.logprobs, ',')
			}
			w.item.logprobs = append(w.item.logprobs, inside...)
		}
	}
	if w.beginOf(kind.words().delta) {
		w.Out.KeyInt("content_index", int64(w.item.parts-1))
		w.Out.Field("delta", event.Text)
		if logprobs != nil {
			w.Out.KeyRaw("logprobs", logprobs)
		} else if kind == outputText {
			w.Out.JSON(`"logprobs":[]`)
		}
		w.finish()
	}
}

func (w *output) thought(event *form.Event) {
	if event.Text.Empty() {
		return
	}
	if w.item.kind != reasoning || w.item.block != event.Block {
		w.openReasoning()
		if w.ask.ShowThought {
			w.openPart(summary, event.Block)
		}
		w.item.block = event.Block
	}
	if !w.ask.ShowThought {
		if w.item.hidden == nil {
			w.item.hidden = append(w.item.hidden, '"')
		}
		w.item.hidden = append(w.item.hidden, event.Text.Inner()...)
		return
	}
	w.written = append(w.written, event.Text.Inner()...)
	if w.beginOf(summary.words().delta) {
		w.Out.KeyInt("summary_index", 0)
		w.Out.Field("delta", event.Text)
		w.finish()
	}
}

func (w *output) openReasoning() {
	w.open(reasoning, "rs_")
	w.keep(`{"type":"reasoning","id":"`, w.item.id, `","summary":[`)
	w.added("]}")
}

func (w *output) search(step *form.SearchStep) {
	w.open(searchCall, "ws_")
	var action form.Out
	action.JSON(`{"type":"search","query":?,"sources":[`, step.Query)
	for _, source := range step.Sources {
		action.JSON(`{"type":"url","url":?}`, source.URL)
	}
	action.JSON("]}")
	w.keep(`{"type":"web_search_call","id":"`, w.item.id, `","action":`, string(action.Bytes()))
	w.added(`,"status":"` + statusInProgress + `"}`)
	for _, state := range [...]string{statusInProgress, "searching", statusCompleted} {
		if w.beginOf("response.web_search_call." + state) {
			w.finish()
		}
	}
	w.closeItem()
}

// cite writes a citation of the open text.
func (w *output) cite(event *form.Event) {
	if w.item.kind != message || w.item.part != outputText || w.item.block != event.Block {
		return
	}
	var citation form.Out
	citation.JSON(`{"type":"url_citation","start_index":?,"end_index":?,"url":?,"title":?}`,
		int64(event.Citation.From), int64(event.Citation.To), event.Citation.URL, event.Citation.Title)
	w.item.annotations.Raw(citation.Bytes())
	if w.beginOf("response.output_text.annotation.added") {
		w.Out.JSON(`"content_index":?,"annotation_index":?,"annotation":?`,
			int64(w.item.parts-1), w.item.citations, rawjson.Value(citation.Bytes()))
		w.finish()
	}
	w.item.citations++
}

// sealed returns the encrypted_content of the item that ends: its vendor's state, or the thought if it is not shown.
func (w *output) sealed() string {
	switch {
	case w.item.sealed != "":
		return w.item.sealed
	case w.item.hidden != nil:
		return form.Hide(append(w.item.hidden, '"'))
	}
	return form.Unsigned
}

// state writes a vendor's state: with the open thought, or in a separate item before the next one or after the text before.
func (w *output) state(event *form.Event) {
	state := &event.State
	ofOpen := w.item.kind == reasoning
	switch state.Kind {
	case form.StateAnthropic:
		ofOpen = ofOpen && w.item.block == event.Block
	case form.StateGeminiBefore, form.StateRedacted:
		ofOpen = false
	case form.StateGemini, form.StateOpenAI:
	}
	if !ofOpen {
		w.openReasoning()
	}
	if state.Kind == form.StateOpenAI {
		w.item.sealed = string(state.Data)
	} else {
		w.item.sealed = state.Envelope()
	}
	w.closeItem()
}

func (w *output) closeItem() {
	switch w.item.kind {
	case noItem:
		return
	case message:
		w.closePart()
		w.keep(`],"status":"`, w.messageStatus(), `"}`)
	case reasoning:
		w.closePart()
		w.keep(`],"encrypted_content":"`, w.sealed(), `"}`)
	case functionCall:
		w.closeFunction()
	case customCall:
		w.closeCustom()
	case compaction:
	case searchCall:
		w.keep(`,"status":"`, statusCompleted, `"}`)
	}
	if w.begin("response.output_item.done") {
		w.Out.KeyInt("output_index", int64(w.items-1))
		w.Out.Field("item", w.written[w.item.from:])
		w.finish()
	}
	w.item = item{logprobs: w.item.logprobs[:0]}
}

// messageStatus returns the status of a message that ends now: incomplete if the answer was cut off within it.
func (w *output) messageStatus() string {
	if status, _ := ending(w.stop); status == statusIncomplete {
		return statusIncomplete
	}
	return statusCompleted
}

// textSince closes the text whose inside begins at an offset of written, and returns it.
func (w *output) textSince(from int) rawjson.Text {
	w.keep(`"`)
	return rawjson.Text(w.written[from-1:])
}

// partWords has the names of a part's events, with a piece of its text and with the whole text, and the part's beginning up to its text.
type partWords struct{ delta, done, opens string }

func (k partKind) words() partWords {
	return [...]partWords{
		outputText: {"response.output_text.delta", "response.output_text.done", `{"type":"output_text","annotations":[],"text":"`},
		refusal:    {"response.refusal.delta", "response.refusal.done", `{"type":"refusal","refusal":"`},
		summary: {
			"response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", `{"type":"summary_text","text":"`,
		},
	}[k]
}

// place writes the position of a part.
func (w *output) place() {
	name := "content_index"
	if w.item.part == summary {
		name = "summary_index"
	}
	w.Out.KeyInt(name, int64(w.item.parts-1))
}

func (w *output) openPart(kind partKind, block int) {
	if w.item.parts > 0 {
		w.keep(",")
	}
	w.item.part, w.item.block, w.item.partFrom = kind, block, len(w.written)
	w.item.parts++
	w.item.logprobs = w.item.logprobs[:0]
	w.item.annotations.Reset(0)
	w.item.citations = 0
	if kind == outputText && w.ask.Search { // its citations are complete at its end
		w.keep(`{"type":"output_text","text":"`)
	} else {
		w.keep(kind.words().opens)
	}
	w.item.textFrom = len(w.written)
	name, closing := "response.content_part.added", `"}`
	switch kind {
	case summary:
		name = "response.reasoning_summary_part.added"
	case outputText:
		if closing = `","logprobs":[]}`; w.ask.Search {
			closing = `","logprobs":[],"annotations":[]}`
		}
	}
	if w.beginOf(name) {
		w.place()
		w.Out.KeyRaw("part", w.written[w.item.partFrom:], []byte(closing))
		w.finish()
	}
}

func (w *output) closePart() {
	kind := w.item.part
	if kind == noPart {
		return
	}
	text := w.textSince(w.item.textFrom)
	if w.beginOf(kind.words().done) {
		w.place()
		if kind == refusal {
			w.Out.Field("refusal", text)
		} else {
			w.Out.Field("text", text)
		}
		if kind == outputText {
			w.Out.KeyRaw("logprobs", []byte("["), w.item.logprobs, []byte("]"))
		}
		w.finish()
	}
	if kind == outputText {
		w.keep(`,"logprobs":[`)
		w.written = append(w.written, w.item.logprobs...)
		w.keep("]")
		if w.ask.Search {
			w.keep(`,"annotations":[`, string(w.item.annotations.Bytes()), "]")
		}
	}
	w.keep("}")
	name := "response.content_part.done"
	if kind == summary {
		name = "response.reasoning_summary_part.done"
	}
	if w.beginOf(name) {
		w.place()
		w.Out.Field("part", w.written[w.item.partFrom:])
		w.finish()
	}
	w.item.part = noPart
}
