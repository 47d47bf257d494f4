package anthropic

import (
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// classify reads the error object of an answer in this vendor's format: {"type":"error","error":{"type","message"}}. The types that are
// more precise than their status are those of the vendor's page "Errors".
func classify(fault *providers.Fault) {
	answer := upstream.DocOf(fault.Upstream.Body)
	message := string(answer.Get("error.message"))
	fault.Code = providers.Cut(string(answer.Get("error.type")), providers.WordLimit)
	switch {
	case fault.Code == "overloaded_error":
		// The vendor's status is 529; a front end may send another.
		fault.Kind, fault.Message, fault.Blame = providers.Overloaded, "The upstream is overloaded.", providers.BlameChannel
	case fault.Code == "billing_error",
		fault.Kind == providers.Invalid && (strings.Contains(message, "credit balance is too low") ||
			strings.Contains(message, "specified API usage limits")):
		// The gateway's account is out of money or at its spend limit. This vendor also reports both with a 400.
		fault.RefuseKey(providers.KeyExhausted)
	case fault.Kind == providers.Invalid && strings.Contains(message, "organization has been disabled"):
		fault.RefuseKey(providers.KeyRefused)
	case fault.Code == "not_found_error" && strings.HasPrefix(message, "model:"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
}
