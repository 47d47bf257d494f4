package form_test

import (
	"bytes"
	"strings"
	"testing"

	"github.com/go-json-experiment/json/jsontext"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// same compares two documents but for spaces.
func same(t *testing.T, got, want []byte) {
	t.Helper()
	value := jsontext.Value(bytes.Clone(want))
	if err := value.Compact(); err != nil {
		t.Fatalf("the wanted %s: %v", want, err)
	}
	if !rawjson.Valid(got) {
		t.Errorf("got no JSON: %s", got)
	}
	if string(got) != string(value) {
		t.Errorf("got  %s\nwant %s", got, value)
	}
}

// What Gemini takes is the list in the comment of ResponseJsonSchema in google.golang.org/genai's GenerateContentConfig.
func TestFitSchemaGemini(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		schema, want string
		changed      bool
	}{
		"what is taken stays": {
			schema: `{"type":"object","title":"T","properties":{"a":{"type":["string","null"],"format":"date","enum":["x",null]},
				"b":{"type":"array","prefixItems":[{"type":"number","minimum":1,"maximum":1e400}],"minItems":1,"maxItems":2}},
				"required":["a"],"additionalProperties":false,"propertyOrdering":["b","a"],"anyOf":[{}],"oneOf":[{}]}`,
			want: `{"type":"object","title":"T","properties":{"a":{"type":["string","null"],"format":"date","enum":["x",null]},
				"b":{"type":"array","prefixItems":[{"type":"number","minimum":1,"maximum":1e400}],"minItems":1,"maxItems":2}},
				"required":["a"],"additionalProperties":false,"propertyOrdering":["b","a"],"anyOf":[{}],"oneOf":[{}]}`,
		},
		"what is cut is named in the description": {
			schema: `{"type":"string","description":"a \"b\"","minLength":3,"pattern":"^\\d$"}`,
			want:   `{"type":"string","description":"a \"b\"\n\n{minLength: 3, pattern: \"^\\\\d$\"}"}`, changed: true,
		},
		"words without a description": {
			schema: `{"type":"string","default":"x"}`, want: `{"type":"string","description":"{default: \"x\"}"}`, changed: true,
		},
		"names of properties are no keywords": {
			schema: `{"type":"object","properties":{"minLength":{"type":"number"},"$schema":{"type":"string","maxLength":2},"description":{"const":1}}}`,
			want: `{"type":"object","properties":{"minLength":{"type":"number"},"$schema":{"type":"string","description":"{maxLength: 2}"},
				"description":{"enum":[1]}}}`, changed: true,
		},
		"const is an enum of one": {schema: `{"const":"x"}`, want: `{"enum":["x"]}`},
		"a truth is no enum": {
			schema: `{"type":"boolean","const":true}`, want: `{"type":"boolean","description":"{const: true}"}`, changed: true,
		},
		"whole bounds": {
			schema: `{"type":"integer","exclusiveMinimum":0,"exclusiveMaximum":9.5}`, want: `{"type":"integer","minimum":1,"maximum":9}`,
		},
		"bounds that are not whole": {
			schema: `{"exclusiveMinimum":0,"type":"number"}`, want: `{"minimum":0,"type":"number","description":"{exclusiveMinimum: 0}"}`,
			changed: true,
		},
		"bounds of old drafts": {
			schema: `{"minimum":0,"exclusiveMinimum":true}`, want: `{"minimum":0,"description":"{exclusiveMinimum: true}"}`, changed: true,
		},
		"allOf of one": {
			schema: `{"description":"d","allOf":[{"type":"string","description":"e"}],"type":"string"}`,
			want:   `{"type":"string","description":"d\n\ne"}`,
		},
		"allOf of two": {
			schema: `{"allOf":[{"minimum":1},{"maximum":2}]}`, want: `{"description":"{allOf: [{\"minimum\":1},{\"maximum\":2}]}"}`, changed: true,
		},
		"definitions of old drafts": {
			schema: `{"$schema":"http://json-schema.org/draft-07/schema#","$ref":"#/definitions/A","definitions":{"A":{"type":"array","items":[{"const":1}]}}}`,
			want:   `{"$ref":"#/$defs/A","$defs":{"A":{"type":"array","prefixItems":[{"enum":[1]}]}}}`,
		},
		"a reference is alone": {
			schema: `{"properties":{"a":{"$ref":"#/$defs/A","description":"d"},"b":{"$ref":"#/$defs/A","anyOf":[{"type":"null"}]}},"$defs":{"A":{}}}`,
			want: `{"properties":{"a":{"anyOf":[{"$ref":"#/$defs/A"}],"description":"d"},"b":{"anyOf":[{"type":"null"}],
				"description":"{$ref: \"#/$defs/A\"}"}},"$defs":{"A":{}}}`, changed: true,
		},
		"cyclic references are unrolled": {
			schema: `{"type":"object","properties":{"next":{"$ref":"#"}}}`, want: `{"type":"object","properties":{"next":{"$ref":"#"}}}`,
		},
		"truths":           {schema: `{"items":true,"additionalProperties":true}`, want: `{"items":{},"additionalProperties":true}`},
		"no other element": {schema: `{"items":false}`, want: `{"description":"{items: false}"}`, changed: true},
		"of a wrong type":  {schema: `{"properties":[1],"anyOf":{}}`, want: `{"description":"{properties: [1], anyOf: {}}"}`, changed: true},
		"not an object":    {schema: `true`, want: `true`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, changed, fault := form.FitSchema(rawjson.Value(test.schema), "f", form.Gemini)
			if fault != nil || changed != test.changed {
				t.Fatalf("got changed %v, %v, want %v", changed, fault, test.changed)
			}
			same(t, got, []byte(test.want))
		})
	}
}

// What Anthropic takes is in its Go SDK (schemautil), whose transformSchema is for the SDK's own users what this
// is for others'.
func TestFitSchemaAnthropic(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		schema, want string
		changed      bool
	}{
		"what is taken stays": {
			schema: `{"type":"object","properties":{"a":{"type":"string","format":"uuid","enum":["x"],"pattern":"^[a-z]+$"},
				"b":{"type":"array","items":{"const":1,"default":1,"title":"t"},"minItems":1}},"required":["a"],"additionalProperties":false}`,
			want: `{"type":"object","properties":{"a":{"type":"string","format":"uuid","enum":["x"],"pattern":"^[a-z]+$"},
				"b":{"type":"array","items":{"const":1,"default":1,"title":"t"},"minItems":1}},"required":["a"],"additionalProperties":false}`,
		},
		"objects are closed": {
			schema: `{"type":["object","null"],"additionalProperties":true}`,
			want:   `{"type":["object","null"],"properties":{},"additionalProperties":false}`, changed: true,
		},
		"a dictionary": {
			schema: `{"type":"object","additionalProperties":{"type":"string","maxLength":1}}`,
			want:   `{"type":"object","additionalProperties":{"type":"string","description":"{maxLength: 1}"}}`, changed: true,
		},
		"further properties": {
			schema:  `{"properties":{"a":{}},"additionalProperties":{"type":"string"}}`,
			want:    `{"properties":{"a":{}},"additionalProperties":false,"description":"{additionalProperties: {\"type\":\"string\"}}"}`,
			changed: true,
		},
		"limits": {
			schema: `{"type":"array","items":{"type":"number","minimum":1,"multipleOf":2},"minItems":2,"maxItems":3}`,
			want:   `{"type":"array","items":{"type":"number","description":"{minimum: 1, multipleOf: 2}"},"description":"{minItems: 2, maxItems: 3}"}`, changed: true,
		},
		"formats": {
			schema: `{"type":"string","format":"iri","description":"d"}`, want: `{"type":"string","description":"d\n\n{format: \"iri\"}"}`,
			changed: true,
		},
		"patterns": {
			schema: `{"type":"string","pattern":"\\bx"}`, want: `{"type":"string","description":"{pattern: \"\\\\bx\"}"}`, changed: true,
		},
		"oneOf": {schema: `{"oneOf":[{"type":"null"}]}`, want: `{"anyOf":[{"type":"null"}]}`},
		"a reference is alone": {
			schema: `{"$ref":"#/$defs/A","$defs":{"A":{"type":"string"}}}`, want: `{"$defs":{"A":{"type":"string"}},"anyOf":[{"$ref":"#/$defs/A"}]}`,
		},
		"the same twice is no recursion": {
			schema: `{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"}],"$defs":{"A":{"type":"string"}}}`,
			want:   `{"anyOf":[{"$ref":"#/$defs/A"},{"$ref":"#/$defs/A"}],"$defs":{"A":{"type":"string"}}}`,
		},
		"enums of objects": {schema: `{"enum":[{}]}`, want: `{"description":"{enum: [{}]}"}`, changed: true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, changed, fault := form.FitSchema(rawjson.Value(test.schema), "f", form.Messages)
			if fault != nil || changed != test.changed {
				t.Fatalf("got changed %v, %v, want %v", changed, fault, test.changed)
			}
			same(t, got, []byte(test.want))
		})
	}
}

func TestFitSchemaRefuses(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		schema string
		to     form.Dialect
	}{
		"itself": {`{"properties":{"a":{"$ref":"#"}}}`, form.Messages},
		"through another": {
			`{"$ref":"#/$defs/A","$defs":{"A":{"items":{"$ref":"#/$defs/B"}},"B":{"anyOf":[{"$ref":"#/$defs/A"}]}}}`,
			form.Messages,
		},
		"escaped": {`{"$defs":{"a/b~":{"not":{"$ref":"#/$defs/a~1b~0"}}},"items":{"$ref":"#/$defs/a~1b~0"}}`, form.Messages},
		"deep":    {strings.Repeat(`{"items":`, 101) + "{}" + strings.Repeat("}", 101), form.Gemini},
		"long":    {`{"title":"` + strings.Repeat("x", 512<<10) + `"}`, form.Gemini},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			_, _, fault := form.FitSchema(rawjson.Value(test.schema), "response_format", test.to)
			if fault == nil || fault.Param != "response_format" {
				t.Errorf("got %v", fault)
			}
		})
	}
	// Whatever takes JSON Schema gets it as it is.
	if got, changed, fault := form.FitSchema(rawjson.Value(`{"minLength" : 1}`), "f", form.Chat); string(got) != `{"minLength" : 1}` ||
		changed || fault != nil {
		t.Errorf("got %s, %v, %v", got, changed, fault)
	}
}

// The words are those of the type Schema of google.golang.org/genai; whole numbers are texts in protobuf's JSON.
func TestFromOpenAPI(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct{ schema, want string }{
		"types": {
			`{"type":"OBJECT","properties":{"type":{"type":"STRING","format":"enum","enum":["A"]},"n":{"type":"INTEGER","format":"int32"}},"propertyOrdering":["n"]}`,
			`{"type":"object","properties":{"type":{"type":"string","enum":["A"]},"n":{"type":"integer","format":"int32"}}}`,
		},
		"nullable": {
			`{"type":"STRING","nullable":true,"enum":["A"]}`, `{"type":["string","null"],"enum":["A",null]}`,
		},
		"nullable union": {
			`{"anyOf":[{"type":"STRING"},{"type":"NUMBER"}],"nullable":true}`, `{"anyOf":[{"type":"string"},{"type":"number"},{"type":"null"}]}`,
		},
		"not nullable": {`{"type":"STRING","nullable":false}`, `{"type":"string"}`},
		"numbers in texts": {
			`{"type":"ARRAY","minItems":"1","maxItems":2,"items":{"type":"STRING","maxLength":"x"}}`,
			`{"type":"array","minItems":1,"maxItems":2,"items":{"type":"string","maxLength":"x"}}`,
		},
		"snake case": {
			`{"any_of":[{"type":"ARRAY","min_items":"1"}],"properties":{"min_items":{"type":"TYPE_UNSPECIFIED"}}}`,
			`{"anyOf":[{"type":"array","minItems":1}],"properties":{"min_items":{}}}`,
		},
		"example": {`{"example":{"type":"X"},"description":"d"}`, `{"examples":[{"type":"X"}],"description":"d"}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			got, fault := form.FromOpenAPI(rawjson.Value(test.schema), "f")
			if fault != nil {
				t.Fatal(fault)
			}
			same(t, got, []byte(test.want))
		})
	}
}

func FuzzSchema(f *testing.F) {
	for _, schema := range []string{
		`{"type":"object","properties":{"a":{"$ref":"#/$defs/A","minLength":1}},"$defs":{"A":{"allOf":[{"const":1}]}}}`,
		`{"any_of":[{"type":"ARRAY","min_items":"1"}],"nullable":true}`, `{"items":[true,false,1],"enum":[null]}`, `{"":{},"$ref":"#//"}`,
	} {
		f.Add([]byte(schema))
	}
	f.Fuzz(func(t *testing.T, document []byte) {
		if !rawjson.Valid(document) {
			return
		}
		schema := rawjson.Trim(document)
		for _, to := range []form.Dialect{form.Gemini, form.Messages} {
			if got, _, fault := form.FitSchema(schema, "f", to); fault == nil && !rawjson.Valid(got) {
				t.Errorf("to %v: %s", to, got)
			}
		}
		if got, fault := form.FromOpenAPI(schema, "f"); fault == nil && !rawjson.Valid(got) {
			t.Errorf("from OpenAPI: %s", got)
		}
	})
}

func BenchmarkFitSchema(b *testing.B) {
	schema := rawjson.Value(`{"type":"object","properties":{` +
		strings.Repeat(`"a":{"type":"string","minLength":1,"description":"text"},`, 100) + `"z":{}}}`)
	b.SetBytes(int64(len(schema)))
	b.ReportAllocs()
	for b.Loop() {
		if _, _, fault := form.FitSchema(schema, "f", form.Gemini); fault != nil {
			b.Fatal(fault)
		}
	}
}
