package strict_test

import (
	"encoding/json"
	"fmt"
	"slices"
	"testing"

	"modelrelay/dev/upstream/strict"
)

func TestShape(t *testing.T) {
	t.Parallel()
	shape := strict.Obj([]string{"a"}, map[string]*strict.Shape{
		"a": strict.Of(strict.Integer), "b": {Kind: strict.String, Nullable: true}, "c": strict.Words("x", "y"), "d": nil, "any": {},
		"list": strict.List(&strict.Shape{Kind: strict.Object, Tag: "type", Of: map[string]*strict.Shape{
			"n": strict.Obj([]string{"v"}, map[string]*strict.Shape{"type": {}, "v": strict.Of(strict.Number)}),
		}}),
		"map": {Kind: strict.Object, Values: strict.Of(strict.Bool)},
		"or":  {Kind: strict.String, Or: strict.List(strict.Of(strict.String))},
	})
	for doc, want := range map[string][]string{
		`{"a":1,"b":null,"c":"x","any":[1],"list":[{"type":"n","v":1.5}],"map":{"k":true},"or":["z"]}`: nil,
		`{}`:                               {"missing at : a"},
		`{"a":1.5}`:                        {"mistyped at a: "},
		`{"a":1,"b":2,"c":"z"}`:            {"mistyped at b: ", "no word at c: "},
		`{"a":1,"d":1,"e":1}`:              {"unknown at : d", "unknown at : e"},
		`{"a":1,"list":[{"type":"m"},{}]}`: {"no tag at list[0]: type", "no tag at list[1]: type"},
		`{"a":1,"list":[{"type":"n","v":"","w":0}]}`: {"unknown at list[0]: w", "mistyped at list[0].v: "},
		`{"a":1,"map":{"k":1},"or":[1]}`:             {"mistyped at map[0].value: ", "mistyped at or[0]: "},
	} {
		var v any
		if err := json.Unmarshal([]byte(doc), &v); err != nil {
			t.Fatal(err)
		}
		var got []string
		for _, f := range shape.Check(v) {
			word := []string{"unknown", "missing", "mistyped", "no word", "no tag"}[f.Fault]
			got = append(got, fmt.Sprintf("%s at %s: %s", word, f.Path.Bracketed(), f.Name))
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", doc, got, want)
		}
	}
	if got := (strict.Path{"messages", 0, "content", 1, strict.Variant("text"), "foo"}).Dotted(); got != "messages.0.content.1.text.foo" {
		t.Errorf("got %s", got)
	}
}
