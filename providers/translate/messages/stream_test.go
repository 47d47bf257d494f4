package messages_test

import (
	"bytes"
	"fmt"
	"regexp"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/messages"
	"modelrelay/providers/translate/translatetest"
)

// Events of answers, for tests.

func start() form.Event { return form.Event{Kind: form.EventStart} }

func text(block int, text string) form.Event {
	return form.Event{Kind: form.EventText, Block: block, Text: rawjson.Quote(text)}
}

func thinks(block int, text string) form.Event {
	return form.Event{Kind: form.EventThought, Block: block, Text: rawjson.Quote(text)}
}

func begin(block int, id, name string) form.Event {
	return form.Event{Kind: form.EventCallBegin, Block: block, Call: form.Call{ID: id, Name: name}}
}

func args(block int, piece string) form.Event {
	return form.Event{Kind: form.EventCallArgs, Block: block, Text: rawjson.Quote(piece)}
}

func end(block int) form.Event { return form.Event{Kind: form.EventCallEnd, Block: block} }

func state(block int, kind form.StateKind, data string) form.Event {
	return form.Event{Kind: form.EventState, Block: block, State: form.State{Kind: kind, Data: []byte(data)}}
}

func counts(c form.Counts) form.Event { return form.Event{Kind: form.EventCounts, Counts: &c} }

func stop(reason form.StopReason) form.Event {
	return form.Event{Kind: form.EventStop, Stop: form.Stop{Reason: reason}}
}

// writeAnswer writes events, each of which comes alone, and what they point to changes behind them.
func writeAnswer(ask form.Ask, events []form.Event) []byte {
	writer := messages.NewWriter(ask)
	var out []byte
	for _, event := range append(events, form.Event{Kind: form.EventEnd}) {
		event.Text, event.State.Data = bytes.Clone(event.Text), bytes.Clone(event.State.Data)
		event.Stop.Sequence = bytes.Clone(event.Stop.Sequence)
		writer.Write(&event)
		clear(event.Text)
		clear(event.State.Data)
		clear(event.Stop.Sequence)
		out = append(out, writer.Take()...)
	}
	return out
}

var answerID = regexp.MustCompile(`msg_[0-9A-Za-z]{24}`)

func TestWriterAnswers(t *testing.T) {
	t.Parallel()
	tests := map[string]struct {
		ask    form.Ask
		events []form.Event
	}{
		"plain": {events: []form.Event{
			start(),
			{Kind: form.EventPing},
			text(0, "Hel"), text(0, ""), text(0, "lo \"😀\"\n"),
			counts(form.Counts{Input: 100, Read: 60, Write: 30, Write1h: 10, Output: 20, Reasoning: 5}), stop(form.StopEnd),
		}},
		"nothing": {ask: form.Ask{Input: 17}, events: []form.Event{start(), text(0, ""), thinks(1, ""), stop(form.StopEnd)}},
		"sequence": {events: []form.Event{
			start(), text(0, "a"), {Kind: form.EventStop, Stop: form.Stop{Reason: form.StopSequence, Sequence: rawjson.Quote("END")}},
		}},
		"blocks": {events: []form.Event{
			start(), thinks(0, "hm"), text(1, "one"), text(2, "two"), begin(3, "call_1", "f"), args(3, `{"a"`), args(3, `:1}`), end(3),
			text(4, "three"),
			begin(5, "call_2", "g"), end(5), stop(form.StopCalls),
		}},
		// QuantumNous/new-api #6394, ls1intum/edutelligence #923, BerriAI/litellm #15315: inputs of parallel calls that come in turns.
		"turns": {events: []form.Event{
			start(), begin(0, "a", "f"), begin(1, "b", "g"), args(0, `{"x":`), args(1, `{"y":"`), args(0, `"}"}`), args(1, `{"}`), end(0), end(1),
			stop(form.StopCalls),
		}},
		"state of Gemini": {events: []form.Event{
			start(), thinks(0, "summary"), state(1, form.StateGemini, "s1"), begin(1, "a", "f"), args(1, `{"a":1}`), end(1),
			state(2, form.StateGemini, "s2"), begin(2, "b", "f"), end(2), stop(form.StopCalls),
		}},
		"state of Gemini's text": {events: []form.Event{start(), text(0, "x"), state(1, form.StateGeminiBefore, "s"), stop(form.StopEnd)}},
		"state of Gemini's text before a call": {events: []form.Event{
			start(), text(0, "x"), state(1, form.StateGeminiBefore, "s"), begin(2, "b", "f"), end(2), stop(form.StopCalls),
		}},
		"state of OpenAI": {events: []form.Event{
			start(), thinks(0, "a"),
			{Kind: form.EventState, State: form.State{Kind: form.StateOpenAI, Data: []byte("e1"), ID: "rs_1"}},
			{Kind: form.EventState, Block: 1, State: form.State{Kind: form.StateOpenAI, Data: []byte("e2"), ID: "rs_2"}},
			text(2, "b"), stop(form.StopEnd),
		}},
		"own state": {events: []form.Event{
			start(), thinks(0, "a"), state(0, form.StateAnthropic, "s=="), state(1, form.StateAnthropic, "t=="), state(2, form.StateRedacted, "r=="),
			text(3, "b"), stop(form.StopEnd),
		}},
		"hidden": {ask: form.Ask{ShowThought: false}, events: []form.Event{
			start(), thinks(0, "secret"), state(1, form.StateGemini, "s"), begin(1, "a", "f"), end(1), stop(form.StopCalls),
		}},
		"refusal": {events: []form.Event{start(), {Kind: form.EventRefusal, Text: rawjson.Quote("No.")}, stop(form.StopEnd)}},
		// What is no object is in one.
		"inputs": {events: []form.Event{
			start(), begin(0, "a", "f"), args(0, " "), args(0, "\n"), end(0), begin(1, "b", "f"), args(1, "nu"), args(1, "ll"), end(1),
			begin(2, "c", "f"), args(2, "ls \""), args(2, "-l\""), end(2), stop(form.StopCalls),
		}},
		"several choices": {events: []form.Event{
			start(), text(0, "a"),
			{Kind: form.EventText, Choice: 1, Text: rawjson.Quote("b")},
			stop(form.StopEnd),
			{Kind: form.EventStop, Choice: 1, Stop: form.Stop{Reason: form.StopMaxTokens}},
		}},
		"counts of an upstream that counts oddly": {events: []form.Event{
			start(), text(0, "a"), counts(form.Counts{Input: 5, Read: 7}),
			stop(form.StopEnd),
		}},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			test.ask.Model, test.ask.ShowThought = "public", name != "hidden"
			document := writeAnswer(test.ask, slices.Clone(test.events))
			test.ask.Stream = true
			stream := writeAnswer(test.ask, test.events)
			translatetest.CheckMessages(t, stream)
			for _, ids := range [][]string{answerID.FindAllString(string(stream), -1), answerID.FindAllString(string(document), -1)} {
				if len(ids) != 1 {
					t.Errorf("%d ids of the message", len(ids))
				}
			}
			file := strings.NewReplacer(" ", "-", "'", "").Replace(name)
			golden(t, "stream/"+file+".sse", string(answerID.ReplaceAll(stream, []byte("msg_ID"))))
			golden(t, "stream/"+file+".json", pretty(t, answerID.ReplaceAll(document, []byte("msg_ID"))))

			var a, b []string
			readStream(stream, func(e *form.Event) { a = append(a, show(e)) })
			readDocument(document, func(e *form.Event) { b = append(b, showStreamed(e)) })
			if a, b = joined(a), joined(b); !slices.Equal(a, b) {
				t.Errorf("streamed\n%s\nwhole\n%s", strings.Join(a, "\n"), strings.Join(b, "\n"))
			}
		})
	}
}

func TestWriterStops(t *testing.T) {
	t.Parallel()
	for reason, want := range map[form.StopReason]string{
		form.StopEnd: "end_turn", form.StopSequence: "stop_sequence", form.StopMaxTokens: "max_tokens", form.StopRefusal: "refusal",
		form.StopFiltered: "refusal", form.StopContextFull: "model_context_window_exceeded", form.StopPaused: "pause_turn",
		form.StopOther: "end_turn", form.StopCalls: "tool_use",
	} {
		document := rawjson.Value(writeAnswer(form.Ask{}, []form.Event{start(), stop(reason)}))
		if got := document.Get("stop_reason").Text().String(); got != want {
			t.Errorf("%d: got %s, want %s", reason, got, want)
		}
	}
}

// TestWriterStarts: the first bytes are sent with the upstream's first event. Their usage is the known one, or else the estimate.
func TestWriterStarts(t *testing.T) {
	t.Parallel()
	first := func(events ...form.Event) rawjson.Value {
		writer := messages.NewWriter(form.Ask{Stream: true, Input: 42})
		for _, event := range events {
			writer.Write(&event)
		}
		taken := eventsOf(writer.Take())
		if len(taken) != 2 || string(taken[0][0]) != "message_start" || string(taken[1][0]) != "ping" || writer.Take() != nil {
			t.Errorf("got %s", taken)
		}
		return rawjson.Value(taken[0][1]).At("message", "usage")
	}
	if got := string(first(start()).Get("input_tokens")); got != "42" {
		t.Errorf("estimate: got %s", got)
	}
	usage := first(start(), counts(form.Counts{Input: 9, Read: 4, Write: 2}))
	if got := fmt.Sprintf("%s %s %s", usage.Get("input_tokens"), usage.Get("cache_read_input_tokens"),
		usage.Get("cache_creation_input_tokens")); got != "3 4 2" {
		t.Errorf("counts: got %s", got)
	}
}

func TestWriterFails(t *testing.T) {
	t.Parallel()
	fault := &providers.Fault{Kind: providers.Overloaded}
	events := []form.Event{start(), text(0, "a"), {Kind: form.EventFailed, Fault: fault}}
	stream := writeAnswer(form.Ask{Stream: true, Model: "m"}, events)
	if bytes.Contains(stream, []byte("message_stop")) || bytes.Contains(stream, []byte("error")) {
		t.Errorf("behind the failure: %s", stream)
	}
	translatetest.CheckMessages(t, append(stream, "event: error\ndata: {\"type\":\"error\",\"error\":{}}\n\n"...))
	if document := writeAnswer(form.Ask{}, events); len(document) > 0 {
		t.Errorf("a document in spite of the failure: %s", document)
	}
}

// TestWriterGivesUp: the size of a call that waits for the end of another one is bounded.
func TestWriterGivesUp(t *testing.T) {
	t.Parallel()
	writer := messages.NewWriter(form.Ask{Stream: true, Model: "m"})
	piece := rawjson.Quote(strings.Repeat("x", 1<<20))
	events := []form.Event{start(), begin(0, "a", "f"), args(0, "{"), begin(1, "b", "g")}
	for range 5 {
		events = append(events, form.Event{Kind: form.EventCallArgs, Block: 1, Text: piece})
	}
	for i := range events {
		writer.Write(&events[i])
	}
	if writer.Fault() == nil {
		t.Error("it goes on")
	}
	writer = messages.NewWriter(form.Ask{})
	events = []form.Event{start()}
	for range 17 {
		events = append(events, form.Event{Kind: form.EventText, Text: piece})
	}
	for i := range events {
		writer.Write(&events[i])
	}
	if writer.Fault() == nil {
		t.Error("a whole message goes on")
	}
}

// TestWriterAllocates: a text event of a stream costs no memory in the steady state.
func TestWriterAllocates(t *testing.T) {
	writer := messages.NewWriter(form.Ask{Stream: true, Model: "m"})
	events := []form.Event{start(), text(0, "some words of an answer")}
	writer.Write(&events[0])
	if n := testing.AllocsPerRun(100, func() {
		writer.Write(&events[1])
		writer.Take()
	}); n > 0 {
		t.Errorf("writing: %v allocations", n)
	}
	reader := messages.NewReader()
	read := make([]form.Event, 0, 4)
	reader.Event(nil, []byte(`{"type":"content_block_start","index":0,"content_block":{"type":"text","text":""}}`), read)
	data := []byte(`{"type":"content_block_delta","index":0,"delta":{"type":"text_delta","text":"some words of an answer"}}`)
	name := []byte("content_block_delta")
	if n := testing.AllocsPerRun(100, func() { reader.Event(name, data, read) }); n > 0 {
		t.Errorf("reading: %v allocations", n)
	}
}
