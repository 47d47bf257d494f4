package messages

import (
	"bytes"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// NewReader returns a reader of an upstream's message, streamed or whole.
func NewReader() form.AnswerReader { return new(answer) }

// answer reads one message. An index of a block is its position in the message; blocks of unknown kinds are skipped.
type answer struct {
	form.Course

	open        []openBlock
	next        int // block
	calls, text bool
	refused     bool // set before the text: the text is the refusal
	counts      usage
	stop        form.Stop
	sequence    []byte
	counted     form.Counts
	// queries are the search queries, by the ids of the searches.
	queries map[string]string
	// event and delta are the members of the current event and delta.
	event, delta rawjson.Object
}

// openBlock is a block between its beginning and its end.
type openBlock struct {
	index int64
	block int
	kind  form.EventKind // of its pieces
	// input is the input at the start of a call, signature that of a thought so far.
	input     []byte
	signature []byte
	// inPieces: the input of a search arrives in deltas.
	inPieces bool
	// cites are the pages that a text cites, search the id of a web search.
	cites  []form.Source
	search string
}

// Event implements form.AnswerReader.
func (a *answer) Event(name, data []byte, to []form.Event) []form.Event {
	event := rawjson.Trim(data)
	if a.Over || !event.IsObject() {
		return to
	}
	a.event = a.event.Read(event)
	kind := a.event.Get("type").Text().Decoded()
	if len(kind) == 0 {
		kind = name
	}
	index, _ := a.event.Get("index").Int()
	switch string(kind) {
	case "message_start":
		return a.count(a.event.Get("message").Get("usage"), a.Start(to))
	case "content_block_start":
		return a.blockStart(index, a.event.Get("content_block"), a.Start(to))
	case "content_block_delta":
		return a.blockDelta(index, a.event.Get("delta"), to)
	case "content_block_stop":
		return a.blockStop(index, to)
	case "message_delta":
		to = a.count(a.event.Get("usage"), a.Start(to))
		return a.stopped(a.event.Get("delta"), to)
	case "message_stop":
		return a.end(a.Start(to))
	case "ping":
		return append(to, form.Event{Kind: form.EventPing})
	case "error":
		return a.Fail(FaultOf(a.event.Get("error")), to)
	}
	return to
}

// Document implements form.AnswerReader.
func (a *answer) Document(document rawjson.Value, to []form.Event) []form.Event {
	content := document.Get("content")
	switch {
	case a.Over:
		return to
	case !document.Get("error").Absent() && document.Get("type").Text().Is("error"):
		return a.Fail(FaultOf(document.Get("error")), to)
	case !content.IsArray():
		return a.End(to)
	}
	to = a.count(document.Get("usage"), a.Start(to))
	a.refused = reasonOf(document.Get("stop_reason").Text()) == form.StopRefusal
	for i, block := range content.Items() {
		to = a.blockStop(int64(i), a.blockStart(int64(i), block, to))
	}
	return a.end(a.stopped(document, to))
}

func (a *answer) blockStart(index int64, content rawjson.Value, to []form.Event) []form.Event {
	b := openBlock{index: index, block: a.next}
	switch kind := content.Get("type").Text(); {
	case kind.Is("text"):
		b.kind = form.EventText
		if a.refused {
			b.kind = form.EventRefusal
		}
		for _, citation := range content.Get("citations").Items() {
			b.cite(citation)
		}
		if text := content.Get("text").Text(); !text.Empty() {
			a.text = true
			to = append(to, form.Event{Kind: b.kind, Block: b.block, Text: text})
		}
	case kind.Is("thinking"):
		b.kind = form.EventThought
		if text := content.Get("thinking").Text(); !text.Empty() {
			to = append(to, form.Event{Kind: b.kind, Block: b.block, Text: text})
		}
		b.signature = bytes.Clone(content.Get("signature").Text().Inner())
	case kind.Is("redacted_thinking"):
		b.kind = form.EventState
		state := form.State{Kind: form.StateRedacted, Data: content.Get("data").Text().Inner()}
		to = append(to, form.Event{Kind: b.kind, Block: b.block, State: state})
	case kind.Is("tool_use"):
		a.calls = true
		b.kind = form.EventCallArgs
		call := form.Call{ID: content.Get("id").Text().String(), Name: content.Get("name").Text().String()}
		to = append(to, form.Event{Kind: form.EventCallBegin, Block: b.block, Call: call})
		if input := content.Get("input"); input.IsSet() {
			b.input = bytes.Clone(input)
		}
	case kind.Is("server_tool_use") && content.Get("name").Text().Is(searchName):
		b.kind, b.search, b.input = form.EventSearch, content.Get("id").Text().String(), bytes.Clone(content.Get("input"))
		a.open = append(a.open, b)
		return to // its block does not belong to the answer
	case kind.Is("web_search_tool_result"):
		return append(to, form.Event{Kind: form.EventSearch, Search: a.found(content)})
	default: // of a tool that the vendor runs itself
		return to
	}
	a.next++
	a.open = append(a.open, b)
	return to
}

func (a *answer) blockDelta(index int64, delta rawjson.Value, to []form.Event) []form.Event {
	at := a.find(index)
	if at < 0 {
		return to
	}
	b := &a.open[at]
	a.delta = a.delta.Read(delta)
	var text rawjson.Text
	switch kind := a.delta.Get("type").Text(); {
	case kind.Is("text_delta") && b.kind == form.EventText:
		text = a.delta.Get("text").Text()
		a.text = a.text || !text.Empty()
	case kind.Is("thinking_delta") && b.kind == form.EventThought:
		text = a.delta.Get("thinking").Text()
	case kind.Is("input_json_delta") && b.kind == form.EventCallArgs:
		if text = a.delta.Get("partial_json").Text(); !text.Empty() {
			b.input = nil // the input at the start is a placeholder for the deltas
		}
	case kind.Is("input_json_delta") && b.kind == form.EventSearch:
		if !b.inPieces { // the input at the start is a placeholder for the deltas
			b.input, b.inPieces = nil, true
		}
		b.input = append(b.input, a.delta.Get("partial_json").Text().Decoded()...)
	case kind.Is("citations_delta") && b.kind == form.EventText:
		b.cite(a.delta.Get("citation"))
	case kind.Is("signature_delta") && b.kind == form.EventThought:
		b.signature = append(b.signature, a.delta.Get("signature").Text().Inner()...)
	}
	if text.Empty() {
		return to
	}
	return append(to, form.Event{Kind: b.kind, Block: b.block, Text: text})
}

func (a *answer) blockStop(index int64, to []form.Event) []form.Event {
	at := a.find(index)
	if at < 0 {
		return to
	}
	b := a.open[at]
	a.open = append(a.open[:at], a.open[at+1:]...)
	switch b.kind {
	case form.EventText, form.EventRefusal:
		for _, source := range b.cites {
			to = append(to, form.Event{Kind: form.EventCitation, Block: b.block, Citation: &form.Citation{Source: source, Unit: form.CiteBlock}})
		}
	case form.EventSearch:
		if rawjson.Valid(b.input) {
			if a.queries == nil {
				a.queries = make(map[string]string)
			}
			a.queries[b.search] = rawjson.Trim(b.input).Get("query").Text().String()
		}
	case form.EventThought:
		if len(b.signature) > 0 && string(b.signature) != form.Unsigned {
			state := form.State{Kind: form.StateAnthropic, Data: b.signature}
			to = append(to, form.Event{Kind: form.EventState, Block: b.block, State: state})
		}
	case form.EventCallArgs:
		if b.input != nil {
			to = append(to, form.Event{Kind: form.EventCallArgs, Block: b.block, Text: rawjson.Quote(string(b.input))})
		}
		to = append(to, form.Event{Kind: form.EventCallEnd, Block: b.block})
	}
	return to
}

func (b *openBlock) cite(citation rawjson.Value) {
	if source := form.SourceOf(citation); source.URL != "" {
		b.cites = append(b.cites, source)
	}
}

// found reads the result of a web search: pages, or an error instead.
func (a *answer) found(result rawjson.Value) *form.SearchStep {
	step := &form.SearchStep{ID: result.Get("tool_use_id").Text().String()}
	step.Query = a.queries[step.ID]
	for _, page := range result.Get("content").Items() {
		if source := form.SourceOf(page); source.URL != "" {
			step.Sources = append(step.Sources, source)
		}
	}
	return step
}

func (a *answer) find(index int64) int {
	for i := range a.open {
		if a.open[i].index == index {
			return i
		}
	}
	return -1
}

// stopped records why the message ended. The text of a refusal without a text is its explanation.
func (a *answer) stopped(delta rawjson.Value, to []form.Event) []form.Event {
	reason := delta.Get("stop_reason").Text()
	if reason == nil {
		return to
	}
	a.stop.Reason = reasonOf(reason)
	if sequence := delta.Get("stop_sequence").Text(); sequence != nil {
		a.sequence = append(a.sequence[:0], sequence...)
		a.stop.Sequence = rawjson.Text(a.sequence)
	}
	if explanation := delta.At("stop_details", "explanation").Text(); a.stop.Reason == form.StopRefusal && !a.text && !explanation.Empty() {
		to = append(to, form.Event{Kind: form.EventRefusal, Block: a.next, Text: explanation})
		a.next++
	}
	return to
}

// reasonOf reads a stop_reason. Stop.WithCalls adds StopCalls.
func reasonOf(reason rawjson.Text) form.StopReason {
	return form.StopReasonOf(reason, map[string]form.StopReason{
		"end_turn": form.StopEnd, "tool_use": form.StopEnd, "stop_sequence": form.StopSequence, "max_tokens": form.StopMaxTokens,
		"refusal": form.StopRefusal, "model_context_window_exceeded": form.StopContextFull, "pause_turn": form.StopPaused,
	})
}

func (a *answer) end(to []form.Event) []form.Event {
	for len(a.open) > 0 {
		to = a.blockStop(a.open[0].index, to)
	}
	a.Over = true
	return append(to, form.Event{Kind: form.EventStop, Stop: a.stop.WithCalls(a.calls)})
}

// count reads the counts. Later ones replace earlier ones.
func (a *answer) count(value rawjson.Value, to []form.Event) []form.Event {
	if !a.counts.read(value) {
		return to
	}
	a.counted = a.counts.counts()
	return append(to, form.Event{Kind: form.EventCounts, Counts: &a.counted})
}
