// Package anthropic is format A, Anthropic's: the bodies and routes of its relayed calls, the shape of its faults and of its model list.
//
// Wire structs are named as the OpenAPI document names their schemas. It must not know another format.
package anthropic

import (
	"cmp"
	"net/http"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage/limits"
)

// statusOverloaded is the format's own for an overloaded service.
const statusOverloaded = 529

// Format is the dialect.
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

// speaks knows a message by its path. A model list is in this format as the contract says; the vendor's own SDK sends its
// version header with any credential, while the contract's counts only next to x-api-key.
func speaks(r *http.Request) bool {
	path := r.URL.Path
	switch {
	case path == messagesPath || strings.HasPrefix(path, messagesPath+"/"):
		return true
	case strings.HasPrefix(path, "/v1/files/"): // which has a path of Gemini's SDK
		return bySDK(r)
	case path != "/v1/models" && !strings.HasPrefix(path, "/v1/models/"):
		return false
	case r.Method == http.MethodPost && strings.Contains(path, ":"): // format B's
		return false
	}
	return bySDK(r)
}

// bySDK knows the version headers.
func bySDK(r *http.Request) bool {
	return r.Header.Get("Anthropic-Version") != "" || r.Header.Get("X-Api-Key") != "" && r.Header.Get("Vendora-Version") != ""
}

// version is the version header under the SDKs' name or the contract's, "" for none.
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

// showLimit shows a limit in the vendor's headers, in whole seconds: the time is rounded up, so that a client returns no earlier.
func showLimit(header http.Header, name string, window limits.Window) {
	prefix := "anthropic-ratelimit-" + name
	header.Set(prefix+"-limit", strconv.Itoa(window.Limit))
	header.Set(prefix+"-remaining", strconv.Itoa(window.Remaining))
	header.Set(prefix+"-reset", time.Now().Add(window.Reset+time.Second-1).UTC().Format(time.RFC3339))
}
