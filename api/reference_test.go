package api_test

import (
	"encoding/json"
	"maps"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api"
)

// reference is one operation of the document.
type reference struct {
	name string
	*huma.Operation
}

// references returns the operations of the document.
func references(document *huma.OpenAPI) []reference {
	var found []reference
	for _, path := range slices.Sorted(maps.Keys(document.Paths)) {
		item := document.Paths[path]
		for method, operation := range map[string]*huma.Operation{
			"GET": item.Get, "POST": item.Post, "PATCH": item.Patch,
			"DELETE": item.Delete,
		} {
			if operation != nil {
				found = append(found, reference{method + " " + path, operation})
			}
		}
	}
	return found
}

// TestReference: each operation has a summary and a description, and an example of its body and of its JSON answer, which
// the schemas accept.
func TestReference(t *testing.T) {
	t.Parallel()
	document := api.Document()
	for _, operation := range references(document) {
		if operation.Summary == "" || operation.Description == "" {
			t.Errorf("%s has the summary %q and the description %q", operation.name, operation.Summary, operation.Description)
		}
		if operation.RequestBody != nil {
			checkExample(t, document, operation.name+", request", operation.RequestBody.Content, huma.ModeWriteToServer)
		}
		for status, response := range operation.Responses {
			if strings.HasPrefix(status, "2") && response.Content["application/json"] != nil {
				checkExample(t, document, operation.name+", answer "+status, response.Content, huma.ModeReadFromServer)
			}
		}
	}
}

// checkExample validates the example of a JSON body, or of the form of a body that takes no JSON.
func checkExample(t *testing.T, document *huma.OpenAPI, name string, content map[string]*huma.MediaType, mode huma.ValidateMode) {
	t.Helper()
	body := content["application/json"]
	if body == nil {
		body = content["multipart/form-data"]
	}
	if body == nil || body.Example == nil {
		t.Errorf("%s has no example", name)
		return
	}
	if body.Schema == nil {
		return
	}
	result := new(huma.ValidateResult)
	huma.Validate(document.Components.Schemas, body.Schema, huma.NewPathBuffer([]byte{}, 0), mode, body.Example, result)
	for _, err := range result.Errors {
		t.Errorf("%s: %v", name, err)
	}
}

// TestReferenceProperties: each property that a client or an operator sends or reads has a description.
func TestReferenceProperties(t *testing.T) {
	t.Parallel()
	document := api.Document()
	checked := map[*huma.Schema]bool{}
	var check func(name string, schema *huma.Schema)
	check = func(name string, schema *huma.Schema) {
		if schema == nil {
			return
		}
		if schema.Ref != "" {
			name, schema = schema.Ref[strings.LastIndex(schema.Ref, "/")+1:], document.Components.Schemas.SchemaFromRef(schema.Ref)
		}
		if checked[schema] {
			return
		}
		checked[schema] = true
		for property, of := range schema.Properties {
			if of.Ref == "" && of.Description == "" {
				t.Errorf("%s.%s has no description", name, property)
			}
			if slices.Contains([]string{"cost", "spent", "reserved"}, property) && !strings.Contains(of.Description, "currency") {
				t.Errorf("%s.%s has no unit: %q", name, property, of.Description)
			}
			check(name+"."+property, of)
		}
		check(name, schema.Items)
		for _, other := range slices.Concat(schema.OneOf, schema.AnyOf, schema.AllOf) {
			check(name, other)
		}
	}
	for _, operation := range references(document) {
		if operation.RequestBody != nil {
			for _, body := range operation.RequestBody.Content {
				check(operation.name, body.Schema)
			}
		}
		for _, response := range operation.Responses {
			for _, body := range response.Content {
				check(operation.name, body.Schema)
			}
		}
	}
	if len(checked) < 100 {
		t.Errorf("%d schemas were checked: the walk is wrong", len(checked))
	}
}

// TestReferenceTable: the table has only operations and properties that the document has.
func TestReferenceTable(t *testing.T) {
	t.Parallel()
	source, err := os.ReadFile("reference.json")
	if err != nil {
		t.Fatal(err)
	}
	var table struct {
		Operations map[string]struct {
			Description       string
			Request, Response any
		}
		Properties map[string]string
	}
	if err := json.Unmarshal(source, &table); err != nil {
		t.Fatal(err)
	}
	document := api.Document()
	operations, properties := map[string]bool{}, map[string]bool{}
	for _, operation := range references(document) {
		operations[operation.name] = true
	}
	for name, schema := range document.Components.Schemas.Map() {
		for property := range schema.Properties {
			properties[property], properties[name+"."+property] = true, true
		}
	}
	for name := range table.Operations {
		if !operations[name] {
			t.Errorf("no operation %s", name)
		}
	}
	for name := range table.Properties {
		if !properties[name] {
			t.Errorf("no property %s", name)
		}
	}
}
