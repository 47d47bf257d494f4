package responses_test

import (
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/responses"
)

func TestCount(t *testing.T) {
	t.Parallel()
	p := prompt(t, form.Messages, `"instructions":"be","input":"hi","tools":[{"type":"function","name":"f"}],"reasoning":{"effort":"low","summary":"auto"},"temperature":1,"max_output_tokens":5,"text":{"format":{"type":"json_object"}}`)
	p.Limits.Stop = []rawjson.Text{rawjson.Text(`"x"`)}
	var loss form.Loss
	payload, fault := responses.WriteCount(p, form.Target{Model: "gpt", Stream: true, Traits: providers.Traits{OpenAI: reasons()}}, &loss)
	if fault != nil {
		t.Fatal(fault)
	}
	want := `{"model":"gpt","instructions":"be","input":[{"type":"message","role":"developer","content":[{"type":"input_text","text":"Answer in JSON."}]},` +
		`{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"}]}],` +
		`"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}],"text":{"format":{"type":"json_object"}},"reasoning":{"effort":"low","summary":"auto"}}`
	if got := whole(payload); got != want {
		t.Errorf("got\n%s\nwant\n%s", got, want)
	}
	if loss.Dropped != nil || loss.Changed != nil {
		t.Errorf("lost %+v", loss)
	}
	p.Turns[0].Blocks[0] = form.Block{Kind: form.BlockMedia, Media: form.Media{Kind: form.Video, URL: rawjson.Text(`"x"`)}}
	if _, fault := responses.WriteCount(p, form.Target{}, &loss); fault == nil {
		t.Error("a video is counted")
	}
}
