package form_test

import (
	"strings"
	"testing"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// TestSchemaFormats: the formats of texts that Anthropic takes, in
// https://platform.claude.com/docs/en/build-with-claude/structured-outputs, and one that it does not.
func TestSchemaFormats(t *testing.T) {
	t.Parallel()
	for _, format := range []string{
		"date-time", "time", "date", "duration", "email", "hostname", "uri", "ipv4", "ipv6", "uuid",
		"json-pointer",
	} {
		schema := `{"type":"string","format":"` + format + `"}`
		got, changed, fault := form.FitSchema(rawjson.Value(schema), "f", form.Messages)
		if taken := string(got) == schema && !changed; fault != nil || taken == (format == "json-pointer") {
			t.Errorf("%s: got %s, changed %t, %v", format, got, changed, fault)
		}
	}
}

// TestSchemaAnnotations: what only describes the schema itself is left out, and nothing is lost.
func TestSchemaAnnotations(t *testing.T) {
	t.Parallel()
	for to, want := range map[form.Dialect]string{
		form.Messages: `{"type":"string","definitions":{"A":{"type":"string"}}}`,
		form.Gemini:   `{"$id":"i","$anchor":"a","type":"string","$defs":{"A":{"type":"string"}}}`,
	} {
		schema := `{"$schema":"s","$comment":"c","$id":"i","$anchor":"a","type":"string","definitions":{"A":{"type":"string"}}}`
		if to == form.Messages {
			schema = strings.Replace(schema, `"$anchor":"a",`, "", 1)
		}
		got, changed, fault := form.FitSchema(rawjson.Value(schema), "f", to)
		if string(got) != want || changed || fault != nil {
			t.Errorf("%s: got %s, changed %t, %v, want %s", to, got, changed, fault, want)
		}
	}
}

// TestSchemaRefersToItself: wherever a schema may stand within one, by the keywords of
// https://json-schema.org/draft/2020-12/schema and of the drafts before.
func TestSchemaRefersToItself(t *testing.T) {
	t.Parallel()
	const ref = `{"$ref":"#"}`
	for keyword, value := range map[string]string{
		"properties": `{"a":` + ref + `}`, "patternProperties": `{"a":` + ref + `}`, "dependentSchemas": `{"a":` + ref + `}`,
		"allOf": `[{},` + ref + `]`, "anyOf": `[` + ref + `]`, "oneOf": `[` + ref + `]`, "prefixItems": `[` + ref + `]`, "items": ref,
		"additionalProperties": ref, "additionalItems": ref, "not": ref, "if": ref, "then": ref, "else": ref, "contains": ref,
		"propertyNames":    ref,
		"unevaluatedItems": ref, "unevaluatedProperties": ref,
	} {
		schema := `{"type":"object","` + keyword + `":` + value + `}`
		if _, _, fault := form.FitSchema(rawjson.Value(schema), "f", form.Messages); fault == nil || fault.Param != "f" {
			t.Errorf("%s: got %v, want a refusal", schema, fault)
		}
	}
	for _, schema := range []string{
		`{"type":"object","enum":[{"$ref":"#"}]}`,                                     // a value, not a schema
		`{"type":"object","properties":{"a":{"$ref":"https://x.example/s.json"}}}`,    // another document's
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/B"}}}`,                   // nothing
		`{"type":"object","$defs":{"A":{"items":{"$ref":"#/$defs/A"}}},"items":{}}`,   // of a definition that nothing refers to
		`{"type":"object","properties":{"a":{"$ref":"#anchor"}},"$defs":{"A":false}}`, // an anchor, which leads nowhere here
	} {
		if _, _, fault := form.FitSchema(rawjson.Value(schema), "f", form.Messages); fault != nil {
			t.Errorf("%s: got %v", schema, fault)
		}
	}
}

// TestSchemaOfManyMembers: each member is found, and the first of a name counts, however many there are.
func TestSchemaOfManyMembers(t *testing.T) {
	t.Parallel()
	var names []string
	for name := range strings.FieldsSeq("a b c d e f g h i j k l m n o p q r s t") {
		names = append(names, `"`+name+`":{"type":"string"}`)
	}
	schema := `{"$ref":"#/$defs/t","$defs":{` + strings.Join(names, ",") + `,"loop":{"items":{"$ref":"#/$defs/loop"}}}}`
	if _, _, fault := form.FitSchema(rawjson.Value(schema), "f", form.Messages); fault != nil {
		t.Errorf("got %v", fault)
	}
	schema = strings.Replace(schema, "#/$defs/t", "#/$defs/loop", 1)
	if _, _, fault := form.FitSchema(rawjson.Value(schema), "f", form.Messages); fault == nil {
		t.Error("a definition that refers to itself is taken")
	}
}

// TestOpenAPIWords: in Google's schemas a limit may be a string, as protobuf's JSON writes int64. Types are in capitals at every
// level. The source is the type Schema of google.golang.org/genai.
func TestOpenAPIWords(t *testing.T) {
	t.Parallel()
	for _, limit := range []string{"minItems", "maxItems", "minLength", "maxLength", "minProperties", "maxProperties", "minimum", "maximum"} {
		got, fault := form.FromOpenAPI(rawjson.Value(`{"`+limit+`":"5"}`), "f")
		if want := `{"` + limit + `":5}`; fault != nil || string(got) != want {
			t.Errorf("got %s, %v, want %s", got, fault, want)
		}
	}
	for schema, want := range map[string]string{
		`{"allOf":[{"type":"STRING"}],"oneOf":[{"type":"STRING"}]}`:                `{"allOf":[{"type":"string"}],"oneOf":[{"type":"string"}]}`,
		`{"prefixItems":[{"type":"STRING"}],"items":{"type":"NUMBER"}}`:            `{"prefixItems":[{"type":"string"}],"items":{"type":"number"}}`,
		`{"$defs":{"A":{"type":"STRING"}},"additionalProperties":{"type":"NULL"}}`: `{"$defs":{"A":{"type":"string"}},"additionalProperties":{"type":"null"}}`,
		`{"type":"NULL","nullable":true}`:                                          `{"type":"null"}`,
		`{"title":"5","pattern":"5"}`:                                              `{"title":"5","pattern":"5"}`,
		`true`:                                                                     `true`,
	} {
		got, fault := form.FromOpenAPI(rawjson.Value(schema), "f")
		if fault != nil || string(got) != want {
			t.Errorf("%s: got %s, %v, want %s", schema, got, fault, want)
		}
	}
}
