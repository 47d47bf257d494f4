package gemini

import (
	"encoding/json"
	"strings"
	"time"

	"modelrelay/providers"
)

// errorBody is {"error":{"code","message","status","details"}}, see google.rpc.Status and the vendor's page
// "Troubleshooting".
type errorBody struct {
	Error struct {
		Message string `json:"message"`
		Status  string `json:"status"`
		Details []struct {
			// Reason is of a google.rpc.ErrorInfo.
			Reason string `json:"reason"`
			// RetryDelay is of a google.rpc.RetryInfo, such as "34s".
			RetryDelay string `json:"retryDelay"`
			// Violations are of a google.rpc.QuotaFailure. The name of a quota contains its period.
			Violations []struct {
				QuotaID string `json:"quotaId"`
			} `json:"violations"`
		} `json:"details"`
	} `json:"error"`
}

// classify reads the error object of an answer in this vendor's format.
func classify(fault *providers.Fault) {
	answer := readError(fault.Upstream.Body)
	fault.Code = providers.Cut(answer.Error.Status, providers.WordLimit)
	for _, detail := range answer.Error.Details {
		if delay, err := time.ParseDuration(detail.RetryDelay); err == nil && delay > 0 && fault.RetryAfter == 0 {
			fault.RetryAfter = delay
		}
		if detail.Reason != "" {
			fault.Code = providers.Cut(detail.Reason, providers.WordLimit)
		}
		for _, violation := range detail.Violations {
			// A daily quota returns at the end of the day. The delay in the answer is that of a minute's quota.
			if fault.Kind == providers.RateLimited && strings.Contains(violation.QuotaID, "PerDay") {
				fault.Key, fault.KeyNamed = providers.KeyExhausted, true
			}
		}
	}
	switch {
	case fault.Code == "API_KEY_INVALID", fault.Code == "FAILED_PRECONDITION" && providers.Says(answer.Error.Message, accountWords()...):
		// A key that is wrong or expired, or an account that must be billed first or is of the wrong country: all 400.
		fault.RefuseKey(providers.KeyRefused)
	case fault.Code == "BILLING_DISABLED":
		fault.RefuseKey(providers.KeyExhausted)
	case fault.Kind == providers.NotFound && strings.HasPrefix(answer.Error.Message, "models/"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
}

// accountWords are in the message of a FAILED_PRECONDITION that is about the account. Another is about the request: a file that is
// not ready.
func accountWords() []string { return []string{"billing", "location", "free tier", "api key"} }

// readError reads an error body.
func readError(body []byte) (answer errorBody) {
	_ = json.Unmarshal(body, &answer) // errors leave it empty; the status is enough
	return answer
}
