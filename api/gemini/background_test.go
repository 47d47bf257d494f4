package gemini_test

import (
	"encoding/json"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"
	"time"

	"modelrelay/api/gemini"
)

// TestInteractionOf: the steps of a stream are those of the vendor's whole object. Events and deltas: @google/genai 3.1.0, StepDeltaData.
func TestInteractionOf(t *testing.T) {
	t.Parallel()
	step := func(started string, deltas ...string) string {
		events := `data: {"event_type":"step.start","index":0,"step":` + started + "}\n\n"
		for _, delta := range deltas {
			events += `data: {"event_type":"step.delta","index":0,"delta":` + delta + "}\n\n"
		}
		return events + `data: {"event_type":"step.stop","index":0}` + "\n\n"
	}
	for name, tc := range map[string]struct{ events, want string }{
		"text": {
			step(`{"type":"model_output"}`, `{"type":"text","text":"a\"b"}`, `{"type":"text","text":"c"}`,
				`{"type":"text_annotation_delta","annotations":[{"type":"url_citation","url":"u"}]}`,
				`{"type":"image","mime_type":"image/png","data":"AAAA"}`, `{"type":"text","text":"d"}`),
			`[{"type":"model_output","content":[{"type":"text","text":"a\"bc","annotations":[{"type":"url_citation","url":"u"}]},{"type":"image","mime_type":"image/png","data":"AAAA"},{"type":"text","text":"d"}]}]`,
		},
		"text that began with the step": {
			step(`{"type":"model_output","content":[{"type":"text","text":"a"}]}`, `{"type":"text","text":"b"}`),
			`[{"type":"model_output","content":[{"type":"text","text":"ab"}]}]`,
		},
		"sound": {
			step(`{"type":"model_output"}`, `{"type":"audio","mime_type":"audio/l16","data":"YQ=="}`,
				`{"type":"audio","mime_type":"audio/l16","data":"YmM="}`),
			`[{"type":"model_output","content":[{"type":"audio","mime_type":"audio/l16","data":"YWJj"}]}]`,
		},
		"a thought": {
			step(`{"type":"thought"}`, `{"type":"thought_summary","content":{"type":"text","text":"hm"}}`,
				`{"type":"thought_summary","content":{"type":"text","text":"m"}}`, `{"type":"thought_signature","signature":"s"}`),
			`[{"type":"thought","signature":"s","summary":[{"type":"text","text":"hmm"}]}]`,
		},
		"a function call": {
			step(`{"type":"function_call","id":"1","name":"f","arguments":{}}`,
				`{"type":"arguments_delta","arguments":"{\"a\""}`, `{"type":"arguments_delta","arguments":":1}"}`),
			`[{"type":"function_call","id":"1","name":"f","arguments":{"a":1}}]`,
		},
		"an unfinished call": {
			step(`{"type":"function_call","id":"1","name":"f"}`, `{"type":"arguments_delta","arguments":"{\"a\""}`),
			`[{"type":"function_call","id":"1","name":"f","arguments":"{\"a\""}]`,
		},
		"a tool's result": {
			step(`{"type":"code_execution_result","call_id":"1"}`,
				`{"type":"code_execution_result","result":"4","is_error":false}`),
			`[{"type":"code_execution_result","call_id":"1","result":"4","is_error":false}]`,
		},
		"a delta without its step": {`data: {"event_type":"step.delta","index":7,"delta":{"type":"text","text":"x"}}` + "\n\n", `[]`},
		"steps within the last event": {step(`{"type":"thought"}`) +
			`data: {"event_type":"interaction.completed","interaction":{"id":"i","steps":[{"type":"x"}]}}` + "\n\n", `[{"type":"x"}]`},
	} {
		got, err := gemini.InteractionOf(tc.events)
		var interaction struct{ Steps any }
		var want any
		if err != nil || json.Unmarshal([]byte(got), &interaction) != nil || json.Unmarshal([]byte(tc.want), &want) != nil ||
			!reflect.DeepEqual(interaction.Steps, want) {
			t.Errorf("%s: got %s, %v\nwant %s", name, got, err, tc.want)
		}
	}
}

// FuzzInteractionWorker: whatever an upstream sends, the events that readers get are whole, and the interaction that they make is JSON.
func FuzzInteractionWorker(f *testing.F) {
	f.Add([]byte("event: step.start\ndata: {\"event_type\":\"step.start\",\"index\":0,\"step\":{}}\n\n"), []byte(`{"model":"m"}`))
	f.Add([]byte("data: {\"event_type\":\"step.delta\",\"delta\":{\"type\":\"audio\",\"data\":\"!\"}}\n\ndata: [DONE]\n\n"), []byte(`[`))
	f.Fuzz(func(t *testing.T, events, request []byte) {
		rec := httptest.NewRecorder()
		w := gemini.NewInteractionWorker(rec, "call_a1j52ju9a73ose0pg4qq27jm00", time.Unix(1795000000, 0), gemini.InteractionRequest(request))
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = w.Write(events)
		_, _ = w.End(true)
		if body := rec.Body.String(); body != "" && !strings.HasSuffix(body, "\n\n") {
			t.Errorf("got %q", body)
		}
		_, _ = gemini.InteractionOf(rec.Body.String())
	})
}
