package gemini_test

import (
	"encoding/json"
	"strings"
	"testing"

	"modelrelay/api/gemini"
	"modelrelay/providers"
)

// FuzzModelNames: whatever the body, replacing the names that were found renames every request that names the model,
// and no byte next to them.
func FuzzModelNames(f *testing.F) {
	for _, seed := range []string{
		`{"requests":[{"model":"models/m","content":{}}]}`,
		`{ "requests" : [ {"content":{"parts":[{"text":"models/m"}]},"model":"\u006dodels\/m"} , {"content":{},"model":"m"},{"content":{}}] }`,
		`{"requests":[{"model":null,"content":{}}]}`, `{"requests":[{"model":"models/models/m","content":{}}]}`, `{"requests":[]}`,
		`{"requests":[1]}`,
		`{"x":{"model":"models/m"},"requests":[{"x":[{"model":"models/m"}],"content":{},"mod\u0065l":"models/m"}]}`,
	} {
		f.Add(seed, "m")
	}
	f.Add(`{"requests":[{"model":"models/models/m","content":{}}]}`, "models/m")
	find := gemini.ModelNames()
	f.Fuzz(func(t *testing.T, raw, model string) {
		const other = "another"
		if model == other || model == "models/"+other {
			return
		}
		names, err := find([]byte(raw), model)
		if err != nil {
			if fault := providers.AsFault(err); fault.Kind != providers.Invalid {
				t.Errorf("%q: got %v", raw, err)
			}
			return
		}
		call := providers.Call{Model: model, Content: providers.Content{Body: []byte(raw), NamesAt: names}}
		var sent strings.Builder
		for _, piece := range call.Payload(other) {
			sent.Write(piece)
		}
		type requests struct {
			Requests []struct{ Model *string }
		}
		var before, after requests
		if json.Unmarshal([]byte(raw), &before) != nil || len(before.Requests) == 0 {
			return // what only the lenient decoder reads, such as a name written in other letters
		}
		if err := json.Unmarshal([]byte(sent.String()), &after); err != nil {
			t.Fatalf("%q became %q: %v", raw, sent.String(), err)
		}
		for i, request := range before.Requests {
			if request.Model == nil || !strings.HasSuffix(*request.Model, model) {
				continue
			}
			want := strings.TrimSuffix(*request.Model, model) + other
			if got := after.Requests[i].Model; got == nil || *got != want && len(names) > 0 {
				t.Errorf("%q became %q", raw, sent.String())
			}
		}
		if len(sent.String())-len(raw) > len(names)*len(other) {
			t.Errorf("%q grew to %q", raw, sent.String())
		}
	})
}
