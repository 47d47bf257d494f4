package gemini_test

import (
	"bytes"
	"encoding/base64"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
	"modelrelay/providers/translate/translatetest"
)

// answerOf writes events, and takes what is to be sent after each.
func answerOf(ask form.Ask, events ...form.Event) []byte {
	w := gemini.NewWriter(ask)
	var answer []byte
	for i := range events {
		w.Write(&events[i])
		answer = append(answer, w.Take()...)
	}
	w.Write(&form.Event{Kind: form.EventEnd})
	return append(answer, w.Take()...)
}

// pieces of events.
func text(block int, s string) form.Event {
	return form.Event{Kind: form.EventText, Block: block, Text: rawjson.Quote(s)}
}

func thought(block int, s string) form.Event {
	return form.Event{Kind: form.EventThought, Block: block, Text: rawjson.Quote(s)}
}

func state(block int, s form.State) form.Event {
	return form.Event{Kind: form.EventState, Block: block, State: s}
}

func call(block int, id, name string, args ...string) []form.Event {
	events := []form.Event{{Kind: form.EventCallBegin, Block: block, Call: form.Call{ID: id, Name: name}}}
	for _, piece := range args {
		events = append(events, form.Event{Kind: form.EventCallArgs, Block: block, Text: rawjson.Quote(piece)})
	}
	return append(events, form.Event{Kind: form.EventCallEnd, Block: block})
}

func counts(c form.Counts) form.Event { return form.Event{Kind: form.EventCounts, Counts: &c} }

func stop(reason form.StopReason) form.Event {
	return form.Event{Kind: form.EventStop, Stop: form.Stop{Reason: reason}}
}

func conversation() []form.Event {
	return slices.Concat(
		[]form.Event{{Kind: form.EventStart}, {Kind: form.EventPing}, thought(0, "pl"), thought(0, "an"), text(1, "a\"\n"), text(1, "b")},
		call(2, "c1", "f", `{"x"`, `: 1.0}`), call(3, "c2", "g", ""),
		[]form.Event{counts(form.Counts{Input: 10, Read: 4, Output: 9, Reasoning: 3, AudioIn: 2}), stop(form.StopCalls)},
	)
}

func TestWritesStream(t *testing.T) {
	t.Parallel()
	got := string(answerOf(form.Ask{Model: "m", Stream: true, ShowThought: true}, conversation()...))
	translatetest.CheckGemini(t, []byte(got))
	id, _, _ := strings.Cut(got[strings.Index(got, `"responseId":"`)+len(`"responseId":"`):], `"`)
	const tail = `"modelVersion":"m","responseId":"ID"}` + "\r\n\r\n"
	piece := func(part string) string {
		return `data: {"candidates":[{"content":{"parts":[` + part + `],"role":"model"},"index":0}],` + tail
	}
	want := piece(`{"text":"pl","thought":true}`) + piece(`{"text":"an","thought":true}`) + piece(`{"text":"a\"\n"}`) + piece(`{"text":"b"}`) +
		piece(`{"functionCall":{"id":"c1","name":"f","args":{"x": 1.0}}}`) + piece(`{"functionCall":{"id":"c2","name":"g","args":{}}}`) +
		`data: {"candidates":[{"content":{"parts":[{"text":""}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,` +
		`"candidatesTokenCount":6,"totalTokenCount":19,"cachedContentTokenCount":4,"thoughtsTokenCount":3,"promptTokensDetails":[{"modality":"AUDIO","tokenCount":2}]},` + tail
	if got = strings.ReplaceAll(got, id, "ID"); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

func TestWritesDocument(t *testing.T) {
	t.Parallel()
	got := string(answerOf(form.Ask{Model: "m", ShowThought: true}, conversation()...))
	translatetest.CheckGemini(t, []byte(got))
	const want = `{"candidates":[{"content":{"parts":[{"text":"plan","thought":true},{"text":"a\"\nb"},{"functionCall":{"id":"c1","name":"f","args":{"x": 1.0}}},` +
		`{"functionCall":{"id":"c2","name":"g","args":{}}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":10,`
	if !strings.HasPrefix(got, want) {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
}

// TestWritesArray: without alt=sse a stream is one JSON array whose elements are sent one by one.
func TestWritesArray(t *testing.T) {
	t.Parallel()
	ask := form.Ask{Model: "m", Stream: true, Array: true}
	w := gemini.NewWriter(ask)
	first := text(0, "a")
	w.Write(&first)
	if got := w.Take(); !bytes.HasPrefix(got, []byte(`[{"candidates":[`)) {
		t.Errorf("got %s at first", got)
	}
	answer := answerOf(ask, conversation()...)
	translatetest.CheckGemini(t, answer)
	if got := rawjson.Trim(answer).Len(); got != 5 { // without the thoughts
		t.Errorf("got %d elements: %s", got, answer)
	}
	if got := answerOf(ask); string(got) != "[]" {
		t.Errorf("got %s of nothing", got)
	}
}

// TestReadsItsOwn: the reader reads the writer's output, streamed or not, as the same answer.
func TestReadsItsOwn(t *testing.T) {
	t.Parallel()
	for name, events := range map[string][]form.Event{
		"conversation": conversation(),
		"nothing":      {stop(form.StopFiltered)},
		"cut off":      {text(0, "a"), stop(form.StopMaxTokens)},
		"Google's": slices.Concat([]form.Event{state(0, form.State{Kind: form.StateGemini, Data: []byte("QQ==")})}, call(0, "c", "f", "{}"),
			[]form.Event{stop(form.StopCalls)}),
		"Google's after a text": slices.Concat([]form.Event{
			text(0, "a"), state(1, form.State{Kind: form.StateGemini, Data: []byte("QQ==")}),
		}, call(1, "c", "f", "{}"), []form.Event{stop(form.StopCalls)}),
		"text before": {text(0, "a"), state(0, form.State{Kind: form.StateGeminiBefore, Data: []byte("QQ==")}), stop(form.StopEnd)},
		"two answers": {
			text(0, "a"),
			{Kind: form.EventText, Choice: 1, Text: rawjson.Quote("b")},
			{Kind: form.EventStop, Choice: 1, Stop: form.Stop{Reason: form.StopMaxTokens}},
			stop(form.StopEnd),
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want := joined(shown(events))
			for _, ask := range []form.Ask{
				{Model: "m", ShowThought: true},
				{Model: "m", ShowThought: true, Stream: true},
				{Model: "m", ShowThought: true, Stream: true, Array: true},
			} {
				answer := answerOf(ask, events...)
				translatetest.CheckGemini(t, answer)
				compare(t, joined(readBack(answer)), want)
			}
		})
	}
}

// readBack reads an answer of any form.
func readBack(answer []byte) []string {
	reader := gemini.NewReader()
	if !bytes.HasPrefix(answer, []byte("data: ")) {
		return shown(reader.Document(answer, nil))
	}
	var lines []string
	for line := range strings.Lines(string(answer)) {
		if data, found := strings.CutPrefix(line, "data: "); found {
			lines = append(lines, shown(reader.Event(nil, []byte(data), nil))...)
		}
	}
	return append(lines, shown(reader.End(nil))...)
}

// joined puts the pieces of one block together, in the order of choices, and leaves out what comes in pieces of another number:
// starts, pings and all counts but the last.
func joined(lines []string) []string {
	var whole []string
	var last string
	for _, line := range lines {
		switch kind, rest, _ := strings.Cut(line, " "); kind {
		case "start", "?", "args", "end":
			if kind == "args" {
				rest = strings.ReplaceAll(rest, ": ", ":")
				at, args, _ := strings.Cut(rest, " ")
				if n := len(whole) - 1; n >= 0 && strings.HasPrefix(whole[n], "args "+at+" ") {
					whole[n] += args
				} else if strings.Trim(args, "{}") != "" {
					whole = append(whole, "args "+at+" "+args)
				}
			}
		case "counts":
			last = line
		case "text", "thought":
			at, said, _ := strings.Cut(rest, " ")
			if n := len(whole) - 1; n >= 0 && strings.HasPrefix(whole[n], kind+" "+at+" ") {
				whole[n] = strings.TrimSuffix(whole[n], `"`) + strings.TrimPrefix(said, `"`)
				continue
			}
			whole = append(whole, line)
		default:
			whole = append(whole, line)
		}
	}
	slices.SortStableFunc(whole, func(a, b string) int { return strings.Compare(choiceOf(a), choiceOf(b)) })
	return append(whole, last)
}

func choiceOf(line string) string {
	_, rest, _ := strings.Cut(line, " ")
	return rest[:1]
}

// TestWritesForeignState: the state of other vendors is on the first call, because clients send calls back. Without a call it is at the
// end.
func TestWritesForeignState(t *testing.T) {
	t.Parallel()
	signed := form.State{Kind: form.StateAnthropic, Data: []byte("sig=="), Text: rawjson.Quote("plan")}
	redacted := form.State{Kind: form.StateRedacted, Data: []byte("secret")}
	envelopes := base64.StdEncoding.EncodeToString([]byte(signed.Envelope() + " " + redacted.Envelope()))
	events := slices.Concat([]form.Event{thought(0, "plan"), state(0, signed), state(1, redacted), text(2, "now")},
		call(3, "c1", "f", "{}"), call(4, "c2", "g", "{}"), []form.Event{stop(form.StopCalls)})
	got := answerOf(form.Ask{Model: "m"}, events...)
	translatetest.CheckGemini(t, got)
	const want = `"parts":[{"text":"now"},{"functionCall":{"id":"c1","name":"f","args":{}},"thoughtSignature":"ENVELOPES"},{"functionCall":{"id":"c2","name":"g","args":{}}}]`
	if !strings.Contains(string(got), strings.Replace(want, "ENVELOPES", envelopes, 1)) {
		t.Errorf("got %s", got)
	}
	got = answerOf(form.Ask{Model: "m"}, state(0, signed), text(1, "now"), stop(form.StopEnd))
	translatetest.CheckGemini(t, got)
	single := base64.StdEncoding.EncodeToString([]byte(signed.Envelope()))
	if !strings.Contains(string(got), `"parts":[{"text":"now"},{"text":"","thought":true,"thoughtSignature":"`+single+`"}]`) {
		t.Errorf("got %s", got)
	}
}

func TestWritesFinishReasons(t *testing.T) {
	t.Parallel()
	for reason, want := range map[form.StopReason]string{
		form.StopEnd: "STOP", form.StopSequence: "STOP", form.StopCalls: "STOP", form.StopMaxTokens: "MAX_TOKENS",
		form.StopContextFull: "MAX_TOKENS",
		form.StopPaused:      "MAX_TOKENS", form.StopRefusal: "SAFETY", form.StopFiltered: "SAFETY", form.StopOther: "OTHER",
	} {
		if got := answerOf(form.Ask{Model: "m"}, stop(reason)); !bytes.Contains(got, []byte(`"finishReason":"`+want+`"`)) {
			t.Errorf("%d: got %s, want %s", reason, got, want)
		}
	}
}

// TestWritesNothingOfFailures: before an error, the writer sends the pieces of a stream so far, and nothing of a document. It does not
// write the error itself.
func TestWritesNothingOfFailures(t *testing.T) {
	t.Parallel()
	failed := form.Event{Kind: form.EventFailed, Fault: providers.Faultf(providers.Upstream, "x")}
	if got := answerOf(form.Ask{Model: "m"}, text(0, "a"), failed, stop(form.StopEnd)); len(got) != 0 {
		t.Errorf("got %s", got)
	}
	w := gemini.NewWriter(form.Ask{Model: "m", Stream: true})
	for _, event := range []form.Event{text(0, "a"), failed, text(0, "b")} {
		w.Write(&event)
	}
	if got := w.Take(); bytes.Count(got, []byte("data: ")) != 1 {
		t.Errorf("got %s", got)
	}
}

// TestWritesInterleavedCalls: the pieces of several calls may alternate; each call is written when it is complete. Arguments that are not
// an object are kept as text.
func TestWritesInterleavedCalls(t *testing.T) {
	t.Parallel()
	arg := func(block int, s string) form.Event {
		return form.Event{Kind: form.EventCallArgs, Block: block, Text: rawjson.Quote(s)}
	}
	begin := func(block int, id string) form.Event {
		return form.Event{Kind: form.EventCallBegin, Block: block, Call: form.Call{ID: id, Name: "f"}}
	}
	got := answerOf(form.Ask{Model: "m", Stream: true}, begin(0, "a"), begin(1, "b"), arg(0, `{"x":`), arg(1, `[1`), arg(0, `1}`), arg(1, `]`),
		stop(form.StopCalls))
	translatetest.CheckGemini(t, got)
	if !bytes.Contains(got, []byte(`"id":"a","name":"f","args":{"x":1}}`)) ||
		!bytes.Contains(got, []byte(`"id":"b","name":"f","args":{"_raw":"[1]"}}`)) {
		t.Errorf("got %s", got)
	}
}

func FuzzAnswer(f *testing.F) {
	for _, piece := range []string{
		`{"candidates":[{"content":{"parts":[{"text":"a","thought":true},{"functionCall":{"name":"f","args":{"a":1}},"thoughtSignature":"QQ=="}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":4}}`,
		`[{"error":{"code":503}},{"promptFeedback":{"blockReason":"X"}}]`, `{"candidates":[{"index":-1},{"index":5e3}]}`, `7`,
	} {
		f.Add([]byte(piece), []byte(piece))
	}
	f.Fuzz(func(t *testing.T, first, second []byte) {
		if !rawjson.Valid(first) || !rawjson.Valid(second) {
			return
		}
		for _, ask := range []form.Ask{{Model: "m", ShowThought: true, Stream: true}, {Model: "m"}} {
			reader, writer := gemini.NewReader(), gemini.NewWriter(ask)
			events := reader.End(reader.Event(nil, second, reader.Event(nil, first, nil)))
			var answer []byte
			failed := false
			for i := range events {
				failed = failed || events[i].Kind == form.EventFailed
				writer.Write(&events[i])
				answer = append(answer, writer.Take()...)
			}
			writer.Write(&form.Event{Kind: form.EventEnd})
			if answer = append(answer, writer.Take()...); !failed && len(events) > 0 {
				translatetest.CheckGemini(t, answer)
			}
		}
		_ = gemini.NewReader().Document(rawjson.Trim(first), nil)
	})
}

func BenchmarkTextEvent(b *testing.B) {
	piece := []byte(`{"candidates":[{"content":{"parts":[{"text":" some words of it"}],"role":"model"},"index":0}],"usageMetadata":{"promptTokenCount":4,"totalTokenCount":4},"modelVersion":"m","responseId":"r"}`)
	reader, writer := gemini.NewReader(), gemini.NewWriter(form.Ask{Model: "m", Stream: true})
	var events []form.Event
	b.ReportAllocs()
	for b.Loop() {
		events = reader.Event(nil, piece, events[:0])
		for i := range events {
			writer.Write(&events[i])
		}
		if len(writer.Take()) == 0 {
			b.Fatal("nothing was written")
		}
	}
}
