package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/anthropic"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/api/gemini"
	"modelrelay/api/openai"
	"modelrelay/providers"
)

func (s *Server) addModels(g *edge.Group) {
	registry := g.OpenAPI().Components.Schemas
	shapes := []calls.ModelShape{openai.ModelShape(), anthropic.ModelShape(), gemini.ModelShape()}
	shapeOf := func(x *edge.Request) calls.ModelShape {
		switch x.Format.Name {
		case providers.Anthropic:
			return shapes[1]
		case providers.Gemini:
			return shapes[2]
		default:
			return shapes[0]
		}
	}
	lists, ones := make([]*huma.Schema, len(shapes)), make([]*huma.Schema, len(shapes))
	for i, shape := range shapes {
		lists[i], ones[i] = shape.ListSchema(registry), shape.OneSchema(registry)
	}
	g.Handle(huma.Operation{
		OperationID: "listModels", Method: http.MethodGet, Path: "/v1/models",
		Tags: []string{edge.ModelsTag}, Summary: "List models",
		Description: "The models the token may call. The request selects the shape: `x-api-key` with `vendorA-version` selects format A " +
			"(Anthropic's), `x-vendorB-api-key` or the query parameter `key` for format B (Google Gemini's), everything else for OpenAI's.",
		Parameters: modelListParameters(),
		Responses:  oneOfAnswers("The models", lists),
	}, func(x *edge.Request, _ *http.Request) error {
		if err := x.TakeReads(1); err != nil {
			return err
		}
		return x.JSON(shapeOf(x).List(s.calls.Models(x.Caller)))
	})

	// A name may contain slashes and colons, which the router's path parameters do not match.
	g.HandleAt("/v1/models/*", huma.Operation{
		OperationID: "getModel", Method: http.MethodGet, Path: "/v1/models/{model}",
		Tags: []string{edge.ModelsTag}, Summary: "Get a model",
		Parameters: append(modelListParameters(), edge.PathParameter("model", "Model id; it may contain slashes and colons")),
		Responses:  oneOfAnswers("The model", ones),
	}, func(x *edge.Request, r *http.Request) error {
		model, err := s.calls.Model(x.Caller, edge.PathTail(r))
		if err != nil {
			return err
		}
		return x.JSON(shapeOf(x).One(model))
	})
}

func oneOfAnswers(description string, shapes []*huma.Schema) map[string]*huma.Response {
	return map[string]*huma.Response{"200": {
		Description: description,
		Content:     map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{OneOf: shapes}}},
	}}
}

// modelListParameters declares the parameters that select the list's shape. They are credentials too: authenticate reads them.
func modelListParameters() []*huma.Param {
	return []*huma.Param{
		edge.Parameter("query", "key", "The token, as clients of format B (Google Gemini's) send it; selects format B"),
		edge.Parameter("header", "x-api-key", "The token; with vendorA-version it selects format A (Anthropic's)"),
		edge.Parameter("header", "vendorA-version", "Version of format A; selects format A with x-api-key"),
		edge.Parameter("header", "anthropic-version", "Selects format A with any credential"),
		edge.Parameter("header", "x-vendorB-api-key", "The token; selects format B"),
	}
}
