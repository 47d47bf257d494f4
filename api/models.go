package api

import (
	"encoding/json"
	"net/http"
	"net/url"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// modelList renders the models a caller may use in one format.
type modelList struct {
	list func(models []providers.Model) any
	one  func(model providers.Model) any
}

// modelShapes are the shapes of the model list by the format the request's headers select. A format without a shape
// of its own gets OpenAI's.
func modelShapes() map[providers.Format]modelList {
	return map[providers.Format]modelList{
		providers.OpenAI:    {list: openAIModels, one: openAIModelOf},
		providers.Anthropic: {list: anthropicModels, one: anthropicModelOf},
		providers.Gemini:    {list: geminiModels, one: geminiModelOf},
	}
}

// addModels adds GET /v1/models and GET /v1/models/{model}.
func (s *Server) addModels(g *group) {
	registry := g.OpenAPI().Components.Schemas
	shapes := modelShapes()
	shapeOf := func(x *exchange) modelList {
		if shape, ok := shapes[x.format]; ok {
			return shape
		}
		return shapes[providers.OpenAI]
	}
	g.handle(huma.Operation{
		OperationID: "listModels", Method: http.MethodGet, Path: "/v1/models",
		Tags: []string{modelsTag}, Summary: "List models",
		Description: "The models the token may call. The request's headers choose the shape: `x-api-key` with `vendorA-version` " +
			"format A, `x-vendorB-api-key` or the query parameter `key` format B, else OpenAI's.",
		Parameters: modelListParameters(),
		Responses: oneOfAnswers("The models",
			body.SchemaOf[openAIModelList](registry), body.SchemaOf[anthropicModelList](registry), body.SchemaOf[geminiModelList](registry)),
	}, func(x *exchange, _ *http.Request) error {
		return writeJSON(x, shapeOf(x).list(s.modelsOf(x)))
	})

	// A name may hold slashes and colons, which no path parameter of the router does.
	g.handleAt("/v1/models/*", huma.Operation{
		OperationID: "getModel", Method: http.MethodGet, Path: "/v1/models/{model}",
		Tags: []string{modelsTag}, Summary: "Get a model",
		Parameters: append(modelListParameters(), pathParameter("model", "Model id; it may hold slashes and colons")),
		Responses: oneOfAnswers("The model",
			body.SchemaOf[openAIModel](registry), body.SchemaOf[anthropicModel](registry), body.SchemaOf[geminiModel](registry)),
	}, func(x *exchange, r *http.Request) error { return s.answerModel(x, r, shapeOf(x)) })
}

// answerModel answers with the one model the path names.
func (s *Server) answerModel(x *exchange, r *http.Request, shape modelList) error {
	name := pathTail(r)
	if err := checkModel(name); err != nil {
		return err
	}
	for _, model := range s.modelsOf(x) {
		if model.ID == name {
			return writeJSON(x, shape.one(model))
		}
	}
	return modelNotFound(name)
}

// oneOfAnswers declares a 200 of one of several shapes.
func oneOfAnswers(description string, shapes ...*huma.Schema) map[string]*huma.Response {
	return map[string]*huma.Response{"200": {
		Description: description,
		Content:     map[string]*huma.MediaType{"application/json": {Schema: &huma.Schema{OneOf: shapes}}},
	}}
}

// maxModelName bounds in bytes what may stand in logs and messages as a model's name, and in Temporal's search attributes.
const maxModelName = 255

// checkModel tells whether a name can be that of a model at all.
func checkModel(name string) error {
	switch {
	case name == "":
		return providers.InvalidField("model", "Invalid request: 'model' must not be empty.")
	case len(name) > maxModelName:
		return providers.InvalidField("model", "Invalid request: 'model' is too long.")
	}
	return nil
}

// modelsOf lists what a call of the caller would be taken for: what its group can call and its token may see and use.
func (s *Server) modelsOf(x *exchange) []providers.Model {
	all := s.router.Models(x.caller.Group)
	seen := make([]providers.Model, 0, len(all))
	for _, model := range all {
		if model, ok := visible(x.caller, model); ok {
			seen = append(seen, model)
		}
	}
	return seen
}

// modelListParameters declares what selects the list's shape. They are credentials too, and authenticate reads them.
func modelListParameters() []*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	return []*huma.Param{
		{Name: "key", In: "query", Schema: text, Description: "Format B key"},
		{Name: "x-api-key", In: "header", Schema: text},
		{Name: "vendorA-version", In: "header", Schema: text},
		{Name: "anthropic-version", In: "header", Schema: text, Description: "Selects format A with any credential"},
		{Name: "x-vendorB-api-key", In: "header", Schema: text},
	}
}

func pathParameter(name, description string) *huma.Param {
	return &huma.Param{
		Name: name, In: "path", Required: true, Description: description, Schema: &huma.Schema{Type: huma.TypeString},
	}
}

// pathTail is what the router's * stands for, decoded.
func pathTail(r *http.Request) string {
	tail := r.PathValue("*")
	if r.URL.RawPath == "" {
		return tail
	}
	if decoded, err := url.PathUnescape(tail); err == nil {
		return decoded
	}
	return tail
}

// writeJSON answers 200 with a value that always encodes.
func writeJSON(x *exchange, value any) error { return writeStatus(x, http.StatusOK, value) }

// writeStatus is writeJSON with a status of its own.
func writeStatus(x *exchange, status int, value any) error {
	x.Header().Set("Content-Type", "application/json")
	x.WriteHeader(status)
	encoder := json.NewEncoder(x)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(value); err != nil {
		return clientGone(err)
	}
	return nil
}
