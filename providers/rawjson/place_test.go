package rawjson_test

import (
	"slices"
	"testing"

	"modelrelay/providers/rawjson"
)

// TestTexts: each text that is a member's value is found once, at its place, however deep; what is skipped is left out.
func TestTexts(t *testing.T) {
	t.Parallel()
	for object, want := range map[string][]string{
		`{}`:                          nil,
		`[]`:                          nil,
		`{"ttl":"a"}`:                 {"ttl=a in "},
		`{"ttl":5,"a":{"ttl":null}}`:  nil,
		`{"a":"ttl","b":["ttl","x"]}`: nil,
		`{"c":{"ttl":"1h","ttl":"5m"},"t\u0074l":"b"}`: {"c.ttl=1h in c", "c.ttl=5m in c", "ttl=b in "},
		`{"m":[1,"x",{"c":[[],{"k":{"z":[{}],"ttl":"1h"}}]},{"k":{"ttl":"2h"}}],"ttl":"e"}`: {
			"m[2].c[1].k.ttl=1h in k", "m[3].k.ttl=2h in k", "ttl=e in ",
		},
		`{"tools":[{"input_schema":{"k":{"ttl":"1h"}},"parameters":{"ttl":"1h"},"k":{"ttl":"2h"}}],"input":[{"k":{"ttl":"3h"}}]}`: {
			"tools[0].k.ttl=2h in k", "input[0].k.ttl=3h in k",
		},
	} {
		var got []string
		skip := func(name rawjson.Text) bool { return name.Is("input_schema") || name.Is("parameters") }
		for place, text := range rawjson.Value(object).Texts(skip) {
			if place.Name().Is("ttl") {
				got = append(got, place.String()+"="+text.String()+" in "+place.In().String())
			}
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", object, got, want)
		}
	}
	for range rawjson.Value(`{"a":{"ttl":"1"},"ttl":"2"}`).Texts(nil) {
		break // and nothing is yielded after that
	}
}

// FuzzTexts: the texts of a valid document are those that a walk level by level finds; of any other bytes reading them ends.
func FuzzTexts(f *testing.F) {
	for _, seed := range []string{
		`{"a":"b","c":[{"d":"e"},["f"]]}`, `[{"a":{"b":"c"}}]`, ` { "a" : "\u0062" , "n":null}`, `"a"`, `{"a":`, `[[[`, `}`, `{"a" "b"}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		value := rawjson.Trim(document)
		var got []string
		for place, text := range value.Texts(nil) {
			got = append(got, place.Name().String()+"="+text.String())
		}
		if !rawjson.Valid(document) {
			return
		}
		if want := texts(nil, "", value); !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", document, got, want)
		}
	})
}

// texts walks level by level.
func texts(all []string, name string, value rawjson.Value) []string {
	for key, member := range value.Members() {
		if member.IsText() {
			all = append(all, key.String()+"="+member.Text().String())
		}
		all = texts(all, key.String(), member)
	}
	for _, item := range value.Items() {
		all = texts(all, name, item)
	}
	return all
}
