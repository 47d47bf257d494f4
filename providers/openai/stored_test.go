package openai_test

import (
	"net/http"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/upstream"
)

// TestTicketer: what a response in the background is asked for, and what its documents and events show.
func TestTicketer(t *testing.T) {
	t.Parallel()
	r := openai.NewRelayer(nil)
	for body, want := range map[string]string{
		`{"model":"m"}`: `{"background":true,"model":"m"}`, ` { "model":"m"}`: ` {"background":true, "model":"m"}`, `{}`: `{"background":true}`,
	} {
		call := &providers.Call{Content: providers.Content{Body: []byte(body)}}
		call.Edits = upstream.InBackground(call)
		got := ""
		for _, piece := range call.Payload("") {
			got += string(piece)
		}
		if got != want {
			t.Errorf("%s: sent %s, want %s", body, got, want)
		}
	}
	for _, test := range []struct {
		header http.Header
		data   string
		want   providers.Progress
	}{
		{nil, `{"id":"resp_1","object":"response","status":"queued"}`, providers.Progress{ID: "resp_1", Shown: true}},
		{
			http.Header{"Openai-Poll-After-Ms": {"1500"}},
			`{"id":"resp_1","status":"in_progress","output":[{"id":"msg_1","status":"completed"`,
			providers.Progress{ID: "resp_1", Shown: true, Wait: 1500 * time.Millisecond},
		},
		{http.Header{"Openai-Poll-After-Ms": {"-1"}}, `{"id":"resp_1","status":"of another kind"}`, providers.Progress{ID: "resp_1", Shown: true}},
		{nil, `{"id":"resp_1","output":[{"status":"completed"`, providers.Progress{ID: "resp_1"}},
		{
			nil, `{"type":"response.created","sequence_number":0,"response":{"id":"resp_1","status":"queued"}}`,
			providers.Progress{ID: "resp_1", Event: "0", Shown: true},
		},
		{nil, `{"type":"response.output_item.done","item":{"id":"msg_1","status":"completed"},"sequence_number":7}`, providers.Progress{Event: "7"}},
		{
			nil, `{"type":"response.incomplete","sequence_number":8,"response":{"id":"resp_1","status":"incomplete"}}`,
			providers.Progress{ID: "resp_1", Event: "8", Shown: true, Ended: true},
		},
		{nil, `{"id":"resp_1","status":"completed"}`, providers.Progress{ID: "resp_1", Shown: true, Ended: true}},
		{nil, `{"id":"resp_1","status":"failed"}`, providers.Progress{ID: "resp_1", Shown: true, Ended: true}},
		{nil, `{"id":"resp_1","status":"cancelled"}`, providers.Progress{ID: "resp_1", Shown: true, Ended: true}},
		{nil, `not JSON`, providers.Progress{}},
	} {
		if got := r.Progress(test.header, []byte(test.data)); got != test.want {
			t.Errorf("%s: got %+v, want %+v", test.data, got, test.want)
		}
	}
	if all, rest := r.Resume("").Encode(), r.Resume("7").Encode(); all != "stream=true" || rest != "starting_after=7&stream=true" {
		t.Errorf("got %q and %q", all, rest)
	}
}
