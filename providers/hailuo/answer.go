package hailuo

import (
	"errors"
	"net/http"
	"regexp"
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Codes of the vendor's, the same in both APIs.
const (
	codeInvalid      = "2013" // also of an id that is not known
	codeInput        = "1026" // moderation of prompt and images
	codeOutput       = "1027" // moderation of the video
	codeNotSupported = "2061" // not in the key's plan
)

// statusOf returns the HTTP status that a code means. After an unlisted code, the outcome of the request is unknown.
func statusOf(code string) int {
	switch code {
	case codeInvalid, "1042", codeOutput:
		return http.StatusBadRequest
	case codeInput:
		return http.StatusUnprocessableEntity
	case "1004", "2049":
		return http.StatusUnauthorized
	case "1008", "2056", "1028", "1030":
		return http.StatusPaymentRequired
	case codeNotSupported:
		return http.StatusForbidden
	case "1002", "1039", "1041", "2045":
		return http.StatusTooManyRequests
	case "1001":
		return http.StatusGatewayTimeout
	default:
		return http.StatusInternalServerError
	}
}

func failureCode(code string) string {
	switch code {
	case codeInput, codeOutput:
		return providers.FailedContent
	case codeInvalid, "1042":
		return providers.FailedInput
	case "1001":
		return providers.FailedTimeout
	default:
		return providers.FailedVendor
	}
}

// ownFailure reports whether a code of a failed job is a failure of the vendor.
func ownFailure(code string) bool {
	return slices.Contains([]string{"1000", "1001", "1013", "1024", "1033"}, code)
}

// numbered finds the code in a message of the second API: "invalid params (2013)".
var numbered = regexp.MustCompile(`\((\d{4})\)\s*$`)

// codeOf returns the code in an answer of the first API, or in an error of the second, "" for none.
func codeOf(answer upstream.Doc) string {
	if code := answer.Get("base_resp.status_code"); code != "" {
		return string(code)
	}
	if match := numbered.FindStringSubmatch(string(answer.Get("error.message"))); match != nil {
		return match[1]
	}
	return ""
}

func reason(body []byte) string {
	return string(upstream.DocOf(body).Get("error.message", "base_resp.status_msg"))
}

// classify interprets the code of a refusal, which is more precise than a 4xx status. After a 5xx status, or a code that means one,
// the outcome is unknown.
func classify(fault *providers.Fault) {
	fault.Code = providers.Cut(codeOf(upstream.DocOf(fault.Upstream.Body)), providers.WordLimit)
	if fault.Upstream.Status/100 == 4 && fault.Code != "" {
		if status := statusOf(fault.Code); status/100 == 4 || ownFailure(fault.Code) {
			upstream.Reclass(fault, status)
		}
	}
}

func lost(err error) bool {
	var fault *providers.Fault
	return upstream.Forgotten(err) || errors.As(err, &fault) && fault.Code == codeInvalid
}
