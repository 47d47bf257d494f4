package body_test

import (
	"slices"
	"testing"

	"modelrelay/api/body"
)

// TestTextsNamed: each text of that name is found once, where it stands, however deep; names are read as JSON has them, and what
// clients say to their own tools is theirs.
func TestTextsNamed(t *testing.T) {
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
		for place, text := range body.TextsNamed([]byte(object), "ttl") {
			got = append(got, place.String()+"="+string(text)+" in "+place.In())
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got %q, want %q", object, got, want)
		}
	}
	for range body.TextsNamed([]byte(`{"a":{"ttl":"1"},"ttl":"2"}`), "ttl") {
		break // and nothing is yielded after that
	}
}
