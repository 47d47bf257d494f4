// Package anthropic is the Anthropic format: the bodies and routes of its relayed calls, the shape of its faults and of its model list.
//
// Wire structs have the names of their schemas in the OpenAPI document. It must not know another format.
package anthropic

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/body"
	"modelrelay/api/calls"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/limits"
)

// statusOverloaded is the format's own status of an overloaded service.
const statusOverloaded = 529

// Format returns the description of the format for the edge.
func Format() *edge.Format {
	return &edge.Format{
		Name: providers.Anthropic, Title: "Anthropic", Speaks: speaks, SDK: bySDK, RequestID: "Request-Id",
		Status: status, StreamEvent: "error", Limit: showLimit,
		Fault: func(fault *providers.Fault, _ int, requestID string) any {
			body := anthropicError{Type: "error", RequestID: requestID}
			body.Error.Message = fault.Message
			if class := classOf(fault.Kind); class != "" {
				body.Error.Type = &class
			}
			return body
		},
		FaultSchema: body.SchemaOf[anthropicError],
	}
}

// speaks reports whether a path is that of a message. For the model list, headers decide: the vendor's SDK sends its version header with
// any credential, but the contract's version header counts only with x-api-key.
func speaks(r *http.Request) bool {
	path := r.URL.Path
	switch {
	case path == messagesPath || strings.HasPrefix(path, messagesPath+"/"):
		return true
	case strings.HasPrefix(path, "/v1/files/"): // a path of Gemini's SDK
		return bySDK(r)
	case path != "/v1/models" && !strings.HasPrefix(path, "/v1/models/"):
		return false
	case r.Method == http.MethodPost && strings.Contains(path, ":"): // Gemini format
		return false
	}
	return bySDK(r)
}

// bySDK reports whether the request has a version header.
func bySDK(r *http.Request) bool {
	return r.Header.Get("Anthropic-Version") != "" || r.Header.Get("X-Api-Key") != "" && r.Header.Get("Vendora-Version") != ""
}

// version returns the version header, by the SDKs' name or the contract's, "" for none.
func version(r *http.Request) string {
	return cmp.Or(r.Header.Get("Anthropic-Version"), r.Header.Get("Vendora-Version"))
}

func status(kind providers.Kind) int {
	if kind == providers.Overloaded {
		return statusOverloaded
	}
	return edge.Status(kind)
}

type anthropicError struct {
	Type      string             `json:"type" enum:"error"`
	Error     anthropicErrorBody `json:"error"`
	RequestID string             `json:"request_id" required:"false" doc:"Absent in some errors of an upstream"`
}

type anthropicErrorBody struct {
	Type    *string `json:"type" doc:"Class of the error"`
	Message string  `json:"message"`
}

func classOf(kind providers.Kind) string {
	switch kind {
	case providers.Invalid, providers.MethodNotAllowed, providers.Conflict, providers.Mismatch, providers.UnsupportedMedia:
		return "invalid_request_error"
	case providers.Unauthenticated:
		return "authentication_error"
	case providers.Forbidden:
		return "permission_error"
	case providers.ModelNotFound, providers.NotFound:
		return "not_found_error"
	case providers.TooLarge:
		return "request_too_large"
	case providers.RateLimited, providers.Quota:
		return "rate_limit_error"
	case providers.Canceled:
		return ""
	case providers.Overloaded:
		return "overloaded_error"
	default:
		return "api_error"
	}
}

// showLimit adds a limit in the vendor's headers. The time has whole seconds. It is rounded up, so that a client that waits for it is not
// too early.
func showLimit(header http.Header, name string, window limits.Window) {
	prefix := "anthropic-ratelimit-" + name
	header.Set(prefix+"-limit", strconv.Itoa(window.Limit))
	header.Set(prefix+"-remaining", strconv.Itoa(window.Remaining))
	header.Set(prefix+"-reset", time.Now().Add(window.Reset+time.Second-1).UTC().Format(time.RFC3339))
}

// anthropicModel is one entry of the model list in Anthropic format.
type anthropicModel struct {
	Type        string `json:"type" enum:"model"`
	ID          string `json:"id"`
	DisplayName string `json:"display_name"`
	CreatedAt   string `json:"created_at" format:"date-time"`
}

// anthropicModelList is the model list in Anthropic format. It has one page.
type anthropicModelList struct {
	Data    []anthropicModel `json:"data" nullable:"false"`
	HasMore bool             `json:"has_more"`
	FirstID *string          `json:"first_id" doc:"null in an empty list"`
	LastID  *string          `json:"last_id" doc:"null in an empty list"`
}

// ModelShape returns the functions that render models in this format.
func ModelShape() calls.ModelShape {
	return calls.NewModelShape(newModel, func(models []anthropicModel) anthropicModelList {
		list := anthropicModelList{Data: models}
		if n := len(models); n > 0 {
			list.FirstID, list.LastID = &models[0].ID, &models[n-1].ID
		}
		return list
	})
}

func newModel(model router.Model) anthropicModel {
	return anthropicModel{
		Type: "model", ID: model.ID, DisplayName: model.ID, CreatedAt: time.Unix(calls.ModelCreated, 0).UTC().Format(time.RFC3339),
	}
}
