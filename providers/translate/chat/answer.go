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
	// root and choice are the members of the current chunk and of its current choice.
	root, choice rawjson.Object
}

type choice struct {
	index   int
	stop    form.Stop
	stopped bool // the upstream sent the reason of its end
	refused bool
	next    int // block
	// textKind is the kind of the open block of text, block its number. Anything but a piece of text closes it.
	textKind form.EventKind
	block    int
	calls    []*call
	// delta are the members of the current piece.
	delta rawjson.Object
}

// call is a call that arrives in pieces.
type call struct {
	block int
	// index is the upstream's, -1 for none.
	index int64
	id    string
	// named: the call has begun. Before that, pieces of its input are held.
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

// finish ends the answer: only now are the counts final.
func (a *answer) finish(to []form.Event) []form.Event {
	a.Over = true
	if len(a.choices) == 0 {
		a.choiceAt(0)
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

// take reads a chunk or a completion. content is the member of its choices with the content: delta or message.
func (a *answer) take(value rawjson.Value, content string, to []form.Event) []form.Event {
	if !value.IsObject() {
		return to
	}
	a.root = a.root.Read(value)
	if failed := a.root.Get("error"); !failed.Absent() {
		return a.Fail(form.OpenAIFault(failed), to)
	}
	choices := a.root.Get("choices")
	if choices.IsArray() || content == "delta" {
		to = a.Start(to)
	}
	for i, item := range choices.Items() {
		to = a.takeChoice(i, item, content, to)
	}
	return a.count(a.root.Get("usage"), to)
}

func (a *answer) takeChoice(i int, value rawjson.Value, content string, to []form.Event) []form.Event {
	a.choice = a.choice.Read(value)
	index := int64(i)
	if n, ok := a.choice.Get("index").Int(); ok {
		index = n
	}
	if index < 0 || index >= maxChoices {
		return to
	}
	c := a.choiceAt(int(index))
	to = c.take(a.choice.Get(content), a.choice.Get("logprobs").Get("content"), content == "message", to)
	if word := a.choice.Get("finish_reason").Text(); !word.Empty() {
		c.stop, c.stopped = form.Stop{Reason: stopReason(word)}, true
	}
	return a.count(a.choice.Get("usage"), to) // of Moonshot, in its last chunk
}

// maxChoices bounds the answers of one call; the vendor's bound is the same.
const maxChoices = 128

func (a *answer) choiceAt(index int) *choice {
	for _, c := range a.choices {
		if c.index == index {
			return c
		}
	}
	c := &choice{index: index}
	a.choices = append(a.choices, c)
	return c
}

// stopReason reads the reason of an answer's end. Stop.WithCalls adds StopCalls.
func stopReason(word rawjson.Text) form.StopReason {
	return form.StopReasonOf(word, map[string]form.StopReason{
		"stop": form.StopEnd, "tool_calls": form.StopEnd, "function_call": form.StopEnd, "length": form.StopMaxTokens,
		"content_filter": form.StopFiltered,
	})
}

// take reads the next content of a choice. A whole message has each call in one piece.
func (c *choice) take(delta, logprobs rawjson.Value, whole bool, to []form.Event) []form.Event {
	c.delta = c.delta.Read(delta)
	thought := c.delta.Get("reasoning_content").Text() // of DeepSeek and compatible servers
	if thought.Empty() {
		thought = c.delta.Get("reasoning").Text() // of OpenRouter, vLLM and Groq
	}
	to = c.say(form.EventThought, thought, nil, to)
	to = c.content(c.delta.Get("content"), logprobs, to)
	for _, annotation := range c.delta.Get("annotations").Items() {
		cited := form.URLCitation(annotation.Get("url_citation"))
		to = append(to, form.Event{Kind: form.EventCitation, Choice: c.index, Block: c.block, Citation: cited})
	}
	if text := c.delta.Get("refusal").Text(); !text.Empty() {
		c.refused = true
		to = c.say(form.EventRefusal, text, nil, to)
	}
	for _, piece := range c.delta.Get("tool_calls").Items() {
		to = c.piece(piece, whole, to)
	}
	if old := c.delta.Get("function_call"); old.IsObject() {
		to = c.legacyPiece(old, to)
	}
	if c.delta.Get("audio").IsSet() || c.delta.Get("images").IsSet() {
		to = append(to, form.Event{Kind: form.EventMedia, Choice: c.index, Block: c.open()})
	}
	return to
}

// content reads a text, or the parts with thoughts and text of Mistral's models: https://docs.mistral.ai/capabilities/reasoning
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
	if c.textKind != kind {
		c.block = c.open()
		c.textKind = kind
	}
	event := form.Event{Kind: kind, Choice: c.index, Block: c.block, Text: text}
	if logprobs.IsArray() {
		event.Logprobs = logprobs
	}
	return append(to, event)
}

// open begins a block and returns its number.
func (c *choice) open() int {
	c.textKind = 0
	c.next++
	return c.next - 1
}

// piece reads a piece of a call. Custom tools are declared as functions, so all calls are of functions.
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
	return c.extend(found, name, signature(piece), function.Get("arguments"), to)
}

// find returns the call that a piece continues, nil if it begins one. A repeated id or name does not begin one. A new id with a name does,
// because some compatible servers send the index 0 for each call.
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

// extend appends the events of a piece of a call. The signature is in the first piece.
func (c *choice) extend(call *call, name, signature rawjson.Text, arguments rawjson.Value, to []form.Event) []form.Event {
	text := arguments.Text()
	if arguments.IsObject() {
		text = rawjson.Quote(string(arguments)) // of some compatible servers
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

// legacyPiece reads a piece of the only call in the old form.
func (c *choice) legacyPiece(piece rawjson.Value, to []form.Event) []form.Event {
	const legacy = -2
	name := piece.Get("name").Text()
	if len(c.calls) == 0 {
		c.calls = append(c.calls, &call{block: c.open(), index: legacy})
	}
	return c.extend(c.calls[0], name, nil, piece.Get("arguments"), to)
}
