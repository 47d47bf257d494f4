package form_test

import (
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func TestResultTexts(t *testing.T) {
	t.Parallel()
	text := func(s string) form.Block { return form.Block{Kind: form.BlockText, Text: rawjson.Quote(s)} }
	image := form.Block{Kind: form.BlockMedia, Media: form.Media{Kind: form.Image, Data: []byte("AAAA")}}
	plain := form.Block{Kind: form.BlockMedia, Media: form.Media{Kind: form.PlainText, Title: rawjson.Quote("t"), Text: rawjson.Quote("x")}}
	object := func(json string) form.Result { return form.Result{Object: rawjson.Value(json)} }
	for _, test := range []struct {
		result    form.Result
		text, say string
		failed    bool
	}{
		{form.Result{}, `""`, `""`, false},
		{form.Result{Failed: true}, `""`, `"Error: "`, true},
		{form.Result{Blocks: []form.Block{text("a"), image, text(""), text("b"), plain}}, `"a\nb\nt\nx"`, `"a\nb\nt\nx"`, false},
		{form.Result{Blocks: []form.Block{text("no\n")}, Failed: true}, `"no\n"`, `"Error: no\n"`, true},
		{form.Result{Blocks: []form.Block{text("Error: no")}, Failed: true}, `"Error: no"`, `"Error: no"`, true},
		{form.Result{Blocks: []form.Block{text("error 5")}, Failed: true}, `"error 5"`, `"error 5"`, true},
		{object(`{"output":"a\u00e9"}`), `"a\u00e9"`, `"a\u00e9"`, false},
		{object(`{"result":{"b":1}}`), `"{\"b\":1}"`, `"{\"b\":1}"`, false},
		{object(`{"error":"no"}`), `"no"`, `"Error: no"`, true},
		{object(`{"output":"a","more":1}`), `"{\"output\":\"a\",\"more\":1}"`, `"{\"output\":\"a\",\"more\":1}"`, false},
		{object(`{"weather":"fine"}`), `"{\"weather\":\"fine\"}"`, `"{\"weather\":\"fine\"}"`, false},
		{object(`{}`), `"{}"`, `"{}"`, false},
		{object(`null`), `""`, `""`, false},
	} {
		got, failed := test.result.Texts()
		if string(got) != test.text || failed != test.failed {
			t.Errorf("%+v: got %s, %t", test.result, got, failed)
		}
		if said := test.result.TextWithError(); string(said) != test.say {
			t.Errorf("%+v is %s, want %s", test.result, said, test.say)
		}
	}
	result := form.Result{Blocks: []form.Block{text("a"), image, plain}}
	if media := result.Media(); len(media) != 1 || media[0].Media.Kind != form.Image {
		t.Errorf("media: got %v", media)
	}
}
