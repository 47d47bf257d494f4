package messages_test

import (
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/messages"
)

// TestAnswerRows are streams of which each piece matters. The events are those of
// https://platform.claude.com/docs/en/build-with-claude/streaming, whose page asks clients to take unknown ones gracefully.
func TestAnswerRows(t *testing.T) {
	t.Parallel()
	const tool = `{"type":"content_block_start","index":0,"content_block":{"type":"tool_use","id":"t","name":"f","input":INPUT}}`
	for name, test := range map[string]struct {
		events [][2]string // names and data
		want   []string
	}{
		"the name of an event without a type is its type": {
			[][2]string{{"content_block_start", `{"index":0,"content_block":{"type":"text","text":"a"}}`}, {"ping", `{}`}},
			[]string{"start 0", `text 0 "a"`, "ping 0"},
		},
		"the type counts before the name": {
			[][2]string{
				{"message_stop", `{"type":"ping"}`},
				{"ping", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"a"}}`},
			},
			[]string{"ping 0", "start 0", `text 0 "a"`},
		},
		// Imitators give the input at the start and again in pieces: it counts once.
		"an input given twice": {
			[][2]string{
				{"", strings.Replace(tool, "INPUT", `{"a":1}`, 1)},
				{"", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":"{\"a\":1}"}}`},
				{"", `{"type":"content_block_stop","index":0}`},
			},
			[]string{"start 0", "begin 0 t f", `args 0 "{\"a\":1}"`, "end 0"},
		},
		// The vendor's streams begin an input with an empty piece.
		"an input at the start and an empty piece": {
			[][2]string{
				{"", strings.Replace(tool, "INPUT", `{"a":1}`, 1)},
				{"", `{"type":"content_block_delta","index":0,"delta":{"type":"input_json_delta","partial_json":""}}`},
				{"", `{"type":"content_block_stop","index":0}`},
			},
			[]string{"start 0", "begin 0 t f", `args 0 "{\"a\":1}"`, "end 0"},
		},
		"an end with a call that is open": {
			[][2]string{
				{"", strings.Replace(tool, "INPUT", `{"a":1}`, 1)},
				{"", `{"type":"message_delta","delta":{"stop_reason":"tool_use"}}`},
				{"", `{"type":"message_stop"}`},
			},
			[]string{"start 0", "begin 0 t f", `args 0 "{\"a\":1}"`, "end 0", "stop 3 "},
		},
		// stop_details: RefusalStopDetails of @anthropic-ai/sdk 1.11.
		"a refusal without a text": {
			[][2]string{{"", `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","explanation":"No."}}}`}},
			[]string{"start 0", `refusal 0 "No."`},
		},
		"a refusal behind a text": {
			[][2]string{
				{"", `{"type":"content_block_start","index":0,"content_block":{"type":"text","text":"Well"}}`},
				{"", `{"type":"message_delta","delta":{"stop_reason":"refusal","stop_details":{"type":"refusal","explanation":"No."}}}`},
			},
			[]string{"start 0", `text 0 "Well"`},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			reader := messages.NewReader()
			var got []string
			for _, event := range test.events {
				for _, e := range reader.Event([]byte(event[0]), []byte(event[1]), nil) {
					got = append(got, show(&e))
				}
			}
			if !slices.Equal(got, test.want) {
				t.Errorf("got\n%s\nwant\n%s", strings.Join(got, "\n"), strings.Join(test.want, "\n"))
			}
		})
	}
}

// TestKeyFaults is how lasting what is wrong with a key is: https://platform.claude.com/docs/en/api/errors, and for limits of spending the
// messages that issues of anthropics/claude-code quote.
func TestKeyFaults(t *testing.T) {
	t.Parallel()
	for err, want := range map[string]providers.KeyFault{
		`"type":"authentication_error"`: providers.KeyRefused,
		`"type":"permission_error"`:     providers.KeyForbidden,
		`"type":"billing_error"`:        providers.KeyExhausted,
		`"type":"rate_limit_error"`:     providers.KeyBusy,
		`"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API."`: providers.KeyExhausted,
		`"type":"invalid_request_error","message":"You have reached your specified API usage limits."`:           providers.KeyExhausted,
		`"type":"invalid_request_error","message":"This organization has been disabled."`:                        providers.KeyRefused,
	} {
		events := messages.NewReader().Event(nil, []byte(`{"type":"error","error":{`+err+`}}`), nil)
		if got := events[0].Fault; events[0].Kind != form.EventFailed || got.Blame != providers.BlameKey || got.Key != want ||
			got.UpstreamMessage != "" {
			t.Errorf("%s: got %+v", err, got)
		}
	}
}
