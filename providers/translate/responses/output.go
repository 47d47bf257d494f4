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
	item := rawjson.Value(string(w.written[w.item.from:]) + closing)
	w.send("response.output_item.added", `"output_index":?,"item":?`, int64(w.items-1), item)
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
	w.piece(event.Text, event.Logprobs)
}

// piece writes a piece of the open part's text, with the probabilities of an outputText.
func (w *output) piece(text rawjson.Text, logprobs rawjson.Value) {
	w.written = append(w.written, text.Inner()...)
	delta := w.item.part.words().delta
	switch {
	case w.item.part != outputText:
		w.sendPart(delta, `"delta":?`, text)
	case !logprobs.IsArray():
		w.sendPart(delta, `"delta":?,"logprobs":[]`, text)
	default:
		if inside := rawjson.Trim(logprobs[1 : len(logprobs)-1]); len(inside) > 0 {
			if len(w.item.logprobs) > 0 {
				w.item.logprobs = append(w.item.logprobs, ',')
			}
			w.item.logprobs = append(w.item.logprobs, inside...)
		}
		w.sendPart(delta, `"delta":?,"logprobs":?`, text, logprobs)
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
	w.piece(event.Text, nil)
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
		w.sendOf("response.web_search_call."+state, "")
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
	w.sendPart("response.output_text.annotation.added", `"annotation_index":?,"annotation":?`,
		w.item.citations, rawjson.Value(citation.Bytes()))
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
	case functionCall, customCall:
		w.closeCall()
	case compaction:
	case searchCall:
		w.keep(`,"status":"`, statusCompleted, `"}`)
	}
	w.send("response.output_item.done", `"output_index":?,"item":?`, int64(w.items-1), rawjson.Value(w.written[w.item.from:]))
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

// partWords has the words of a part: its events with a piece of its text and with the whole text, the beginning of the names of its own
// events, the members with its index and its text, and its beginning up to its text.
type partWords struct{ delta, done, part, index, text, opens string }

func (k partKind) words() partWords {
	return [...]partWords{
		outputText: {
			"response.output_text.delta", "response.output_text.done", "response.content_part", "content_index", "text",
			`{"type":"output_text","annotations":[],"text":"`,
		},
		refusal: {
			"response.refusal.delta", "response.refusal.done", "response.content_part", "content_index", "refusal",
			`{"type":"refusal","refusal":"`,
		},
		summary: {
			"response.reasoning_summary_text.delta", "response.reasoning_summary_text.done", "response.reasoning_summary_part",
			"summary_index", "text", `{"type":"summary_text","text":"`,
		},
	}[k]
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
	closing := `"}`
	if kind == outputText {
		if closing = `","logprobs":[]}`; w.ask.Search {
			closing = `","logprobs":[],"annotations":[]}`
		}
	}
	w.sendPart(kind.words().part+".added", `"part":?`, rawjson.Value(string(w.written[w.item.partFrom:])+closing))
}

func (w *output) closePart() {
	if w.item.part == noPart {
		return
	}
	words, text := w.item.part.words(), w.textSince(w.item.textFrom)
	if w.item.part == outputText {
		logprobs := "[" + string(w.item.logprobs) + "]"
		w.sendPart(words.done, `"text":?,"logprobs":?`, text, rawjson.Value(logprobs))
		w.keep(`,"logprobs":`, logprobs)
		if w.ask.Search {
			w.keep(`,"annotations":[`, string(w.item.annotations.Bytes()), "]")
		}
	} else {
		w.sendPart(words.done, `"`+words.text+`":?`, text)
	}
	w.keep("}")
	w.sendPart(words.part+".done", `"part":?`, rawjson.Value(w.written[w.item.partFrom:]))
	w.item.part = noPart
}
