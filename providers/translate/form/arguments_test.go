package form_test

import (
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func TestArguments(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ arguments, input, back string }{
		"an object":          {`{"a": 1.0, "b":[ 1e400 ]}`, `{"a": 1.0, "b":[ 1e400 ]}`, `{"a":1.0,"b":[1e400]}`},
		"nothing":            {``, `{}`, `{}`},
		"white space":        {" \n", `{}`, `{}`},
		"null":               {`null`, `{}`, `{}`},
		"another value":      {`[1]`, `{"_raw":"[1]"}`, `[1]`},
		"no JSON":            {`{"a":`, `{"_raw":"{\"a\":"}`, `{"a":`},
		"a member like ours": {`{"_raw":"x","b":1}`, `{"_raw":"x","b":1}`, `{"_raw":"x","b":1}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			input := form.ReadArguments(rawjson.Quote(test.arguments))
			if string(input) != test.input {
				t.Errorf("input %s, want %s", input, test.input)
			}
			call := form.Call{Input: input}
			if back := call.Arguments().String(); back != test.back {
				t.Errorf("arguments %s, want %s", back, test.back)
			}
		})
	}
	if got := new(form.Call).Arguments(); !got.Is("{}") {
		t.Errorf("arguments of no input are %s, want {}", got)
	}
}

func TestSpaceFlat(t *testing.T) {
	t.Parallel()
	for want, space := range map[string]form.Space{
		"read":             {Name: "read"},
		"files__read":      {Namespace: "files", Name: "read"},
		"mcp__files__read": {Namespace: "mcp__files__", Name: "read"},
	} {
		if got := space.Flat(); got != want {
			t.Errorf("%+v is %s, want %s", space, got, want)
		}
	}
}
