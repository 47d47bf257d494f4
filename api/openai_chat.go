package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// openAIChat is the body of a chat completion. It is never filled: the schema and the field checks are compiled from it.
type openAIChat struct {
	Model               string           `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
	Messages            []map[string]any `json:"messages" nullable:"false" doc:"Conversation messages"`
	Temperature         float64          `json:"temperature,omitempty" doc:"Sampling temperature"`
	TopP                float64          `json:"top_p,omitempty" doc:"Nucleus sampling"`
	N                   int              `json:"n,omitempty" doc:"Number of generations"`
	Stream              bool             `json:"stream,omitempty" doc:"Stream the response as server-sent events"`
	StreamOptions       map[string]any   `json:"stream_options,omitempty"`
	Stop                body.TextOrTexts `json:"stop,omitzero" doc:"Stop sequences"`
	MaxTokens           int              `json:"max_tokens,omitempty" doc:"Max generated tokens"`
	MaxCompletionTokens int              `json:"max_completion_tokens,omitempty" doc:"Max completion tokens"`
	PresencePenalty     float64          `json:"presence_penalty,omitempty"`
	FrequencyPenalty    float64          `json:"frequency_penalty,omitempty"`
	LogitBias           map[string]any   `json:"logit_bias,omitempty"`
	User                string           `json:"user,omitempty"`
	Tools               []map[string]any `json:"tools,omitempty" nullable:"false"`
	ToolChoice          openAIToolChoice `json:"tool_choice,omitzero"`
	ResponseFormat      map[string]any   `json:"response_format,omitempty"`
	Seed                int64            `json:"seed,omitempty"`
	ReasoningEffort     string           `json:"reasoning_effort,omitempty" enum:"none,minimal,low,medium,high,xhigh,max" doc:"For reasoning-capable models"`
	Modalities          []string         `json:"modalities,omitempty" nullable:"false" enum:"text,audio"`
	Audio               map[string]any   `json:"audio,omitempty"`
}

// openAIToolChoice is a word or an object.
type openAIToolChoice struct{}

// Schema implements huma.SchemaProvider.
func (openAIToolChoice) Schema(huma.Registry) *huma.Schema {
	return &huma.Schema{OneOf: []*huma.Schema{
		{Type: huma.TypeString, Enum: []any{"none", "auto", "required"}},
		{Type: huma.TypeObject, AdditionalProperties: true},
	}}
}

// addOpenAIChat adds POST /v1/chat/completions.
func (s *Server) addOpenAIChat(g *group) {
	addOpenAICall[openAIChat](s, g, openAICall{
		name: providers.Chat, settle: streamUsage,
		Operation: huma.Operation{
			OperationID: "createChatCompletion", Path: "/v1/chat/completions",
			Tags: []string{"Chat format"}, Summary: "Chat completions",
			Description: "Streaming and non-streaming. Fields that are not listed here reach the upstream untouched.",
			Responses:   relayedAnswer("A chat completion, or its chunks", true),
		},
	})
}

// callOf makes the call of a checked JSON body, whatever it says of the model.
func callOf(r *http.Request, endpoint providers.Endpoint, b *body.JSON) providers.Call {
	return providers.Call{
		Endpoint: endpoint, Model: b.Text("model"), ModelAt: b.Span("model"), Stream: b.Flag("stream"),
		ContentType: "application/json", Header: callHeader(r), Body: b.Raw, OpenValues: b.Unlisted != nil,
		Affinity: affinityOf(r, endpoint, b),
	}
}
