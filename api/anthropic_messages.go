package api

import (
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// anthropicMessages is the body of a message in format A. It is never filled: the schema and the field checks are
// compiled from it.
type anthropicMessages struct {
	Model             string             `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
	Messages          []map[string]any   `json:"messages" nullable:"false" doc:"Conversation messages"`
	MaxTokens         int                `json:"max_tokens" doc:"Max generated tokens"`
	System            body.TextOrObjects `json:"system,omitzero"`
	CacheControl      map[string]any     `json:"cache_control,omitempty"`
	InferenceGeo      string             `json:"inference_geo,omitempty"`
	Temperature       float64            `json:"temperature,omitempty"`
	TopP              float64            `json:"top_p,omitempty"`
	TopK              int                `json:"top_k,omitempty"`
	Stream            bool               `json:"stream,omitempty" doc:"Stream the response as server-sent events"`
	StopSequences     []string           `json:"stop_sequences,omitempty" nullable:"false"`
	Tools             []map[string]any   `json:"tools,omitempty" nullable:"false"`
	ToolChoice        map[string]any     `json:"tool_choice,omitempty"`
	Thinking          map[string]any     `json:"thinking,omitempty"`
	ContextManagement map[string]any     `json:"context_management,omitempty"`
	OutputConfig      map[string]any     `json:"output_config,omitempty"`
	OutputFormat      map[string]any     `json:"output_format,omitempty"`
	Container         body.TextOrObject  `json:"container,omitzero"`
	MCPServers        []map[string]any   `json:"mcp_servers,omitempty" nullable:"false"`
	Metadata          map[string]any     `json:"metadata,omitempty"`
	Speed             string             `json:"speed,omitempty" enum:"standard,fast"`
	ServiceTier       string             `json:"service_tier,omitempty" enum:"auto,standard_only"`
}

// anthropicCount is the body of a token count in format A: of a message, what it costs to read.
type anthropicCount struct {
	Model             string             `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
	Messages          []map[string]any   `json:"messages" nullable:"false" doc:"Conversation messages"`
	System            body.TextOrObjects `json:"system,omitzero"`
	CacheControl      map[string]any     `json:"cache_control,omitempty"`
	Tools             []map[string]any   `json:"tools,omitempty" nullable:"false"`
	ToolChoice        map[string]any     `json:"tool_choice,omitempty"`
	Thinking          map[string]any     `json:"thinking,omitempty"`
	ContextManagement map[string]any     `json:"context_management,omitempty"`
	OutputConfig      map[string]any     `json:"output_config,omitempty"`
	OutputFormat      map[string]any     `json:"output_format,omitempty"`
	MCPServers        []map[string]any   `json:"mcp_servers,omitempty" nullable:"false"`
	Speed             string             `json:"speed,omitempty" enum:"standard,fast"`
}

// anthropicTokens is the answer of a token count in format A.
type anthropicTokens struct {
	InputTokens int `json:"input_tokens"`
}

// addAnthropicMessages adds POST /v1/messages and /v1/messages/count_tokens.
func (s *Server) addAnthropicMessages(g *group) {
	registry := g.OpenAPI().Components.Schemas
	tags := []string{"Messages format (format A)"}
	g.handle(huma.Operation{
		OperationID: "createMessage", Method: http.MethodPost, Path: "/v1/messages", Tags: tags, Summary: "Messages",
		Description: "Streaming and non-streaming. Fields that are not listed here reach the upstream untouched.",
		Parameters:  anthropicParameters(),
		RequestBody: body.DeclareJSON[anthropicMessages](registry),
		Responses:   relayedAnswer("A message, or its events", true),
		Middlewares: s.metered(),
	}, s.relayAnthropic(providers.Messages, body.NewChecker[anthropicMessages](registry, "thinking.budget_tokens", "container.id")))
	g.handle(huma.Operation{
		OperationID: "countMessageTokens", Method: http.MethodPost, Path: "/v1/messages/count_tokens", Tags: tags,
		Summary:     "Count the tokens of a message",
		Parameters:  anthropicParameters(),
		RequestBody: body.DeclareJSON[anthropicCount](registry),
		Responses:   body.DeclareAnswer[anthropicTokens](registry, "The count"),
		Middlewares: s.metered(),
	}, s.relayAnthropic(providers.CountTokens, body.NewChecker[anthropicCount](registry)))
}

// relayAnthropic relays an operation of format A.
func (s *Server) relayAnthropic(name providers.Operation, check *body.Checker) handler {
	endpoint := providers.Endpoint{Format: providers.Anthropic, Operation: name}
	return func(x *exchange, r *http.Request) error {
		if anthropicVersion(r) == "" {
			return providers.InvalidField("vendorA-version", "Invalid request: the header 'vendorA-version' is required.")
		}
		raw, err := s.readBody(x, r)
		if err != nil {
			return err
		}
		b, err := check.Check(raw)
		if err != nil {
			return err
		}
		call := callOf(r, endpoint, b)
		if err := checkModel(call.Model); err != nil {
			return err
		}
		return s.callChecked(x, r, call, b)
	}
}

func anthropicParameters() []*huma.Param {
	text := &huma.Schema{Type: huma.TypeString}
	return []*huma.Param{
		{
			Name: "vendorA-version", In: "header", Schema: text,
			Description: "Version of the format, a date. This or `anthropic-version` is required.",
		},
		{Name: "anthropic-version", In: "header", Schema: text, Description: "What the vendor's own clients send in place of `vendorA-version`"},
		{Name: "x-api-key", In: "header", Schema: text, Description: "The token, in place of a bearer token"},
	}
}
