package form_test

import (
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

func TestToolParameters(t *testing.T) {
	t.Parallel()
	const nothing = `{"type":"object","properties":{}}`
	for schema, want := range map[string]string{
		"":                                nothing,
		"{}":                              nothing,
		"null":                            nothing,
		`{"type":"object"}`:               nothing,
		`{"type":"object","title":"x" } `: `{"type":"object","title":"x","properties":{}}`,
		`{"type":"object","properties":{"a":{"type":"object"}}}`: `{"type":"object","properties":{"a":{"type":"object"}}}`,
		`{"anyOf":[]}`: `{"anyOf":[]}`,
	} {
		tool := form.Tool{Schema: rawjson.Trim([]byte(schema))}
		if got := tool.Parameters(); string(got) != want {
			t.Errorf("%s: %s, want %s", schema, got, want)
		}
	}
}
