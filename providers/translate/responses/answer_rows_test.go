package responses_test

import (
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/responses"
)

// TestReaderRows reads events of which each gives something by itself, at once. Their names are those of ResponseStreamEvent of
// openai-node 7.55; that imitators leave deltas, types, ids or ends out is what router-for-me/CLIProxyAPI #4860 and BerriAI/litellm #13420
// tell of.
func TestReaderRows(t *testing.T) {
	t.Parallel()
	type event struct{ name, data, want string }
	for name, events := range map[string][]event{
		"the answer begins with its first event": {{"", `{"type":"response.created","response":{"status":"in_progress"}}`, "start"}},
		"the name of an event without a type is its type": {
			{"response.created", `{"response":{"status":"in_progress"}}`, "start"},
			{"response.output_text.delta", `{"output_index":0,"delta":"a"}`, "text 0: a"},
		},
		"the type counts before the name": {
			{"response.completed", `{"type":"response.created","response":{"status":"in_progress"}}`, "start"},
			{"response.created", `{"type":"response.output_text.delta","output_index":0,"delta":"a"}`, "text 0: a"},
		},
		"a text without pieces": {
			{"", `{"type":"response.output_text.done","item_id":"m","output_index":0,"content_index":0,"text":"all"}`, "start\ntext 0: all"},
			{"", `{"type":"response.output_item.done","output_index":0,"item":{"id":"m","type":"message","content":[{"type":"output_text","text":"all"}]}}`, ""},
		},
		"a refusal without pieces": {
			{"", `{"type":"response.refusal.done","item_id":"m","output_index":0,"content_index":0,"refusal":"no"}`, "start\nrefusal 0: no"},
			{"", `{"type":"response.output_item.done","output_index":0,"item":{"id":"m","type":"message","content":[{"type":"refusal","refusal":"no"}]}}`, ""},
		},
		"a thought without pieces": {
			{
				"", `{"type":"response.reasoning_summary_text.done","item_id":"r","output_index":0,"summary_index":0,"text":"hm"}`,
				"start\nthought 0: hm",
			},
			{"", `{"type":"response.output_item.done","output_index":0,"item":{"id":"r","type":"reasoning","summary":[{"type":"summary_text","text":"hm"}]}}`, ""},
		},
		"a call without a call_id": {
			{
				"", `{"type":"response.output_item.added","output_index":0,"item":{"id":"fc_1","type":"function_call","name":"f"}}`,
				"start\ncall 0: fc_1 f custom false",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := responses.NewReader()
			for i, event := range events {
				if got := eventLines(reader.Event([]byte(event.name), []byte(event.data), nil), false); got != event.want {
					t.Errorf("event %d: got %q, want %q", i, got, event.want)
				}
			}
		})
	}
}

// TestWriterState: the opaque state that a vendor requires back is in a reasoning item of its own, after the unsigned thought. The
// state of OpenAI itself is not wrapped.
func TestWriterState(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		events []form.Event
		want   []string // of encrypted_content, in order
	}{
		"redacted behind a thought": {
			[]form.Event{thought(0, "hm"), state(1, form.StateRedacted, "r")},
			[]string{form.Unsigned, form.State{Kind: form.StateRedacted, Data: []byte("r")}.Envelope()},
		},
		"of the text before, behind a thought": {
			[]form.Event{thought(0, "hm"), state(1, form.StateGeminiBefore, "p")},
			[]string{form.Unsigned, form.State{Kind: form.StateGeminiBefore, Data: []byte("p")}.Envelope()},
		},
		"of another thought": {
			[]form.Event{thought(0, "hm"), state(1, form.StateAnthropic, "s")},
			[]string{form.Unsigned, form.State{Kind: form.StateAnthropic, Data: []byte("s")}.Envelope()},
		},
		"OpenAI's own": {[]form.Event{thought(0, "hm"), state(0, form.StateOpenAI, "gAAA")}, []string{"gAAA"}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			response := rawjson.Value(written(form.Ask{Model: "m", ShowThought: true, Echo: echoOf(t, `{}`)}, answer(form.StopEnd, test.events)...))
			var got []string
			for _, item := range response.Get("output").Items() {
				got = append(got, item.Get("encrypted_content").Text().String())
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got %q, want %q", got, test.want)
			}
		})
	}
}

// TestWriterHoldsNoMore: whatever of an answer is held for its end is bounded.
func TestWriterHoldsNoMore(t *testing.T) {
	t.Parallel()
	mebibyte := strings.Repeat("x", 1<<20)
	for name, event := range map[string]form.Event{
		"thoughts that are not shown": thought(0, mebibyte),
		"probabilities":               {Kind: form.EventText, Text: rawjson.Quote("a"), Logprobs: rawjson.Value(`["` + mebibyte + `"]`)},
		"the text of a custom tool":   {Kind: form.EventCallArgs, Text: rawjson.Quote(mebibyte)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			w := responses.NewWriter(form.Ask{Stream: true, Echo: echoOf(t, `{}`), Custom: map[string]bool{"patch": true}})
			w.Write(&form.Event{Kind: form.EventStart})
			if event.Kind == form.EventCallArgs {
				w.Write(&form.Event{Kind: form.EventCallBegin, Call: form.Call{ID: "c", Name: "patch"}})
			}
			for n := 1; n <= 17; n++ {
				w.Write(&event)
				w.Take()
				if failed := w.Fault() != nil; n < 15 && failed {
					t.Fatalf("gave up behind %d MiB: %v", n, w.Fault())
				}
			}
			if w.Fault() == nil {
				t.Error("holds 17 MiB")
			}
		})
	}
}

// TestFailedResponseCounts: response.failed carries a whole Response, whose usage is what was counted by then.
func TestFailedResponseCounts(t *testing.T) {
	t.Parallel()
	stream := written(form.Ask{Stream: true, Echo: echoOf(t, `{}`)}, form.Event{Kind: form.EventStart}, text(0, "a"),
		form.Event{Kind: form.EventCounts, Counts: &form.Counts{Input: 7, Output: 3}},
		form.Event{Kind: form.EventFailed, Fault: &providers.Fault{Kind: providers.Upstream}})
	if got := rawjson.Value(lastResponse(t, stream)).At("usage", "total_tokens"); string(got) != "10" {
		t.Errorf("got %s tokens in all in %s", got, lastResponse(t, stream))
	}
}
