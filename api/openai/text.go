package openai

import (
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// textOrTokens is a string, an array of strings, the tokens of a text, or an array of such token arrays.
type textOrTokens = body.Either[body.Either[string, []string], body.Either[[]int, [][]int]]

// The bodies of the text calls. They are never filled: the schemas and the field checks are compiled from them.
type (
	openAIEmbedding struct {
		Model          string       `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Input          textOrTokens `json:"input" doc:"String or string array; tokens are accepted too"`
		EncodingFormat string       `json:"encoding_format,omitempty" enum:"float,base64"`
		Dimensions     int          `json:"dimensions,omitempty" doc:"Output vector dimension"`
	}
	openAIEngineEmbedding struct {
		Model          string       `json:"model,omitempty" doc:"The model of the path has priority"`
		Input          textOrTokens `json:"input" doc:"String or string array; tokens are accepted too"`
		EncodingFormat string       `json:"encoding_format,omitempty" enum:"float,base64"`
		Dimensions     int          `json:"dimensions,omitempty" doc:"Output vector dimension"`
	}
	openAICompletion struct {
		Model         string                        `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Prompt        textOrTokens                  `json:"prompt" doc:"String or string array; tokens are accepted too"`
		MaxTokens     int                           `json:"max_tokens,omitempty" doc:"Max generated tokens"`
		Temperature   float64                       `json:"temperature,omitempty" doc:"Sampling temperature"`
		TopP          float64                       `json:"top_p,omitempty" doc:"Nucleus sampling"`
		N             int                           `json:"n,omitempty" doc:"Number of generations"`
		Stream        bool                          `json:"stream,omitempty" doc:"Stream the response as server-sent events"`
		StreamOptions map[string]any                `json:"stream_options,omitempty"`
		Stop          body.Either[string, []string] `json:"stop,omitzero" doc:"Stop sequences"`
		Suffix        string                        `json:"suffix,omitempty"`
		Echo          bool                          `json:"echo,omitempty"`
	}
	openAIRerank struct {
		Model           string                                  `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
		Query           string                                  `json:"query"`
		Documents       body.Either[[]string, []map[string]any] `json:"documents" doc:"Strings or objects"`
		TopN            int                                     `json:"top_n,omitempty" doc:"Return first N results"`
		ReturnDocuments bool                                    `json:"return_documents,omitempty"`
	}
	openAIModeration struct {
		Input body.Either[string, body.Either[[]string, []map[string]any]] `json:"input" doc:"String or string array; content parts are accepted too"`
		Model string                                                       `json:"model,omitempty" doc:"Model id; the deployment may have a default"`
	}
)

func (a adder) addText(moderationModel string) {
	embeddings := []string{"Embeddings"}
	addCall[openAIEmbedding](a, relayed{
		name: providers.Embeddings,
		Operation: huma.Operation{
			OperationID: "createEmbedding", Path: "/v1/embeddings", Tags: embeddings, Summary: "Embeddings",
			Responses: calls.DeclareAnswer("The vectors", false),
		},
	})
	// A name may contain slashes and colons, which the router's path parameters do not match.
	addCall[openAIEngineEmbedding](a, relayed{
		name: providers.Embeddings, route: "/v1/engines/*", finish: engineModel,
		Operation: huma.Operation{
			OperationID: "createEngineEmbedding", Path: "/v1/engines/{model}" + engineEmbeddings, Tags: embeddings,
			Summary:    "Embeddings per engine",
			Parameters: []*huma.Param{edge.PathParameter("model", "Model or engine id; it may contain slashes and colons")},
			Responses:  calls.DeclareAnswer("The vectors", false),
		},
	})
	addCall[openAICompletion](a, relayed{
		name: providers.Completions, finish: streamUsage,
		Operation: huma.Operation{
			OperationID: "createCompletion", Path: "/v1/completions", Tags: []string{"Completions"}, Summary: "Text completion",
			Description: "Streaming and non-streaming. Fields that are not listed here reach the upstream untouched.",
			Responses:   calls.DeclareAnswer("A completion, or its chunks", true),
		},
	})
	addCall[openAIRerank](a, relayed{
		name: providers.Rerank,
		Operation: huma.Operation{
			OperationID: "rerank", Path: "/v1/rerank", Tags: []string{"Rerank"}, Summary: "Rerank documents",
			Responses: calls.DeclareAnswer("The documents' scores", false),
		},
	})
	addCall[openAIModeration](a, relayed{
		name: providers.Moderations, finish: moderationModelOf(moderationModel),
		Operation: huma.Operation{
			OperationID: "createModeration", Path: "/v1/moderations", Tags: []string{"Moderations"}, Summary: "Content check",
			Responses: calls.DeclareAnswer("The verdicts", false),
		},
	})
}

const engineEmbeddings = "/embeddings"

func engineModel(r *http.Request, call *calls.Call, b *body.JSON) error {
	model, found := strings.CutSuffix(edge.PathTail(r), engineEmbeddings)
	if !found {
		return edge.NothingHere()
	}
	setModel(call, b, model)
	return nil
}

// moderationModelOf sets the configured model if the body has no model.
func moderationModelOf(model string) func(*http.Request, *calls.Call, *body.JSON) error {
	return func(_ *http.Request, call *calls.Call, b *body.JSON) error {
		if b.Value("model") != nil {
			return nil
		}
		if model == "" {
			return providers.InvalidField("model", "Invalid request: 'model' is required.")
		}
		setModel(call, b, model)
		return nil
	}
}
