package responses_test

import (
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/responses"
)

func TestSplitInput(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		input       string
		earlier     int
		before, own string
	}{
		"a text":          {`"a\"b"`, 0, ``, `{"type":"message","role":"user","content":"a\"b"}`},
		"nothing":         {`[ ]`, 0, ``, ``},
		"absent":          {``, 2, ``, ``},
		"its own":         {` [ {"a":1} , {"b":2} ] `, 0, ``, `{"a":1} , {"b":2}`},
		"earlier and own": {`[{"a":1},{"b":2}, {"c":[3]}]`, 2, `{"a":1},{"b":2}`, `{"c":[3]}`},
		"earlier alone":   {`[{"a":1},{"b":2}]`, 2, `{"a":1},{"b":2}`, ``},
	} {
		before, own := responses.SplitInput(rawjson.Trim([]byte(test.input)), test.earlier)
		if string(before) != test.before || string(own) != test.own {
			t.Errorf("%s: got %s and %s", name, before, own)
		}
	}
}

// TestWriterStores: the writer stores a response once, as the client receives it, and its store field reports whether the store
// accepted it. A failed response is not stored.
func TestWriterStores(t *testing.T) {
	t.Parallel()
	said := form.Event{Kind: form.EventText, Text: rawjson.Text(`"a"`)}
	for name, test := range map[string]struct {
		events        []form.Event
		accept, store bool // the store takes it; the response has store: true
		stored        int
	}{
		"stored":     {answer(form.StopEnd, said), true, true, 1},
		"incomplete": {answer(form.StopMaxTokens, said), true, true, 1},
		"refused":    {answer(form.StopEnd, said), false, false, 1},
		"failed": {
			[]form.Event{{Kind: form.EventStart}, said, {Kind: form.EventFailed, Fault: &providers.Fault{Kind: providers.Upstream}}},
			true, false, 0,
		},
	} {
		for _, stream := range []bool{true, false} {
			if !stream && test.stored == 0 {
				continue // there is no document
			}
			var stored []string
			ask := form.Ask{Model: "claude", Stream: stream, Previous: "resp_0", Echo: echoOf(t, `{}`)}
			ask.Store = func(id string, answer []byte) bool {
				if got := rawjson.Value(answer).Get("id").Text().String(); got != id {
					t.Errorf("%s: %s is stored as %s", name, got, id)
				}
				stored = append(stored, string(answer))
				return test.accept
			}
			out := written(ask, test.events...)
			last := rawjson.Trim(out)
			if stream {
				last = rawjson.Value(lastResponse(t, out))
			}
			if last.Get("store").True() != test.store || last.Get("previous_response_id").Text().String() != "resp_0" {
				t.Errorf("%s: the response %s", name, last)
			}
			if len(stored) != test.stored || test.store && stored[0] != string(last) {
				t.Errorf("%s: stored %s, the response %s", name, strings.Join(stored, "\n"), last)
			}
		}
	}
}
