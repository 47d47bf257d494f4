package hailuo

import (
	"encoding/json"
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

// statusOf is the HTTP status that a code means. Of a code that is not listed, what became of the request is unknown.
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

// failureCode is the product's word for a code of a failed job.
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

// ownFailure tells whether a code of a failed job is trouble of the vendor's.
func ownFailure(code string) bool {
	return slices.Contains([]string{"1000", "1001", "1013", "1024", "1033"}, code)
}

// said is what the first API says with every answer, and the second with an error.
type said struct {
	BaseResp struct {
		StatusCode upstream.Loose `json:"status_code"`
		StatusMsg  upstream.Loose `json:"status_msg"`
	} `json:"base_resp"`
	Error struct {
		Message upstream.Loose `json:"message"`
	} `json:"error"`
}

// numbered finds the code in the second API's words: "invalid params (2013)".
var numbered = regexp.MustCompile(`\((\d{4})\)\s*$`)

// codeOf is the code in an answer, "" for none.
func codeOf(body []byte) string {
	var s said
	_ = json.Unmarshal(body, &s) // another shape has no code
	if s.BaseResp.StatusCode != "" {
		return string(s.BaseResp.StatusCode)
	}
	if match := numbered.FindStringSubmatch(string(s.Error.Message)); match != nil {
		return match[1]
	}
	return ""
}

// reason finds the words of a refusal.
func reason(body []byte) string {
	var s said
	_ = json.Unmarshal(body, &s) // another shape has no words to show
	if s.Error.Message != "" {
		return string(s.Error.Message)
	}
	return string(s.BaseResp.StatusMsg)
}

// classify reads the code of a refusal, which says more than a status of 4xx. A status of 5xx leaves the outcome unknown, and so
// does a code that means one.
func classify(fault *providers.Fault) {
	fault.Code = providers.Cut(codeOf(fault.Upstream.Body), providers.WordLimit)
	if fault.Upstream.Status/100 == 4 && fault.Code != "" {
		if status := statusOf(fault.Code); status/100 == 4 || ownFailure(fault.Code) {
			upstream.Reclass(fault, status)
		}
	}
}

// lost tells whether an error is the vendor's word that it does not know the job.
func lost(err error) bool {
	var fault *providers.Fault
	return upstream.Forgotten(err) || errors.As(err, &fault) && fault.Code == codeInvalid
}
