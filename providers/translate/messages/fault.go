package messages

import (
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// FaultOf returns the fault of an error in a stream. Its types are those of platform.claude.com/docs/en/api/errors; each is classified by
// the status of an answer with this error.
func FaultOf(value rawjson.Value) *providers.Fault {
	code, message := value.Get("type").Text().String(), value.Get("message").Text().String()
	fault := form.StatusFault(statusOf(code, message), code, message)
	switch {
	case code == "timeout_error":
		fault.Kind, fault.Message = providers.Timeout, "The upstream did not answer in time."
	case fault.Kind == providers.NotFound && strings.HasPrefix(message, "model:"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
	return fault
}

// statusOf returns the status of an error by its type, see platform.claude.com/docs/en/api/errors, 0 for a failure of the upstream.
func statusOf(code, message string) int {
	switch {
	case code != "invalid_request_error":
	case strings.Contains(message, "credit balance is too low"), strings.Contains(message, "specified API usage limits"):
		return 402
	case strings.Contains(message, "organization has been disabled"):
		return 401
	}
	return map[string]int{
		"invalid_request_error": 400, "authentication_error": 401, "billing_error": 402, "permission_error": 403, "not_found_error": 404,
		"request_too_large": 413, "rate_limit_error": 429, "overloaded_error": 503,
	}[code]
}
