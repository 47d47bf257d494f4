package api

import (
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// geminiModel is one entry of the model list in format B.
type geminiModel struct {
	Name        string   `json:"name" doc:"models/ and the model id"`
	DisplayName string   `json:"displayName"`
	Methods     []string `json:"supportedGenerationMethods" nullable:"false" doc:"What the model takes in this format"`
}

// geminiModelList is the model list in format B. It has one page.
type geminiModelList struct {
	Models []geminiModel `json:"models" nullable:"false"`
}

func geminiModelOf(model providers.Model) any { return newGeminiModel(model) }

func newGeminiModel(model providers.Model) geminiModel {
	entry := geminiModel{Name: "models/" + model.ID, DisplayName: model.ID, Methods: []string{}}
	for _, verb := range geminiVerbs() {
		if slices.Contains(model.Endpoints, providers.Endpoint{Format: providers.Gemini, Operation: verb.name}) {
			entry.Methods = append(entry.Methods, verb.verb)
		}
	}
	return entry
}

func geminiModels(models []providers.Model) any {
	list := geminiModelList{Models: make([]geminiModel, 0, len(models))}
	for _, model := range models {
		list.Models = append(list.Models, newGeminiModel(model))
	}
	return list
}

// addGeminiModels adds GET /v1beta/models and GET /v1beta/models/{model}.
func (s *Server) addGeminiModels(g *group) {
	registry := g.OpenAPI().Components.Schemas
	shape := modelList{list: geminiModels, one: geminiModelOf}
	tags := []string{modelsTag}
	g.handle(huma.Operation{
		OperationID: "listModelsB", Method: http.MethodGet, Path: "/v1beta/models", Tags: tags, Summary: "List models in format B",
		Responses: body.DeclareAnswer[geminiModelList](registry, "The models"),
	}, func(x *exchange, _ *http.Request) error {
		return writeJSON(x, shape.list(s.modelsOf(x)))
	})
	g.handleAt("/v1beta/models/*", huma.Operation{
		OperationID: "getModelB", Method: http.MethodGet, Path: "/v1beta/models/{model}", Tags: tags, Summary: "Get a model in format B",
		Parameters: []*huma.Param{pathParameter("model", "Model id; it may hold slashes and colons")},
		Responses:  body.DeclareAnswer[geminiModel](registry, "The model"),
	}, func(x *exchange, r *http.Request) error { return s.answerModel(x, r, shape) })
}
