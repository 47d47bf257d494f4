package api

import (
	"cmp"
	_ "embed" // the table of examples and descriptions
	"encoding/json"
	"maps"
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"
)

// referenceTable adds examples and descriptions to the declarations of operations and fields. It has an example of the request and of the
// answer by method and path. It has the description of a field that declares none by the property's name, alone or with its schema.
//
//go:embed reference.json
var referenceTable []byte

type reference struct {
	Operations map[string]struct {
		Description       string
		Request, Response any
	}
	Properties map[string]string
}

// fill adds the examples and descriptions of the table to the document. It ignores operations that are not in the document.
func (r *reference) fill(document *huma.OpenAPI) {
	for name, of := range r.Operations {
		method, path, _ := strings.Cut(name, " ")
		operation := methodOf(document.Paths[path], method)
		if operation == nil {
			continue
		}
		if operation.Description == "" {
			operation.Description = of.Description
		}
		if operation.RequestBody != nil {
			addExample(operation.RequestBody.Content, of.Request)
		}
		for _, status := range []string{"200", "201", "202"} {
			if response := operation.Responses[status]; response != nil {
				addExample(response.Content, of.Response)
				break // the 202 of a background call is the task
			}
		}
	}
	schemas := document.Components.Schemas.Map()
	for _, name := range slices.Sorted(maps.Keys(schemas)) { // structs with the same embedded struct share its fields' schemas
		r.describe(name, schemas[name])
	}
}

func (r *reference) describe(name string, schema *huma.Schema) {
	for property, of := range schema.Properties {
		if of.Ref == "" && of.Description == "" {
			own := *of // several properties may share a schema
			own.Description = cmp.Or(r.Properties[name+"."+property], r.Properties[property])
			schema.Properties[property], of = &own, &own
		}
		for _, other := range of.OneOf {
			r.describe(name+"."+property, other)
		}
	}
}

// addExample sets the example of the JSON body in content, or of its form if it accepts no JSON.
func addExample(content map[string]*huma.MediaType, example any) {
	if example == nil {
		return
	}
	for _, kind := range []string{"application/json", "multipart/form-data"} {
		if body := content[kind]; body != nil {
			body.Example = example
			return
		}
	}
}

func methodOf(item *huma.PathItem, method string) *huma.Operation {
	if item == nil {
		return nil
	}
	switch method {
	case http.MethodGet:
		return item.Get
	case http.MethodPost:
		return item.Post
	case http.MethodPatch:
		return item.Patch
	case http.MethodDelete:
		return item.Delete
	}
	return nil
}

// readReference parses the table. A test checks it.
func readReference() *reference {
	r := new(reference)
	_ = json.Unmarshal(referenceTable, r)
	return r
}
