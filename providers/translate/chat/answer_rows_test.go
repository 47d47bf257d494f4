package chat_test

import (
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/chat"
	"modelrelay/providers/translate/form"
)

// TestAnswerRows are streams of imitators of which each piece matters.
func TestAnswerRows(t *testing.T) {
	t.Parallel()
	chunk := func(choice string) string { return `data: {"choices":[{"index":0,` + choice + `}]}` + "\n\n" }
	for name, test := range map[string]struct {
		stream string
		want   []string
	}{
		// Moonshot's last chunk: https://platform.moonshot.ai/docs/guide/utilize-the-streaming-output-feature-of-kimi-api
		"counts within the choice": {
			chunk(`"delta":{"content":"a"}`) + chunk(`"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":4,"completion_tokens":2}`) +
				"data: [DONE]\n\n",
			[]string{
				"start 0.0", `text 0.0 "a"`, "counts 0.0 {Input:4 Read:0 Write:0 Write1h:0 Output:2 Reasoning:0 AudioIn:0 AudioOut:0}", "stop 0.0 0",
			},
		},
		// QuantumNous/new-api #4203: a start that comes twice, and arguments in the chunk that ends the choice.
		"all at once": {
			chunk(`"delta":{"role":"assistant","content":""}`) +
				chunk(`"delta":{"role":"assistant","content":"","tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"{"}}]}`) +
				chunk(`"delta":{"tool_calls":[{"index":0,"id":"a","function":{"name":"f","arguments":"}"}}]},"finish_reason":"tool_calls"`) +
				"data: [DONE]\n\n",
			[]string{"start 0.0", "begin 0.0 a f", `args 0.0 "{"`, `args 0.0 "}"`, "end 0.0", "stop 0.0 3"},
		},
		// Without an index a piece continues with the call of its id, and one without either with the last call.
		"calls without an index": {
			chunk(`"delta":{"tool_calls":[{"id":"a","function":{"name":"f","arguments":"{"}}]}`) +
				chunk(`"delta":{"tool_calls":[{"function":{"arguments":"\"x\":"}}]}`) +
				chunk(`"delta":{"tool_calls":[{"id":"b","function":{"name":"g","arguments":"{}"}}]}`) +
				chunk(`"delta":{"tool_calls":[{"id":"a","function":{"arguments":"1}"}}]}`) +
				chunk(`"delta":{},"finish_reason":"tool_calls"`),
			[]string{
				"start 0.0", "begin 0.0 a f", `args 0.0 "{"`, `args 0.0 "\"x\":"`, "begin 0.1 b g", `args 0.1 "{}"`, `args 0.0 "1}"`,
				"end 0.0", "end 0.1", "stop 0.0 3",
			},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var got []string
			stream(chat.NewReader(), test.stream, func(event form.Event) { got = append(got, say(event)) })
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestWriterTakesNothingBehindAFailure: the error is the last that a client gets, and no [DONE] follows it.
func TestWriterTakesNothingBehindAFailure(t *testing.T) {
	t.Parallel()
	for _, ask := range []form.Ask{{Model: "m"}, {Model: "m", Stream: true, WantsUsage: true}} {
		w := chat.NewWriter(ask)
		for _, event := range []form.Event{
			{Kind: form.EventStart},
			{Kind: form.EventText, Text: rawjson.Quote("a")},
			{Kind: form.EventFailed, Fault: &providers.Fault{Kind: providers.Upstream}},
		} {
			w.Write(&event)
			w.Take()
		}
		for _, event := range []form.Event{
			{Kind: form.EventText, Text: rawjson.Quote("b")},
			{Kind: form.EventPing},
			{Kind: form.EventStop},
			{Kind: form.EventEnd},
		} {
			w.Write(&event)
			if got := w.Take(); got != nil {
				t.Errorf("streamed %t, behind the failure: %s", ask.Stream, got)
			}
		}
	}
}
