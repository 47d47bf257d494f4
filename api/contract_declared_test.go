package api_test

import (
	"maps"
	"slices"
	"strings"
	"testing"
)

// schema is as much of a JSON schema as the contract can ask for.
type schema struct {
	Ref         string `json:"$ref"`
	Type        any
	Format      string
	Description string
	Enum        []any
	Required    []string
	Properties  map[string]*schema
	Items       *schema
	OneOf       []*schema
}

// openAPI is as much of the document as the contract can ask for.
type openAPI struct {
	Paths map[string]map[string]struct {
		Tags        []string
		Parameters  []struct{ Name string }
		RequestBody struct {
			Required bool
			Content  map[string]struct{ Schema *schema }
		}
	}
	Components struct{ Schemas map[string]*schema }
}

func (d *openAPI) resolve(s *schema) *schema {
	if name, found := strings.CutPrefix(s.Ref, "#/components/schemas/"); found {
		return d.Components.Schemas[name]
	}
	return s
}

// kinds lists what a schema allows in the contract's words, and the strings of its enum.
func (d *openAPI) kinds(s *schema) (kinds, enum []string) {
	s = d.resolve(s)
	for _, one := range s.OneOf {
		k, e := d.kinds(one)
		kinds, enum = append(kinds, k...), append(enum, e...)
	}
	for _, value := range s.Enum {
		if word, ok := value.(string); ok {
			enum = append(enum, word)
		}
	}
	kind, _ := s.Type.(string)
	switch {
	case kind == "array":
		items, words := d.kinds(s.Items)
		enum = append(enum, words...)
		for _, item := range items {
			kinds = append(kinds, item+"[]")
		}
	case s.Format == "binary":
		kinds = append(kinds, "binary")
	case kind != "":
		kinds = append(kinds, kind)
	}
	return kinds, enum
}

// find returns the schema of a field and whether it is required.
func (d *openAPI) find(s *schema, name string) (field *schema, required bool) {
	for step := range strings.SplitSeq(name, ".") {
		s = d.resolve(s)
		bare, array := strings.CutSuffix(step, "[]")
		required = slices.Contains(s.Required, bare)
		if s = s.Properties[bare]; s == nil {
			return nil, false
		}
		if array {
			s = d.resolve(s).Items
		}
	}
	return s, required
}

// TestContractDeclared: the OpenAPI document has every operation of the contract with every parameter and field, of the
// contract's types, with at least the words of its enums, as required as there, and with a description where it has one.
func TestContractDeclared(t *testing.T) {
	t.Parallel()
	rec := newGateway(t, nil, nil).do(t, request("GET", "/openapi.json", ""))
	var document openAPI
	decode(t, rec.Body.Bytes(), &document)
	for _, o := range readContract(t) {
		name := o.Method + " " + o.Path
		declared, served := document.Paths[o.Path][strings.ToLower(o.Method)]
		if !served {
			t.Errorf("%s is not declared", name)
			continue
		}
		if len(declared.Tags) != 1 {
			t.Errorf("%s: got tags %v, want the contract's category", name, declared.Tags)
		}
		for _, parameter := range o.Parameters {
			if !slices.ContainsFunc(declared.Parameters, func(p struct{ Name string }) bool { return p.Name == parameter }) {
				t.Errorf("%s: parameter %s is not declared", name, parameter)
			}
		}
		mediaType := "application/json"
		if o.Form {
			mediaType = "multipart/form-data"
		}
		body := declared.RequestBody.Content[mediaType].Schema
		if len(o.Fields) > 0 && (body == nil || !declared.RequestBody.Required) {
			t.Errorf("%s: got a body of %v, required %v", name, slices.Collect(maps.Keys(declared.RequestBody.Content)),
				declared.RequestBody.Required)
			continue
		}
		for _, field := range o.Fields {
			got, required := document.find(body, field.Name)
			if got == nil {
				t.Errorf("%s: field %s is not declared", name, field.Name)
				continue
			}
			kinds, enum := document.kinds(got)
			for _, kind := range field.Types {
				if !slices.Contains(kinds, kind) {
					t.Errorf("%s: field %s is declared as %v, want %s", name, field.Name, kinds, kind)
				}
			}
			for _, word := range field.Enum {
				if !slices.Contains(enum, word) {
					t.Errorf("%s: field %s is declared as one of %v, want %s", name, field.Name, enum, word)
				}
			}
			if required != field.Required && leftOut[name+" "+field.Name] == "" {
				t.Errorf("%s: field %s is declared as required %v, want %v", name, field.Name, required, field.Required)
			}
			if field.Described && got.Description == "" && document.resolve(got).Description == "" {
				t.Errorf("%s: field %s has no description", name, field.Name)
			}
		}
	}
}
