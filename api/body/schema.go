package api

import "github.com/danielgtaylor/huma/v2"

// textOrTexts is a string or an array of strings.
type textOrTexts struct{}

// Schema implements huma.SchemaProvider.
func (textOrTexts) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString},
		{Type: huma.TypeArray, Items: &huma.Schema{Type: huma.TypeString}},
	}}
}

// anyObject is an object whose members do not matter here.
func anyObject() *huma.Schema {
	return &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
}

func arrayOf(items *huma.Schema) *huma.Schema {
	return &huma.Schema{Type: huma.TypeArray, Items: items}
}

func anyOf(alternatives ...*huma.Schema) *huma.Schema { return &huma.Schema{OneOf: alternatives} }

func aText() *huma.Schema { return &huma.Schema{Type: huma.TypeString} }

// textOrObject is a string or an object.
type textOrObject struct{}

// Schema implements huma.SchemaProvider.
func (textOrObject) Schema(huma.Registry) *huma.Schema { return anyOf(aText(), anyObject()) }

// textOrObjects is a string or an array of objects.
type textOrObjects struct{}

// Schema implements huma.SchemaProvider.
func (textOrObjects) Schema(huma.Registry) *huma.Schema { return anyOf(aText(), arrayOf(anyObject())) }

// textOrTokens is a string, an array of strings, the tokens of a text, or an array of such.
type textOrTokens struct{}

// Schema implements huma.SchemaProvider.
func (textOrTokens) Schema(huma.Registry) *huma.Schema {
	tokens := arrayOf(&huma.Schema{Type: huma.TypeInteger})
	return anyOf(aText(), arrayOf(aText()), tokens, arrayOf(tokens))
}

// textsOrDocuments is an array of strings or of objects.
type textsOrDocuments struct{}

// Schema implements huma.SchemaProvider.
func (textsOrDocuments) Schema(huma.Registry) *huma.Schema {
	return anyOf(arrayOf(aText()), arrayOf(anyObject()))
}

// textOrParts is a string, an array of strings or an array of content parts.
type textOrParts struct{}

// Schema implements huma.SchemaProvider.
func (textOrParts) Schema(huma.Registry) *huma.Schema {
	return anyOf(aText(), arrayOf(aText()), arrayOf(anyObject()))
}

// relayedAnswer declares the 200 of a relayed call, whose body is the upstream's.
func relayedAnswer(description string, streams bool) map[string]*huma.Response {
	object := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	content := map[string]*huma.MediaType{"application/json": {Schema: object}}
	if streams {
		content["text/event-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return map[string]*huma.Response{"200": {Description: description, Content: content}}
}
