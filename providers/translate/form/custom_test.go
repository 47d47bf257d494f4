package form_test

import (
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func TestToolFunction(t *testing.T) {
	t.Parallel()
	const schema = `{"type":"object","properties":{"input":{"type":"string"}},"required":["input"],"additionalProperties":false}`
	grammar := form.Grammar{Syntax: rawjson.Text(`"lark"`), Definition: rawjson.Text(`"start: \"a\""`)}
	for name, test := range map[string]struct {
		tool                form.Tool
		schema, description string
	}{
		"a function":    {form.Tool{Schema: rawjson.Value(`{}`), Description: rawjson.Text(`"d"`)}, `{}`, `"d"`},
		"a custom tool": {form.Tool{Custom: true, Description: rawjson.Text(`"d"`)}, schema, `"d"`},
		"with a grammar": {
			form.Tool{Custom: true, Description: rawjson.Text(`"d"`), Grammar: grammar},
			schema,
			`"d\n\nThe input must follow this grammar (lark):\nstart: \"a\""`,
		},
		"with nothing but a grammar": {
			form.Tool{Custom: true, Grammar: grammar},
			schema,
			`"The input must follow this grammar (lark):\nstart: \"a\""`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got := test.tool.Function()
			if string(got.Schema) != test.schema || string(got.Description) != test.description || got.Custom {
				t.Errorf("got %s %s custom %v, want %s %s", got.Schema, got.Description, got.Custom, test.schema, test.description)
			}
		})
	}
}

func TestCustomText(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ input, want string }{
		"the text":              {`{"input":"a\n\"b\""}`, `"a\n\"b\""`},
		"another object":        {`{"patch":1}`, `"{\"patch\":1}"`},
		"no text":               {`{"input":1}`, `"{\"input\":1}"`},
		"nothing":               {``, `""`},
		"what CustomInput made": {string(form.CustomInput(rawjson.Text(`"x\\y"`))), `"x\\y"`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := form.CustomText(rawjson.Value(test.input)); string(got) != test.want {
				t.Errorf("got %s, want %s", got, test.want)
			}
		})
	}
}

func TestCustomArgs(t *testing.T) {
	t.Parallel()
	text := rawjson.Text(`"a\n\"b\" \u00e9 \\"`)
	args := rawjson.Join("", rawjson.Text(form.CustomOpens), form.CustomArgs(text), rawjson.Text(form.CustomCloses))
	if got := form.CustomText(args.Decoded()); got.String() != text.String() {
		t.Errorf("got %s, want %s", got, text)
	}
}
