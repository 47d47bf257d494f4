package gemini_test

import (
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/gemini"
	"modelrelay/providers/upstream"
)

// TestTicketer: what the documents and events of an interaction in the background show, and how its stream is continued.
func TestTicketer(t *testing.T) {
	t.Parallel()
	r := gemini.NewRelayer(nil)
	for data, want := range map[string]providers.Progress{
		`{"id":"v1_1","object":"interaction","status":"in_progress"}`: {ID: "v1_1", Shown: true},
		`{"id":"v1_1","status":"queued"}`:                             {ID: "v1_1", Shown: true},
		`{"id":"v1_1","steps":[{"status":"completed"`:                 {ID: "v1_1"},
		`{"id":"v1_1","status":"requires_action"}`: {
			ID: "v1_1", Shown: true,
			Ended: true,
		},
		`{"id":"v1_1","status":"cancelled"}`: {
			ID: "v1_1", Shown: true,
			Ended: true,
		},
		`{"event_type":"interaction.created","event_id":"a","interaction":{"id":"v1_1","status":"in_progress"}}`: {
			ID: "v1_1", Event: "a",
			Shown: true,
		},
		`{"event_type":"step.delta","event_id":"b","index":0,"delta":{"type":"text","text":"x"}}`: {Event: "b", Shown: true},
		`{"event_type":"interaction.completed","event_id":"c","interaction":{"id":"v1_1","status":"completed"}}`: {
			ID: "v1_1", Event: "c",
			Shown: true, Ended: true,
		},
		`{"event_type":"error","error":{"code":"internal"}}`: {Shown: true, Ended: true},
		`[DONE]`: {},
	} {
		if got := r.Progress(nil, []byte(data)); got != want {
			t.Errorf("%s: got %+v, want %+v", data, got, want)
		}
	}
	if all, rest := r.Resume("").Encode(), r.Resume("b").Encode(); all != "stream=true" || rest != "last_event_id=b&stream=true" {
		t.Errorf("got %q and %q", all, rest)
	}
	call := &providers.Call{Content: providers.Content{Body: []byte(`{"agent":"a"}`)}}
	call.Edits = upstream.InBackground(call)
	got := ""
	for _, piece := range call.Payload("") {
		got += string(piece)
	}
	if got != `{"background":true,"agent":"a"}` {
		t.Errorf("sent %s", got)
	}
}
