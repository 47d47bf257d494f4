// Package openai is the OpenAI format: the bodies and routes of its relayed calls, realtime conversations, the shape of its faults and of
// its model list. Paths that belong to no other format use it too.
//
// Wire structs have the names of their schemas in the OpenAPI document. It must not know another format.
package openai

import (
	"cmp"
	"encoding/json"
	"slices"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/router"
)

// Format returns the description of the format for the edge. It has the requests of no other format.
func Format() *edge.Format {
	return &edge.Format{
		Name: providers.OpenAI, Title: "OpenAI", Credential: socketCredential,
		Fault: func(fault *providers.Fault, _ int, _ string) any {
			return openAIError{Error: newErrorBody(fault)}
		},
		StreamFault: func(fault *providers.Fault, _ int, _ string) any {
			return openAIError{Error: newStreamErrorBody(fault)}
		},
		FaultSchema: body.SchemaOf[openAIError],
	}
}

type openAIError struct {
	Error openAIErrorBody `json:"error"`
}

type openAIErrorBody struct {
	Message string  `json:"message" doc:"Description of the error"`
	Type    *string `json:"type" doc:"Class of the error"`
	Param   *string `json:"param" doc:"The request field at fault"`
	Code    string  `json:"code" nullable:"true" doc:"Code of the error, for programs; null in some errors of an upstream"`
}

func newErrorBody(fault *providers.Fault) openAIErrorBody {
	class, code := classOf(fault.Kind)
	return openAIErrorBody{
		Message: cmp.Or(fault.UpstreamMessage, fault.Message), Type: body.OrNull(class), Param: body.OrNull(fault.Param), Code: code,
	}
}

// newStreamErrorBody is the error of an event. It uses the vendor's type for the vendor's own failures, because clients then send the call
// again.
func newStreamErrorBody(fault *providers.Fault) openAIErrorBody {
	shown := newErrorBody(fault)
	if shown.Type != nil && *shown.Type == apiError {
		*shown.Type = "server_error"
	}
	return shown
}

// apiError is the type of failures of the gateway and of upstreams.
const apiError = "api_error"

func classOf(kind providers.Kind) (class, code string) {
	const invalid = "invalid_request_error"
	words, known := map[providers.Kind][2]string{
		providers.Invalid:          {invalid, "invalid_request"},
		providers.Unauthenticated:  {"authentication_error", "invalid_api_key"},
		providers.Forbidden:        {"permission_error", "permission_denied"},
		providers.ModelNotFound:    {invalid, "model_not_found"},
		providers.NotFound:         {invalid, "not_found"},
		providers.MethodNotAllowed: {invalid, "method_not_allowed"},
		providers.Conflict:         {invalid, "conflict"},
		providers.TooLarge:         {invalid, "request_too_large"},
		providers.UnsupportedMedia: {invalid, "unsupported_media_type"},
		providers.Mismatch:         {invalid, "idempotency_mismatch"},
		providers.RateLimited:      {"rate_limit_error", "rate_limit_exceeded"},
		providers.Quota:            {"insufficient_quota", "insufficient_quota"},
		providers.Canceled:         {"", "canceled"},
		providers.Upstream:         {apiError, "upstream_error"},
		providers.Overloaded:       {apiError, "overloaded"},
		providers.Timeout:          {apiError, "upstream_timeout"},
	}[kind]
	if !known {
		return apiError, "internal_error"
	}
	return words[0], words[1]
}

// responseErrorEvent is the error event of a response's stream. The vendor's documentation has flat members, but its SDKs read those in
// "error".
type responseErrorEvent struct {
	Type           string          `json:"type"`
	Code           string          `json:"code"`
	Message        string          `json:"message"`
	Param          *string         `json:"param"`
	SequenceNumber int             `json:"sequence_number"`
	Error          openAIErrorBody `json:"error"`
}

// ResponseError returns the final event of a failed response's stream. number follows that of the last event.
func ResponseError(fault *providers.Fault, number int) []byte {
	body := newStreamErrorBody(fault)
	event, _ := json.Marshal(responseErrorEvent{ // plain strings always marshal
		Type: "error", Code: body.Code, Message: body.Message, Param: body.Param, SequenceNumber: number, Error: body,
	})
	return append(append([]byte("event: error\ndata: "), event...), "\n\n"...)
}

type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object" enum:"model"`
	Created int64  `json:"created" doc:"Unix seconds"`
	OwnedBy string `json:"owned_by"`
	// Video is an extension of the format.
	Video *providers.VideoTable `json:"video,omitempty" doc:"For a model that makes videos: what it accepts, if that is known"`
}

type openAIModelList struct {
	Object string        `json:"object" enum:"list"`
	Data   []openAIModel `json:"data" nullable:"false"`
}

// ModelShape returns the functions that render models in this format.
func ModelShape() calls.ModelShape {
	return calls.NewModelShape(newModel, func(models []openAIModel) openAIModelList { return openAIModelList{"list", models} })
}

func newModel(model router.Model) openAIModel {
	entry := openAIModel{ID: model.ID, Object: "model", Created: calls.ModelCreated, OwnedBy: model.Vendor}
	if model.Video != nil && slices.Contains(model.Endpoints, providers.Endpoint{Operation: providers.VideoTask}) {
		table := model.Video.Table()
		entry.Video = &table
	}
	return entry
}
