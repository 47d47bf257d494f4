package form_test

import (
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func TestMentionsJSON(t *testing.T) {
	t.Parallel()
	text := func(raw string) []form.Block { return []form.Block{{Kind: form.BlockText, Text: rawjson.Text(raw)}} }
	turns := func(blocks []form.Block) []form.Turn { return []form.Turn{{Blocks: blocks}} }
	for _, test := range []struct {
		name   string
		prompt form.Prompt
		want   bool
	}{
		{"nothing", form.Prompt{}, false},
		{"system", form.Prompt{System: text(`"Reply in Json"`)}, true},
		{"turn", form.Prompt{Turns: turns(text(`"jjson"`))}, true},
		{"other words", form.Prompt{Turns: turns(text(`"jso nj"`))}, false},
		{"result", form.Prompt{Turns: turns([]form.Block{{Kind: form.BlockResult, Result: &form.Result{Blocks: text(`"json"`)}}})}, true},
		{"media", form.Prompt{Turns: turns([]form.Block{{Kind: form.BlockMedia, Media: form.Media{Data: []byte("json")}}})}, false},
	} {
		if got := test.prompt.MentionsJSON(); got != test.want {
			t.Errorf("%s: got %t", test.name, got)
		}
	}
}

func TestOutputLine(t *testing.T) {
	t.Parallel()
	if got := (form.Output{}).Line(); got != nil {
		t.Errorf("of text: got %s", got)
	}
	if got := (form.Output{Kind: form.OutputJSON}).Line(); string(got) != `"Answer in JSON."` {
		t.Errorf("of JSON: got %s", got)
	}
	got := form.Output{Kind: form.OutputSchema, Schema: rawjson.Value(`{"type":"object"}`)}.Line()
	if want := `"Answer in JSON, with nothing around it, that fits this JSON Schema:\n{\"type\":\"object\"}"`; string(got) != want {
		t.Errorf("of a schema: got %s", got)
	}
}
