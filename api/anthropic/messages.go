package anthropic

import (
	"bytes"
	"maps"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// messagesPath is the path of the format's messages.
const messagesPath = "/v1/messages"

// MessageFields are the fields of a message and of a token count.
type MessageFields struct {
	Model             string                                `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
	Messages          []map[string]any                      `json:"messages" nullable:"false" doc:"Conversation messages"`
	System            body.Either[string, []map[string]any] `json:"system,omitzero"`
	CacheControl      map[string]any                        `json:"cache_control,omitempty"`
	Tools             []map[string]any                      `json:"tools,omitempty" nullable:"false"`
	ToolChoice        map[string]any                        `json:"tool_choice,omitempty"`
	Thinking          map[string]any                        `json:"thinking,omitempty"`
	ContextManagement map[string]any                        `json:"context_management,omitempty"`
	OutputConfig      map[string]any                        `json:"output_config,omitempty"`
	OutputFormat      map[string]any                        `json:"output_format,omitempty"`
	MCPServers        []map[string]any                      `json:"mcp_servers,omitempty" nullable:"false"`
	Speed             string                                `json:"speed,omitempty" enum:"standard,fast"`
}

// anthropicMessages is the body of a message in Anthropic format. It is never filled: the schema and the field checks are compiled from it.
type anthropicMessages struct {
	MessageFields
	MaxTokens     int                                 `json:"max_tokens" doc:"Max generated tokens"`
	InferenceGeo  string                              `json:"inference_geo,omitempty"`
	Temperature   float64                             `json:"temperature,omitempty"`
	TopP          float64                             `json:"top_p,omitempty"`
	TopK          int                                 `json:"top_k,omitempty"`
	Stream        bool                                `json:"stream,omitempty" doc:"Stream the response as server-sent events"`
	StopSequences []string                            `json:"stop_sequences,omitempty" nullable:"false"`
	Container     body.Either[string, map[string]any] `json:"container,omitzero"`
	Metadata      map[string]any                      `json:"metadata,omitempty"`
	ServiceTier   string                              `json:"service_tier,omitempty" enum:"auto,standard_only"`
}

// anthropicCount is the body of a token count in Anthropic format: it counts the input tokens of a message.
type anthropicCount struct{ MessageFields }

// anthropicTokens is the answer of a token count in Anthropic format.
type anthropicTokens struct {
	InputTokens int `json:"input_tokens"`
}

// Add adds POST /v1/messages and /v1/messages/count_tokens.
func Add(g *edge.Group, c *calls.Calls) {
	registry := g.OpenAPI().Components.Schemas
	tags := []string{"Messages format (format A)"}
	g = g.With(calls.Access())
	g.Handle(huma.Operation{
		OperationID: "createMessage", Method: http.MethodPost, Path: messagesPath, Tags: tags, Summary: "Messages",
		Description: "Streaming and non-streaming. Fields that are not listed here reach the upstream untouched.",
		Parameters:  parameters(),
		RequestBody: body.DeclareJSON[anthropicMessages](registry),
		Responses:   calls.DeclareAnswer("A message, or its events", true),
	}, c.Relayed(read(providers.Messages, body.NewChecker[anthropicMessages](registry, "thinking.budget_tokens", "container.id"))))
	g.Handle(huma.Operation{
		OperationID: "countMessageTokens", Method: http.MethodPost, Path: messagesPath + "/count_tokens", Tags: tags,
		Summary:     "Count the tokens of a message",
		Parameters:  parameters(),
		RequestBody: body.DeclareJSON[anthropicCount](registry),
		Responses:   body.DeclareAnswer[anthropicTokens](registry, "The count"),
	}, c.Relayed(read(providers.CountTokens, body.NewChecker[anthropicCount](registry))))
}

func read(name providers.Operation, check *body.Checker) calls.Reader {
	endpoint := providers.Endpoint{Format: providers.Anthropic, Operation: name}
	return func(x *edge.Request, r *http.Request, raw []byte) (call *calls.Call, err error) {
		version := version(r)
		if version == "" {
			return call, providers.InvalidField("vendorA-version", "Invalid request: the header 'vendorA-version' is required.")
		}
		b, err := check.Check(raw)
		if err != nil {
			return call, err
		}
		call = calls.JSONCall(endpoint, b)
		call.Header = http.Header{"Anthropic-Version": {version}}
		maps.Copy(call.Header, calls.KeepHeader(r, "Anthropic-Beta"))
		call.Events.Last = isStop
		call.Output = max(body.Whole(b.Value("max_tokens")), body.Whole(b.Value("thinking").Get("budget_tokens")))
		call.Affinity = affinityOf(x, b)
		call.ContinuesFrom, err = continuesFrom(b)
		return call, err
	}
}

// isStop reports whether the bytes end with the last event of a stream.
func isStop(events []byte) bool {
	return bytes.Contains(events[max(0, len(events)-256):], []byte("event: message_stop"))
}

// affinityOf returns the response affinity of a call that permits prompt caching, 0 for other calls. A breakpoint only within the messages
// changes with every turn.
func affinityOf(x *edge.Request, b *body.JSON) uint64 {
	tools, system := b.Value("tools"), b.Value("system")
	mark := []byte(`"cache_control"`)
	if b.Value("cache_control") == nil && !bytes.Contains(tools, mark) && !bytes.Contains(system, mark) {
		return 0
	}
	return calls.Affinity(x, b.Value("model"), tools, system)
}

// maxNamed bounds the ids of earlier answers in a call: all are looked up, in one round trip.
const maxNamed = 1024

// continuesFrom lists the results of earlier answers to which a call refers: first its container, then files of code execution.
func continuesFrom(b *body.JSON) (made []providers.Created, err error) {
	if id := containerOf(b); len(id) > 0 {
		made = append(made, providers.Created{ID: string(id), Param: "container"})
	}
	seen := make(map[string]bool)
	for place, text := range b.Value("messages").Texts(nil) {
		if id := text.String(); id != "" && bytes.EqualFold(place.Name().Decoded(), []byte("file_id")) && !seen[id] {
			seen[id] = true
			made = append(made, providers.Created{ID: id, Param: "messages"})
		}
		if len(made) > maxNamed {
			return nil, providers.InvalidField("messages", "Invalid request: 'messages' names more than %d files.", maxNamed)
		}
	}
	return made, nil
}

// containerOf returns the container of an earlier answer in which the call continues, nil for none.
func containerOf(b *body.JSON) []byte {
	container := b.Value("container")
	if container.IsObject() {
		container = container.Get("id")
	}
	return container.Text().Decoded()
}

func parameters() []*huma.Param {
	return []*huma.Param{
		edge.Parameter("header", "vendorA-version", "Version of the format, a date. This or `anthropic-version` is required."),
		edge.Parameter("header", "anthropic-version", "What the vendor's own clients send in place of `vendorA-version`"),
		edge.Parameter("header", "x-api-key", "The token, in place of a bearer token"),
	}
}
