// Package openai is the OpenAI format: the bodies and routes of its relayed calls, realtime conversations, the shape of its
// faults and of its model list. Paths that belong to no other format speak it too.
//
// Wire structs are named as the OpenAPI document names their schemas. It must not know another format.
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

// Format is the dialect of everything that belongs to no other one.
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

// openAIError is the error body.
type openAIError struct {
	Error openAIErrorBody `json:"error"`
}

type openAIErrorBody struct {
	Message string  `json:"message" doc:"What went wrong, for people"`
	Type    *string `json:"type" doc:"Class of the error"`
	Param   *string `json:"param" doc:"The request field at fault"`
	Code    string  `json:"code" nullable:"true" doc:"The error itself, for programs; null in some errors of an upstream"`
}

func newErrorBody(fault *providers.Fault) openAIErrorBody {
	class, code := classOf(fault.Kind)
	return openAIErrorBody{Message: cmp.Or(fault.UpstreamMessage, fault.Message), Type: body.OrNull(class), Param: body.OrNull(fault.Param), Code: code}
}

// newStreamErrorBody is the error of an event. Clients send a call again whose stream ends with the vendor's own word for its failures.
func newStreamErrorBody(fault *providers.Fault) openAIErrorBody {
	shown := newErrorBody(fault)
	if shown.Type != nil && *shown.Type == apiError {
		*shown.Type = "server_error"
	}
	return shown
}

// apiError is the type of the gateway's and the upstreams' own failures.
const apiError = "api_error"

// classOf is the type and the code of a kind of fault.
func classOf(kind providers.Kind) (class, code string) {
	const invalid, serverError = "invalid_request_error", apiError
	switch kind {
	case providers.Invalid:
		return invalid, "invalid_request"
	case providers.Unauthenticated:
		return "authentication_error", "invalid_api_key"
	case providers.Forbidden:
		return "permission_error", "permission_denied"
	case providers.ModelNotFound:
		return invalid, "model_not_found"
	case providers.NotFound:
		return invalid, "not_found"
	case providers.MethodNotAllowed:
		return invalid, "method_not_allowed"
	case providers.Conflict:
		return invalid, "conflict"
	case providers.TooLarge:
		return invalid, "request_too_large"
	case providers.UnsupportedMedia:
		return invalid, "unsupported_media_type"
	case providers.Mismatch:
		return invalid, "idempotency_mismatch"
	case providers.RateLimited:
		return "rate_limit_error", "rate_limit_exceeded"
	case providers.Quota:
		return "insufficient_quota", "insufficient_quota"
	case providers.Canceled:
		return "", "canceled"
	case providers.Upstream:
		return serverError, "upstream_error"
	case providers.Overloaded:
		return serverError, "overloaded"
	case providers.Timeout:
		return serverError, "upstream_timeout"
	default:
		return serverError, "internal_error"
	}
}

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

// ResponseError is the event that ends the stream of a response that failed; its number follows the last event's.
func ResponseError(fault *providers.Fault, number int) []byte {
	body := newStreamErrorBody(fault)
	event, _ := json.Marshal(responseErrorEvent{ // plain strings always marshal
		Type: "error", Code: body.Code, Message: body.Message, Param: body.Param, SequenceNumber: number, Error: body,
	})
	return append(append([]byte("event: error\ndata: "), event...), "\n\n"...)
}

// openAIModel is one entry of the model list in OpenAI's shape.
type openAIModel struct {
	ID      string `json:"id"`
	Object  string `json:"object" enum:"model"`
	Created int64  `json:"created" doc:"Unix seconds"`
	OwnedBy string `json:"owned_by"`
	// Video is beyond the format's own keys.
	Video *providers.VideoTable `json:"video,omitempty" doc:"Of a model that makes videos: what it takes, where that is known"`
}

// openAIModelList is the model list in OpenAI's shape.
type openAIModelList struct {
	Object string        `json:"object" enum:"list"`
	Data   []openAIModel `json:"data" nullable:"false"`
}

// ModelShape is how the format shows models.
func ModelShape() calls.ModelShape {
	return calls.ModelShape{
		ListSchema: body.SchemaOf[openAIModelList], OneSchema: body.SchemaOf[openAIModel],
		List: func(models []router.Model) any {
			list := openAIModelList{Object: "list", Data: make([]openAIModel, 0, len(models))}
			for _, model := range models {
				list.Data = append(list.Data, newModel(model))
			}
			return list
		},
		One: func(model router.Model) any { return newModel(model) },
	}
}

func newModel(model router.Model) openAIModel {
	entry := openAIModel{ID: model.ID, Object: "model", Created: calls.ModelCreated, OwnedBy: model.Vendor}
	if model.Video != nil && slices.Contains(model.Endpoints, providers.Endpoint{Operation: providers.VideoTask}) {
		table := model.Video.Table()
		entry.Video = &table
	}
	return entry
}
