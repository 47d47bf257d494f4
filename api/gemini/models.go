package gemini

import (
	"net/http"
	"slices"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/router"
)

// geminiModel is one entry of the model list in Gemini format.
type geminiModel struct {
	Name        string   `json:"name" doc:"models/ and the model id"`
	DisplayName string   `json:"displayName"`
	Methods     []string `json:"supportedGenerationMethods" nullable:"false" doc:"Operations of the model in this format"`
}

// geminiModelList is the model list in Gemini format. It has one page.
type geminiModelList struct {
	Models []geminiModel `json:"models" nullable:"false"`
}

// ModelShape returns the functions that render models in this format.
func ModelShape() calls.ModelShape {
	return calls.NewModelShape(newModel, func(models []geminiModel) geminiModelList { return geminiModelList{models} })
}

func newModel(model router.Model) geminiModel {
	entry := geminiModel{Name: "models/" + model.ID, DisplayName: model.ID, Methods: []string{}}
	for _, verb := range verbs() {
		if slices.Contains(model.Endpoints, providers.Endpoint{Format: providers.Gemini, Operation: verb.name}) {
			entry.Methods = append(entry.Methods, verb.verb)
		}
	}
	if model.Video != nil && slices.Contains(model.Endpoints, providers.Endpoint{Operation: providers.VideoTask}) {
		entry.Methods = append(entry.Methods, longVerb)
	}
	return entry
}

// addModels adds GET /v1beta/models and GET /v1beta/models/{model}, and routes the reads of a model's long-running operations.
func addModels(g *edge.Group, c *calls.Calls, read edge.PathOperation) {
	shape := ModelShape()
	tags := []string{edge.ModelsTag}
	registry := g.OpenAPI().Components.Schemas
	g.Handle(huma.Operation{
		OperationID: "listModelsB", Method: http.MethodGet, Path: "/v1beta/models", Tags: tags, Summary: "List models in format B",
		Responses: body.DeclareAnswer[geminiModelList](registry, "The models"),
	}, func(x *edge.Request, _ *http.Request) error {
		if err := x.TakeReads(1); err != nil {
			return err
		}
		return x.JSON(shape.List(c.Models(x.Caller)))
	})
	one := &huma.Operation{
		OperationID: "getModelB", Method: http.MethodGet, Path: "/v1beta/models/{model}", Tags: tags, Summary: "Get a model in format B",
		Parameters: []*huma.Param{edge.PathParameter("model", "Model id; it may contain slashes and colons")},
		Responses:  body.DeclareAnswer[geminiModel](registry, "The model"),
	}
	ofModel := edge.PathOperation{Operation: one, Handle: func(x *edge.Request, _ *http.Request, name string) error {
		model, err := c.Model(x.Caller, name)
		if err != nil {
			return err
		}
		return x.JSON(shape.One(model))
	}}
	ofModel.Document(g)
	read.Document(g)
	g.HandleAny(http.MethodGet, "/v1beta/models/*", func(_ *edge.Request, r *http.Request) (edge.PathOperation, string, error) {
		const operations = "/operations/"
		name := edge.PathTail(r)
		if at := strings.LastIndex(name, operations); at > 0 && !strings.Contains(name[at+len(operations):], "/") {
			return read, name[at+len(operations):], nil
		}
		return ofModel, name, nil
	})
}
