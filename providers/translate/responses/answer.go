package responses

import (
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// NewReader returns a reader of an upstream's response, streamed or whole.
func NewReader() form.AnswerReader { return new(answer) }

// answer reads one response. At the end of an item it returns only the content that the pieces did not have.
type answer struct {
	form.Course

	items          []readItem
	blocks         int // begun so far
	calls, refused bool
	event          rawjson.Object // the members of the current event
}

// readItem is an item of the response that has begun.
type readItem struct {
	index int64 // -1 if unknown
	id    string
	kind  form.EventKind // of its pieces; EventPing for an item without content
	ended bool
	// custom: the pieces of a call's input are text. begun: the first piece was returned.
	custom bool
	block  int
	// parts are those of a message or a thought.
	parts []readPart
	begun bool
}

// readPart is a part of an item that has begun.
type readPart struct {
	index int64
	open  bool // of the thought itself, not of its summary
	cited bool // its citations were returned in pieces
	block int
}

// Event implements form.AnswerReader.
func (a *answer) Event(name, data []byte, to []form.Event) []form.Event {
	event := rawjson.Trim(data)
	if a.Over || !event.IsObject() {
		return to
	}
	a.event = a.event.Read(event)
	p := pieceOf(a.event)
	kind := p.kind.Decoded()
	if len(kind) == 0 {
		kind = name
	}
	switch string(kind) {
	case "response.created", "response.in_progress", "response.queued":
		return a.Start(to)
	case "response.output_item.added":
		_, to = a.item(&p, a.Start(to))
		return to
	case "response.output_item.done":
		return a.endItem(&p, a.Start(to))
	case "response.output_text.delta":
		return a.text(&p, form.EventText, p.delta, a.Start(to))
	case "response.output_text.done":
		return a.rest(&p, form.EventText, p.text, a.Start(to))
	case "response.output_text.annotation.added":
		return a.cite(&p, event.Get("annotation"), a.Start(to))
	case "response.refusal.delta":
		return a.text(&p, form.EventRefusal, p.delta, a.Start(to))
	case "response.refusal.done":
		return a.rest(&p, form.EventRefusal, event.Get("refusal").Text(), a.Start(to))
	case "response.reasoning_summary_text.delta", "response.reasoning_text.delta":
		return a.text(&p, form.EventThought, p.delta, a.Start(to))
	case "response.reasoning_summary_text.done", "response.reasoning_text.done":
		return a.rest(&p, form.EventThought, p.text, a.Start(to))
	case "response.function_call_arguments.delta", "response.custom_tool_call_input.delta":
		return a.input(&p, p.delta, a.Start(to))
	case "response.completed", "response.incomplete", "response.failed", "response.cancelled":
		return a.end(event.Get("response"), a.Start(to))
	case "error":
		if inside := event.Get("error"); inside.IsObject() {
			event = inside
		}
		return a.Fail(form.OpenAIFault(event), to)
	case "keepalive":
		return append(to, form.Event{Kind: form.EventPing})
	}
	return to
}

// Document implements form.AnswerReader.
func (a *answer) Document(document rawjson.Value, to []form.Event) []form.Event {
	if a.Over {
		return to
	}
	if status := document.Get("status").Text(); !document.IsObject() || status == nil && !document.Get("output").IsArray() {
		if failed := document.Get("error"); failed.IsObject() {
			return a.Fail(form.OpenAIFault(failed), to)
		}
		return a.End(to)
	}
	return a.end(document, a.Start(to))
}

func (a *answer) end(response rawjson.Value, to []form.Event) []form.Event {
	status := response.Get("status").Text()
	switch {
	case status.Is(statusFailed), status.Is("cancelled"):
		return a.Fail(form.OpenAIFault(response.Get("error")), to)
	case status.Is(statusInProgress), status.Is("queued"): // it would have to be read again later
		return a.Fail(form.BrokenOff(), to)
	}
	for i, item := range response.Get("output").Items() {
		p := piece{item: item, id: item.Get("id").Text(), index: int64(i)}
		if known := a.find(&p); known == nil || !known.ended {
			to = a.endItem(&p, to)
		}
	}
	to = a.count(response.Get("usage"), to)
	stop := form.Stop{Reason: form.StopEnd}
	if reason := response.At("incomplete_details", "reason").Text(); status.Is(statusIncomplete) || !reason.Empty() {
		switch {
		case reason.Is(tooLong):
			stop.Reason = form.StopMaxTokens
		case reason.Is(filtered):
			stop.Reason = form.StopFiltered
		default:
			stop.Reason = form.StopOther
		}
	}
	if a.refused && (stop.Reason == form.StopEnd || stop.Reason == form.StopFiltered) {
		stop.Reason = form.StopRefusal
	}
	a.Over = true
	return append(to, form.Event{Kind: form.EventStop, Stop: stop.WithCalls(a.calls)})
}

func (a *answer) count(usage rawjson.Value, to []form.Event) []form.Event {
	if !usage.IsObject() {
		return to
	}
	counts := form.OpenAICounts(usage, "input_tokens", "output_tokens")
	return append(to, form.Event{Kind: form.EventCounts, Counts: &counts})
}
