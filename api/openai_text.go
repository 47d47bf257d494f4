package api

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// The bodies of the calls about texts. They are never filled: the schemas and the field checks are compiled from them.
type (
	openAIEmbedding struct {
		Model          string            `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Input          body.TextOrTokens `json:"input" doc:"String or string array; tokens are taken too"`
		EncodingFormat string            `json:"encoding_format,omitempty" enum:"float,base64"`
		Dimensions     int               `json:"dimensions,omitempty" doc:"Output vector dimension"`
	}
	openAIEngineEmbedding struct {
		Model          string            `json:"model,omitempty" doc:"The path's model counts"`
		Input          body.TextOrTokens `json:"input" doc:"String or string array; tokens are taken too"`
		EncodingFormat string            `json:"encoding_format,omitempty" enum:"float,base64"`
		Dimensions     int               `json:"dimensions,omitempty" doc:"Output vector dimension"`
	}
	openAICompletion struct {
		Model         string            `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Prompt        body.TextOrTokens `json:"prompt" doc:"String or string array; tokens are taken too"`
		MaxTokens     int               `json:"max_tokens,omitempty" doc:"Max generated tokens"`
		Temperature   float64           `json:"temperature,omitempty" doc:"Sampling temperature"`
		TopP          float64           `json:"top_p,omitempty" doc:"Nucleus sampling"`
		N             int               `json:"n,omitempty" doc:"Number of generations"`
		Stream        bool              `json:"stream,omitempty" doc:"Stream the response as server-sent events"`
		StreamOptions map[string]any    `json:"stream_options,omitempty"`
		Stop          body.TextOrTexts  `json:"stop,omitzero" doc:"Stop sequences"`
		Suffix        string            `json:"suffix,omitempty"`
		Echo          bool              `json:"echo,omitempty"`
	}
	openAIRerank struct {
		Model           string                `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Query           string                `json:"query"`
		Documents       body.TextsOrDocuments `json:"documents" doc:"Strings or objects"`
		TopN            int                   `json:"top_n,omitempty" doc:"Return first N results"`
		ReturnDocuments bool                  `json:"return_documents,omitempty"`
	}
	openAIModeration struct {
		Input body.TextOrParts `json:"input" doc:"String or string array; content parts are taken too"`
		Model string           `json:"model,omitempty" doc:"Model id; the deployment may have a default"`
	}
)

// addOpenAIText adds embeddings, completions, rerank and moderations.
func (s *Server) addOpenAIText(g *group) {
	embeddings := []string{"Embeddings"}
	addOpenAICall[openAIEmbedding](s, g, openAICall{
		name: providers.Embeddings,
		Operation: huma.Operation{
			OperationID: "createEmbedding", Path: "/v1/embeddings", Tags: embeddings, Summary: "Embeddings",
			Responses: relayedAnswer("The vectors", false),
		},
	})
	// A name may hold slashes and colons, which no path parameter of the router does.
	addOpenAICall[openAIEngineEmbedding](s, g, openAICall{
		name: providers.Embeddings, route: "/v1/engines/*", settle: engineModel,
		Operation: huma.Operation{
			OperationID: "createEngineEmbedding", Path: "/v1/engines/{model}" + engineEmbeddings, Tags: embeddings,
			Summary:    "Embeddings per engine",
			Parameters: []*huma.Param{pathParameter("model", "Model or engine id; it may hold slashes and colons")},
			Responses:  relayedAnswer("The vectors", false),
		},
	})
	addOpenAICall[openAICompletion](s, g, openAICall{
		name: providers.Completions, settle: streamUsage,
		Operation: huma.Operation{
			OperationID: "createCompletion", Path: "/v1/completions", Tags: []string{"Completions"}, Summary: "Text completion",
			Description: "Streaming and non-streaming. Fields that are not listed here reach the upstream untouched.",
			Responses:   relayedAnswer("A completion, or its chunks", true),
		},
	})
	addOpenAICall[openAIRerank](s, g, openAICall{
		name: providers.Rerank,
		Operation: huma.Operation{
			OperationID: "rerank", Path: "/v1/rerank", Tags: []string{"Rerank"}, Summary: "Rerank documents",
			Responses: relayedAnswer("The documents' scores", false),
		},
	})
	addOpenAICall[openAIModeration](s, g, openAICall{
		name: providers.Moderations, settle: s.moderationModelOf,
		Operation: huma.Operation{
			OperationID: "createModeration", Path: "/v1/moderations", Tags: []string{"Moderations"}, Summary: "Content check",
			Responses: relayedAnswer("The verdicts", false),
		},
	})
}

// engineEmbeddings is what follows the model in the path of an engine's embeddings.
const engineEmbeddings = "/embeddings"

// engineModel takes the model from the path.
func engineModel(r *http.Request, call *providers.Call, b *body.JSON) error {
	model, found := strings.CutSuffix(pathTail(r), engineEmbeddings)
	if !found {
		return nothingHere()
	}
	setModel(call, b, model)
	return nil
}

// moderationModelOf names the configured model where the body names none.
func (s *Server) moderationModelOf(_ *http.Request, call *providers.Call, b *body.JSON) error {
	if b.Value("model") != nil {
		return nil
	}
	if s.moderationModel == "" {
		return providers.InvalidField("model", "Invalid request: 'model' is required.")
	}
	setModel(call, b, s.moderationModel)
	return nil
}
