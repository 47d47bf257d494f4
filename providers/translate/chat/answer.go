package chat

import (
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// NewReader returns a reader of an upstream's chat completion, streamed or whole.
func NewReader() form.AnswerReader { return new(answer) }

type answer struct {
	form.Course

	choices []*choice
	counts  form.Counts
}

// choice is one answer of several.
type choice struct {
	index   int
	stop    form.Stop
	stopped bool // the upstream said why
	refused bool
	medium  bool
	next    int // block
	// said is the kind of the block of text that is open, block its number; what is no piece of text closes it.
	said  form.EventKind
	block int
	calls []*call
}

// call is a call that comes in pieces.
type call struct {
	block int
	// index is the upstream's, -1 where it gives none.
	index int64
	id    string
	// named: the call has begun. What is known of its input before that is held.
	named bool
	held  []byte
}

// Event implements form.AnswerReader.
func (a *answer) Event(_, data []byte, to []form.Event) []form.Event {
	value := rawjson.Trim(data)
	if a.Over {
		return to
	}
	if string(value) == "[DONE]" {
		if !a.Begun {
			return a.Fail(form.BrokenOff(), to)
		}
		return a.finish(to)
	}
	return a.take(value, "delta", to)
}

// Document implements form.AnswerReader.
func (a *answer) Document(document rawjson.Value, to []form.Event) []form.Event {
	if a.Over {
		return to
	}
	if to = a.take(document, "message", to); a.Over {
		return to
	}
	if len(a.choices) == 0 {
		return a.Fail(&providers.Fault{
			Kind: providers.Upstream, Message: "The upstream gave no answer.", Blame: providers.BlameChannel, Malformed: true,
		}, to)
	}
	return a.finish(to)
}

// End implements form.AnswerReader.
func (a *answer) End(to []form.Event) []form.Event {
	if a.Over {
		return to
	}
	if len(a.choices) == 0 || slices.ContainsFunc(a.choices, func(c *choice) bool { return !c.stopped }) {
		return a.Fail(form.BrokenOff(), to)
	}
	return a.finish(to)
}

// finish ends the answer: only now is it known that no counts follow.
func (a *answer) finish(to []form.Event) []form.Event {
	a.Over = true
	if len(a.choices) == 0 {
		a.choice(0)
	}
	for _, c := range a.choices {
		called := false
		for _, call := range c.calls {
			if call.named {
				called = true
				to = append(to, form.Event{Kind: form.EventCallEnd, Choice: c.index, Block: call.block})
			}
		}
		stop := c.stop
		if c.refused && (stop.Reason == form.StopEnd || stop.Reason == form.StopFiltered) {
			stop.Reason = form.StopRefusal
		}
		to = append(to, form.Event{Kind: form.EventStop, Choice: c.index, Stop: stop.WithCalls(called)})
	}
	return to
}

// take reads a chunk, whose choices have a delta, or a completion, whose choices have a message.
func (a *answer) take(value rawjson.Value, said string, to []form.Event) []form.Event {
	if !value.IsObject() {
		return to
	}
	var choices, usage rawjson.Value
	for name, member := range value.Members() {
		switch string(name.Decoded()) {
		case "choices":
			choices = member
		case "usage":
			usage = member
		case "error":
			if !member.Absent() {
				return a.Fail(form.OpenAIFault(member), to)
			}
		}
	}
	if choices.IsArray() || said == "delta" {
		to = a.Start(to)
	}
	for i, item := range choices.Items() {
		to = a.takeChoice(i, item, said, to)
	}
	return a.count(usage, to)
}

func (a *answer) takeChoice(i int, value rawjson.Value, said string, to []form.Event) []form.Event {
	var delta, finish, logprobs, usage rawjson.Value
	index := int64(i)
	for name, member := range value.Members() {
		switch string(name.Decoded()) {
		case "index":
			if n, ok := member.Int(); ok {
				index = n
			}
		case said:
			delta = member
		case "finish_reason":
			finish = member
		case "logprobs":
			logprobs = member.Get("content")
		case "usage": // of Moonshot, in its last chunk
			usage = member
		}
	}
	if index < 0 || index >= maxChoices {
		return to
	}
	c := a.choice(int(index))
	to = c.take(delta, logprobs, said == "message", to)
	if word := finish.Text(); !word.Empty() {
		c.stop, c.stopped = form.Stop{Reason: stopReason(word)}, true
	}
	return a.count(usage, to)
}

// maxChoices bounds the answers of one call; the vendor's bound is the same.
const maxChoices = 128

func (a *answer) choice(index int) *choice {
	for _, c := range a.choices {
		if c.index == index {
			return c
		}
	}
	c := &choice{index: index}
	a.choices = append(a.choices, c)
	return c
}

// stopReason reads why an answer ended. That it gave calls is known from the calls.
func stopReason(word rawjson.Text) form.StopReason {
	switch string(word.Decoded()) {
	case "stop", "tool_calls", "function_call":
		return form.StopEnd
	case "length":
		return form.StopMaxTokens
	case "content_filter":
		return form.StopFiltered
	}
	return form.StopOther
}

// take reads what a choice says next. A whole message has each call at once.
func (c *choice) take(delta, logprobs rawjson.Value, whole bool, to []form.Event) []form.Event {
	var content, refusal, thought, another, calls, old, annotations rawjson.Value
	for name, member := range delta.Members() {
		switch string(name.Decoded()) {
		case "content":
			content = member
		case "refusal":
			refusal = member
		case "reasoning_content": // of DeepSeek and those who follow it
			thought = member
		case "reasoning": // of OpenRouter, vLLM and Groq
			another = member
		case "tool_calls":
			calls = member
		case "function_call":
			old = member
		case "annotations":
			annotations = member
		case "audio", "images":
			c.medium = c.medium || member.Says()
		}
	}
	if thought.Text().Empty() {
		thought = another
	}
	to = c.say(form.EventThought, thought.Text(), nil, to)
	to = c.content(content, logprobs, to)
	for _, annotation := range annotations.Items() {
		cited := form.URLCitation(annotation.Get("url_citation"))
		to = append(to, form.Event{Kind: form.EventCitation, Choice: c.index, Block: c.block, Citation: cited})
	}
	if text := refusal.Text(); !text.Empty() {
		c.refused = true
		to = c.say(form.EventRefusal, text, nil, to)
	}
	for _, piece := range calls.Items() {
		to = c.piece(piece, whole, to)
	}
	if old.IsObject() {
		to = c.legacyPiece(old, to)
	}
	if c.medium {
		c.medium = false
		to = append(to, form.Event{Kind: form.EventMedia, Choice: c.index, Block: c.open()})
	}
	return to
}

// content reads a text, or the parts in which Mistral's models give what they think and say:
// https://docs.mistral.ai/capabilities/reasoning
func (c *choice) content(content, logprobs rawjson.Value, to []form.Event) []form.Event {
	if content.IsText() {
		return c.say(form.EventText, content.Text(), logprobs, to)
	}
	for _, part := range content.Items() {
		for _, thought := range part.Get("thinking").Items() {
			to = c.say(form.EventThought, thought.Get("text").Text(), nil, to)
		}
		to = c.say(form.EventText, part.Get("text").Text(), nil, to)
	}
	return to
}

func (c *choice) say(kind form.EventKind, text rawjson.Text, logprobs rawjson.Value, to []form.Event) []form.Event {
	if text.Empty() {
		return to
	}
	if c.said != kind {
		c.block = c.open()
		c.said = kind
	}
	event := form.Event{Kind: kind, Choice: c.index, Block: c.block, Text: text}
	if logprobs.IsArray() {
		event.Logprobs = logprobs
	}
	return append(to, event)
}

// open is the number of a block that begins.
func (c *choice) open() int {
	c.said = 0
	c.next++
	return c.next - 1
}

// piece reads a piece of a call. Custom tools are declared as functions, so that all calls are of functions.
func (c *choice) piece(piece rawjson.Value, whole bool, to []form.Event) []form.Event {
	id := piece.Get("id").Text()
	function := piece.Get("function")
	index, ok := piece.Get("index").Int()
	if !ok {
		index = -1
	}
	name := function.Get("name").Text()
	found := c.find(index, id, name, whole)
	if found == nil {
		found = &call{block: c.open(), index: index, id: id.String()}
		c.calls = append(c.calls, found)
	}
	return c.goOn(found, name, signature(piece), function.Get("arguments"), to)
}

// find is the call that a piece continues with, nil where it begins one. A repeated id or name begins none; another id and a name
// do, as imitators that give the index 0 to each call need it.
func (c *choice) find(index int64, id, name rawjson.Text, whole bool) *call {
	if whole {
		return nil
	}
	for _, call := range slices.Backward(c.calls) {
		switch {
		case index >= 0 && call.index == index:
			if !id.Empty() && !name.Empty() && call.named && !id.Is(call.id) {
				return nil
			}
			return call
		case index < 0 && (id.Empty() || id.Is(call.id)):
			return call
		}
	}
	return nil
}

// goOn gives what a piece adds to a call. The signature is in the piece that begins it.
func (c *choice) goOn(call *call, name, signature rawjson.Text, arguments rawjson.Value, to []form.Event) []form.Event {
	text := arguments.Text()
	if arguments.IsObject() {
		text = rawjson.Quote(string(arguments)) // of imitators
	}
	if !call.named {
		if name.Empty() {
			call.held = append(call.held, text.Inner()...)
			return to
		}
		call.named = true
		if call.id == "" {
			call.id = form.NewCallID()
		}
		if signature != nil {
			state := form.State{Kind: form.StateGemini, Data: signature.Inner()}
			to = append(to, form.Event{Kind: form.EventState, Choice: c.index, Block: call.block, State: state})
		}
		to = append(to, form.Event{
			Kind: form.EventCallBegin, Choice: c.index, Block: call.block, Call: form.Call{ID: call.id, Name: name.String()},
		})
		if call.held != nil {
			text = rawjson.Wrap(call.held, text.Inner())
			call.held = nil
		}
	}
	if text.Empty() {
		return to
	}
	return append(to, form.Event{Kind: form.EventCallArgs, Choice: c.index, Block: call.block, Text: text})
}

// legacyPiece reads a piece of the one call of the old kind.
func (c *choice) legacyPiece(piece rawjson.Value, to []form.Event) []form.Event {
	const legacy = -2
	name := piece.Get("name").Text()
	if len(c.calls) == 0 {
		c.calls = append(c.calls, &call{block: c.open(), index: legacy})
	}
	return c.goOn(c.calls[0], name, nil, piece.Get("arguments"), to)
}
