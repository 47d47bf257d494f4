package body

import (
	"maps"
	"reflect"

	"github.com/danielgtaylor/huma/v2"
)

// SchemaOf returns the document's reference to the schema of a struct.
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
func DeclareForm[Form any](registry huma.Registry) *huma.RequestBody {
	return &huma.RequestBody{
		Required: true, Content: map[string]*huma.MediaType{"multipart/form-data": {Schema: SchemaOf[Form](registry)}},
	}
}

// DeclareEither declares a request body that is JSON or multipart, with a struct for each.
func DeclareEither[Fields, Form any](registry huma.Registry) *huma.RequestBody {
	either := DeclareJSON[Fields](registry)
	maps.Copy(either.Content, DeclareForm[Form](registry).Content)
	return either
}

// DeclareAnswer declares an answer 200 from its struct.
func DeclareAnswer[T any](registry huma.Registry, description string) map[string]*huma.Response {
	return map[string]*huma.Response{"200": {
		Description: description, Content: map[string]*huma.MediaType{"application/json": {Schema: SchemaOf[T](registry)}},
	}}
}

// DeclareTable declares an answer 200 that is JSON or CSV.
func DeclareTable[T any](registry huma.Registry, description string) map[string]*huma.Response {
	answer := DeclareAnswer[T](registry, description)
	answer["200"].Content["text/csv"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	return answer
}

// DeclareContent declares the query and the answers of an operation that serves an output of a video task.
func DeclareContent(op *huma.Operation, fault *huma.Schema) {
	file := &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString, Format: "binary"}}
	whole := map[string]*huma.MediaType{"video/*": file, "image/*": file}
	ranges := map[string]*huma.MediaType{"video/*": file, "image/*": file, "multipart/byteranges": file}
	refused := map[string]*huma.MediaType{"application/json": {Schema: fault}}
	op.Parameters = append(op.Parameters,
		&huma.Param{
			Name: "index", In: "query", Description: "Index of the video, from 0",
			Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(float64)},
		},
		&huma.Param{
			Name: "variant", In: "query", Description: "A variant that the upstream does not make is answered 404",
			Schema: &huma.Schema{Type: huma.TypeString, Enum: []any{"video", "thumbnail", "spritesheet"}},
		})
	op.Responses = map[string]*huma.Response{
		"200": {Description: "The video, or the picture that the variant names", Content: whole},
		"206": {Description: "The requested ranges", Content: ranges},
		"304": {Description: "The client's copy of the video is current"},
		"412": {Description: "The video does not match the request's conditions", Content: refused},
		"416": {Description: "The range does not exist", Content: refused},
	}
}

// Either declares a value of one of two types: texts, numbers, switches, objects as maps, arrays of such, and other Eithers.
type Either[A, B any] struct{}

// Schema implements huma.SchemaProvider.
func (Either[A, B]) Schema(huma.Registry) *huma.Schema {
	either := new(huma.Schema)
	for _, one := range []*huma.Schema{alternative(reflect.TypeFor[A]()), alternative(reflect.TypeFor[B]())} {
		if one.OneOf == nil {
			one = AnyOf(one)
		}
		either.OneOf = append(either.OneOf, one.OneOf...)
	}
	return either
}

func alternative(t reflect.Type) *huma.Schema {
	switch t.Kind() {
	case reflect.Struct:
		return reflect.Zero(t).Interface().(huma.SchemaProvider).Schema(nil)
	case reflect.Slice:
		return ArrayOf(alternative(t.Elem()))
	case reflect.Map:
		return AnyObject()
	}
	return &huma.Schema{Type: map[reflect.Kind]string{
		reflect.String: huma.TypeString, reflect.Bool: huma.TypeBoolean, reflect.Int: huma.TypeInteger, reflect.Float64: huma.TypeNumber,
	}[t.Kind()]}
}

// AnyObject is an object with any members.
func AnyObject() *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

// ArrayOf is an array of the items.
func ArrayOf(items *huma.Schema) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: items}
}

// AnyOf is any of the alternatives.
func AnyOf(alternatives ...*huma.Schema) *huma.Schema { return &huma.Schema{OneOf: alternatives} }

// Nullable declares that properties with object schemas may also be null.
func Nullable(s *huma.Schema, properties ...string) *huma.Schema {
	for _, name := range properties {
		whole := s.Properties[name]
		s.Properties[name] = &huma.Schema{Description: whole.Description, AnyOf: []*huma.Schema{{Ref: whole.Ref}, {Type: "null"}}}
	}
	return s
}

// Described is any string, with a description.
func Described(description string) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Description: description}
}

// Text is any string.
func Text() *huma.Schema { return &huma.Schema{Type: huma.TypeString} }

// File is a part of a form with a file.
type File struct{}

// Schema implements huma.SchemaProvider.
func (File) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{Type: huma.TypeString, Format: "binary"}
}
