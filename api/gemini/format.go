// Package gemini is the Gemini format: the bodies and routes of its relayed calls, the shape of its faults and of its model list.
//
// Wire structs have the names of their schemas in the OpenAPI document. It must not know another format.
package gemini

import (
	"cmp"
	"net/http"
	"strings"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
)

// Format returns the description of the format for the edge. The edge must try the formats whose headers select the shape of the model list
// before it.
func Format() *edge.Format {
	return &edge.Format{
		Name: providers.Gemini, Title: "Gemini", Speaks: speaks, SDK: bySDK,
		Fault: func(fault *providers.Fault, status int, _ string) any {
			return geminiError{Error: geminiErrorBody{Code: status, Message: fault.Message, Status: statusOf(fault.Kind), Details: []any{}}}
		},
		FaultSchema: body.SchemaOf[geminiError],
		// @google/genai 1.x only raises the bare object. Later versions and the SDKs of Go and Python raise either form (processStreamResponse in
		// its src/_api_client.ts, iterateResponseStream of google.golang.org/genai, _iter_response_stream of google-genai).
		BareError: true,
	}
}

// speaks reports whether the request is of this format: a call by its path, a model list by the vendor's credentials.
func speaks(r *http.Request) bool {
	path := r.URL.Path
	switch {
	case strings.HasPrefix(path, "/v1beta/"), strings.HasPrefix(path, "/v1alpha/"), strings.HasPrefix(path, "/upload/v1"),
		path == "/v1"+interactionsPath, strings.HasPrefix(path, "/v1"+interactionsPath+"/"):
		return true
	case strings.HasPrefix(path, "/v1/files/"): // the gateway has no files of OpenAI
		return strings.HasSuffix(path, ":download")
	case path != "/v1/models" && !strings.HasPrefix(path, "/v1/models/"):
		return false
	case r.Method == http.MethodPost && strings.Contains(path, ":"):
		return true
	case bySDK(r):
		return true
	}
	return strings.Contains(r.URL.RawQuery, "key") && r.URL.Query().Get("key") != ""
}

func bySDK(r *http.Request) bool {
	return r.Header.Get("X-Vendorb-Api-Key") != "" || r.Header.Get("X-Goog-Api-Key") != ""
}

type geminiError struct {
	Error geminiErrorBody `json:"error"`
}

type geminiErrorBody struct {
	Code    int    `json:"code" doc:"The HTTP status"`
	Message string `json:"message"`
	Status  string `json:"status" doc:"Class of the error"`
	Details []any  `json:"details" required:"false" doc:"Absent in some errors of an upstream"`
}

func statusOf(kind providers.Kind) string {
	return cmp.Or(map[providers.Kind]string{
		providers.Invalid:          "INVALID_ARGUMENT",
		providers.MethodNotAllowed: "INVALID_ARGUMENT",
		providers.TooLarge:         "INVALID_ARGUMENT",
		providers.Mismatch:         "INVALID_ARGUMENT",
		providers.UnsupportedMedia: "INVALID_ARGUMENT",
		providers.Unauthenticated:  "UNAUTHENTICATED",
		providers.Forbidden:        "PERMISSION_DENIED",
		providers.ModelNotFound:    "NOT_FOUND",
		providers.NotFound:         "NOT_FOUND",
		providers.Conflict:         "ABORTED",
		providers.RateLimited:      "RESOURCE_EXHAUSTED",
		providers.Quota:            "RESOURCE_EXHAUSTED",
		providers.Canceled:         "CANCELLED",
		providers.Overloaded:       "UNAVAILABLE",
		providers.Timeout:          "DEADLINE_EXCEEDED",
	}[kind], "INTERNAL")
}
