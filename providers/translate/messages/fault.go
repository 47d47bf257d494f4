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
	fault := &providers.Fault{Code: providers.Cut(code, providers.WordLimit)}
	about := func(kind providers.Kind, message string) {
		fault.Kind, fault.Message, fault.Accepted = kind, message, providers.NotAccepted
	}
	switch code {
	case "overloaded_error":
		fault.Kind, fault.Message, fault.Blame = providers.Overloaded, "The upstream is overloaded.", providers.BlameChannel
	case "rate_limit_error":
		about(providers.RateLimited, "The upstream limits the rate of requests.")
		fault.Blame = providers.BlameKey
	case "timeout_error":
		fault.Kind, fault.Message, fault.Blame = providers.Timeout, "The upstream did not answer in time.", providers.BlameChannel
	case "authentication_error":
		fault.RefuseKey(providers.KeyRefused)
	case "permission_error":
		fault.RefuseKey(providers.KeyForbidden)
	case "billing_error":
		fault.RefuseKey(providers.KeyExhausted)
	case "request_too_large":
		about(providers.TooLarge, "The request is too large for the upstream.")
	case "not_found_error":
		about(providers.NotFound, "The upstream does not know what was asked for.")
		if strings.HasPrefix(message, "model:") {
			about(providers.ModelNotFound, "The upstream does not have the model.")
		}
	case "invalid_request_error":
		about(providers.Invalid, "The upstream refused the request.")
		switch {
		case strings.Contains(message, "credit balance is too low"), strings.Contains(message, "specified API usage limits"):
			fault.RefuseKey(providers.KeyExhausted)
		case strings.Contains(message, "organization has been disabled"):
			fault.RefuseKey(providers.KeyRefused)
		}
	default: // api_error and unknown types
		fault.Kind, fault.Message, fault.Blame = providers.Upstream, "The upstream failed.", providers.BlameChannel
	}
	if fault.Kind == providers.Invalid || fault.Kind == providers.TooLarge {
		fault.UpstreamMessage = form.Bounded(message)
	}
	return fault
}
