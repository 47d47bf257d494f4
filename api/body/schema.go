package body

import (
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// SchemaOf is the schema of a struct as the document refers to it.
func SchemaOf[T any](registry huma.Registry) *huma.Schema {
	return registry.Schema(reflect.TypeFor[T](), true, "")
}

// DeclareJSON declares a JSON request body from its struct.
func DeclareJSON[Fields any](registry huma.Registry) *huma.RequestBody {
	return &huma.RequestBody{
		Required: true, Content: map[string]*huma.MediaType{"application/json": {Schema: SchemaOf[Fields](registry)}},
	}
}

// DeclareForm declares a multipart request body from its struct.
func DeclareForm[Fields any](registry huma.Registry) *huma.RequestBody {
	return &huma.RequestBody{
		Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: SchemaOf[Fields](registry)}},
	}
}

// DeclareAnswer declares a 200 from its struct.
func DeclareAnswer[T any](registry huma.Registry, description string) map[string]*huma.Response {
	return map[string]*huma.Response{"200": {
		Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: SchemaOf[T](registry)}},
	}}
}

// TextOrTexts is a string or an array of strings.
type TextOrTexts struct{}

// Schema implements huma.SchemaProvider.
func (TextOrTexts) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString},
		{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}},
	}}
}

// AnyObject is an object whose members do not matter here.
func AnyObject() *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// ArrayOf is an array of such items.
func ArrayOf(items *huma.Schema) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: items}
}

// AnyOf is any of the alternatives.
func AnyOf(alternatives ...*huma.Schema) *huma.Schema { return &huma.Schema{OneOf: alternatives} }

// Text is any string.
func Text() *huma.Schema { return &huma.Schema{Type: huma.TypeString} }

// TextOrObject is a string or an object.
type TextOrObject struct{}

// Schema implements huma.SchemaProvider.
func (TextOrObject) Schema(huma.Registry) *huma.Schema { return AnyOf(Text(), AnyObject()) }

// TextOrObjects is a string or an array of objects.
type TextOrObjects struct{}

// Schema implements huma.SchemaProvider.
func (TextOrObjects) Schema(huma.Registry) *huma.Schema { return AnyOf(Text(), ArrayOf(AnyObject())) }

// TextOrTokens is a string, an array of strings, the tokens of a text, or an array of such.
type TextOrTokens struct{}

// Schema implements huma.SchemaProvider.
func (TextOrTokens) Schema(huma.Registry) *huma.Schema {
	tokens := ArrayOf(&huma.Schema{Type: huma.TypeInteger})
	return AnyOf(Text(), ArrayOf(Text()), tokens, ArrayOf(tokens))
}

// TextsOrDocuments is an array of strings or of objects.
type TextsOrDocuments struct{}

// Schema implements huma.SchemaProvider.
func (TextsOrDocuments) Schema(huma.Registry) *huma.Schema {
	return AnyOf(ArrayOf(Text()), ArrayOf(AnyObject()))
}

// TextOrParts is a string, an array of strings or an array of content parts.
type TextOrParts struct{}

// Schema implements huma.SchemaProvider.
func (TextOrParts) Schema(huma.Registry) *huma.Schema {
	return AnyOf(Text(), ArrayOf(Text()), ArrayOf(AnyObject()))
}

// File is a part of a form that is a file.
type File struct{}

// Schema implements huma.SchemaProvider.
func (File) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "binary"}
}
