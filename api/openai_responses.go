package api

import (
	"encoding/json"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// openAIResponse is the body of a response. It is never filled: the schema and the field checks are compiled from it.
type openAIResponse struct {
	Model              string             `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
	Input              body.TextOrObjects `json:"input,omitzero" doc:"String or message array"`
	Instructions       string             `json:"instructions,omitempty"`
	MaxOutputTokens    int                `json:"max_output_tokens,omitempty"`
	Temperature        float64            `json:"temperature,omitempty"`
	TopP               float64            `json:"top_p,omitempty"`
	Stream             bool               `json:"stream,omitempty" doc:"Stream the response as server-sent events"`
	Tools              []map[string]any   `json:"tools,omitempty" nullable:"false"`
	ToolChoice         body.TextOrObject  `json:"tool_choice,omitzero"`
	Reasoning          map[string]any     `json:"reasoning,omitempty"`
	PreviousResponseID string             `json:"previous_response_id,omitempty"`
	Truncation         string             `json:"truncation,omitempty" enum:"auto,disabled"`
}

// openAICompaction is the body of a compaction. It is never filled.
type openAICompaction struct {
	Model              string             `json:"model" minLength:"1" doc:"Model id, taken from the model list"`
	Input              body.TextOrObjects `json:"input,omitzero"`
	Instructions       string             `json:"instructions,omitempty"`
	PreviousResponseID string             `json:"previous_response_id,omitempty"`
}

// responsesPath is also how the error event of a stream is told from that of other streams of the format.
const responsesPath = "/v1/responses"

// responseErrorEvent is the error event of a response's stream. The vendor's document has its members flat, its SDKs
// raise what they find under "error".
type responseErrorEvent struct {
	Type           string          `json:"type"`
	Code           string          `json:"code"`
	Message        string          `json:"message"`
	Param          *string         `json:"param"`
	SequenceNumber int             `json:"sequence_number"`
	Error          openAIErrorBody `json:"error"`
}

// responseError is the event that ends the stream of a response that failed; its number follows the last event's.
func responseError(fault *providers.Fault, number int) []byte {
	c := classOf(fault.Kind)
	event, _ := json.Marshal(responseErrorEvent{ // plain strings always marshal
		Type: "error", Code: c.openAICode, Message: fault.Message, Param: orNull(fault.Param), SequenceNumber: number,
		Error: openAIErrorBody{Message: fault.Message, Type: orNull(c.openAIType), Param: orNull(fault.Param), Code: c.openAICode},
	})
	return append(append([]byte("event: error\ndata: "), event...), "\n\n"...)
}

// addOpenAIResponses adds POST /v1/responses and POST /v1/responses/compact.
func (s *Server) addOpenAIResponses(g *group) {
	tags := []string{"Responses format"}
	addOpenAICall[openAIResponse](s, g, openAICall{
		name: providers.Responses,
		Operation: huma.Operation{
			OperationID: "createResponse", Path: responsesPath, Tags: tags, Summary: "Create a response",
			Description: "Streaming and non-streaming. Fields that are not listed here reach the upstream untouched.",
			Responses:   relayedAnswer("A response, or its events", true),
		},
	})
	addOpenAICall[openAICompaction](s, g, openAICall{
		name: providers.CompactResponse,
		Operation: huma.Operation{
			OperationID: "compactResponse", Path: responsesPath + "/compact", Tags: tags, Summary: "Compact a long conversation",
			Responses: relayedAnswer("The compacted conversation", false),
		},
	})
}
