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

// relayedAnswer declares the 200 of a relayed call, whose body is the upstream's.
func relayedAnswer(description string, streams bool) map[string]*huma.Response {
	object := &huma.Schema{Type: huma.TypeObject, AdditionalProperties: true}
	content := map[string]*huma.MediaType{"application/json": {Schema: object}}
	if streams {
		content["text/event-stream"] = &huma.MediaType{Schema: &huma.Schema{Type: huma.TypeString}}
	}
	return map[string]*huma.Response{"200": {Description: description, Content: content}}
}
