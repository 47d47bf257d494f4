package openai

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/providers"
)

// openAIChat is the body of a chat completion. It is never filled: the schema and the field checks are compiled from it.
type openAIChat struct {
	Model               string                        `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
	Messages            []map[string]any              `json:"messages" nullable:"false" doc:"Conversation messages"`
	Temperature         float64                       `json:"temperature,omitempty" doc:"Sampling temperature"`
	TopP                float64                       `json:"top_p,omitempty" doc:"Nucleus sampling"`
	N                   int                           `json:"n,omitempty" doc:"Number of generations"`
	Stream              bool                          `json:"stream,omitempty" doc:"Stream the response as server-sent events"`
	StreamOptions       map[string]any                `json:"stream_options,omitempty"`
	Stop                body.Either[string, []string] `json:"stop,omitzero" doc:"Stop sequences"`
	MaxTokens           int                           `json:"max_tokens,omitempty" doc:"Max generated tokens"`
	MaxCompletionTokens int                           `json:"max_completion_tokens,omitempty" doc:"Max completion tokens"`
	PresencePenalty     float64                       `json:"presence_penalty,omitempty"`
	FrequencyPenalty    float64                       `json:"frequency_penalty,omitempty"`
	LogitBias           map[string]any                `json:"logit_bias,omitempty"`
	User                string                        `json:"user,omitempty"`
	Tools               []map[string]any              `json:"tools,omitempty" nullable:"false"`
	ToolChoice          openAIToolChoice              `json:"tool_choice,omitzero"`
	ResponseFormat      map[string]any                `json:"response_format,omitempty"`
	Seed                int64                         `json:"seed,omitempty"`
	ReasoningEffort     string                        `json:"reasoning_effort,omitempty" enum:"none,minimal,low,medium,high,xhigh,max" doc:"For reasoning-capable models"`
	Modalities          []string                      `json:"modalities,omitempty" nullable:"false" enum:"text,audio"`
	Audio               map[string]any                `json:"audio,omitempty"`
}

type openAIToolChoice struct{}

// Schema implements huma.SchemaProvider.
func (openAIToolChoice) Schema(huma.Registry) *huma.Schema {
	return body.AnyOf(&huma.Schema{Type: huma.TypeString, Enum: []any{"none", "auto", "required"}}, body.AnyObject())
}

func (a adder) addChat() {
	addCall[openAIChat](a, relayed{
		name: providers.Chat, finish: streamUsage,
		Operation: huma.Operation{
			OperationID: "createChatCompletion", Path: "/v1/chat/completions",
			Tags: []string{"Chat format"}, Summary: "Chat completions",
			Description: "Streaming and non-streaming. Fields that are not listed here reach the upstream untouched.",
			Responses:   calls.DeclareAnswer("A chat completion, or its chunks", true),
		},
	})
}

// streamUsage makes an upstream report the usage of a stream, which it does only on request.
func streamUsage(_ *http.Request, call *calls.Call, b *body.JSON) error {
	if call.Stream {
		requestUsage(call, b)
	}
	return nil
}

const includeUsage = `"include_usage":true`

// requestUsage edits the body so that the upstream reports the usage of a stream. A client receives the report only if it requested it.
func requestUsage(call *calls.Call, b *body.JSON) {
	options := b.Span("stream_options")
	switch {
	case options == (providers.Span{}):
		call.UsageEdit = body.InsertMember(b.Raw, 0, `"stream_options":{`+includeUsage+`}`)
		call.Edits = append(call.Edits, call.UsageEdit)
	case b.Value("stream_options") == nil:
		call.UsageEdit = providers.Edit{At: options, Text: []byte("{" + includeUsage + "}")}
		call.Edits = append(call.Edits, call.UsageEdit)
	default:
		requested := b.Value("stream_options").Get("include_usage")
		switch string(requested) {
		case "":
			call.Edits = append(call.Edits, body.InsertMember(b.Raw, options.From, includeUsage))
		case "false", "null":
			call.Edits = append(call.Edits, providers.Edit{At: b.SpanOf(requested), Text: []byte("true")})
		default:
			return // already requested, or not a boolean, which the upstream refuses
		}
	}
	call.HideUsage = true
}
