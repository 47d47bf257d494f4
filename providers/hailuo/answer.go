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
	return upstream.Codes[int]{
		http.StatusBadRequest:          {codeInvalid, "1042", codeOutput},
		http.StatusUnprocessableEntity: {codeInput},
		http.StatusUnauthorized:        {"1004", "2049"},
		http.StatusPaymentRequired:     {"1008", "2056", "1028", "1030"},
		http.StatusForbidden:           {codeNotSupported},
		http.StatusTooManyRequests:     {"1002", "1039", "1041", "2045"},
		http.StatusGatewayTimeout:      {"1001"},
	}.Of(code, http.StatusInternalServerError)
}

// refused returns the status of a refusal. A failed job of the first API has its reason in the same members.
func refused(answer upstream.Doc) int {
	if code := codeOf(answer); code != "" && code != "0" && answer.Get("status") != "Fail" {
		return statusOf(code)
	}
	return 0
}

func failureCode(code string) string {
	return upstream.Codes[string]{
		providers.FailedContent: {codeInput, codeOutput},
		providers.FailedInput:   {codeInvalid, "1042"},
		providers.FailedTimeout: {"1001"},
	}.Of(code, providers.FailedVendor)
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

// classify interprets the code of a refusal. After a 5xx status, or a code that means one, the outcome is unknown.
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
