package gemini

import (
	"cmp"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// classify reads the error object of an answer in this vendor's format.
func classify(fault *providers.Fault) {
	said := upstream.RPCErrorOf(upstream.DocOf(fault.Upstream.Body).At("error"))
	fault.Code = providers.Cut(cmp.Or(said.Reason, said.Status), providers.WordLimit)
	if fault.RetryAfter == 0 {
		fault.RetryAfter = said.RetryDelay
	}
	if fault.Kind == providers.RateLimited && said.DailyQuota {
		fault.Key, fault.KeyNamed = providers.KeyExhausted, true
	}
	switch {
	case fault.Code == "API_KEY_INVALID", fault.Code == "FAILED_PRECONDITION" && providers.Says(said.Message, accountWords()...):
		// A key that is wrong or expired, or an account that must be billed first or is of the wrong country: all 400.
		fault.RefuseKey(providers.KeyRefused)
	case fault.Code == "BILLING_DISABLED":
		fault.RefuseKey(providers.KeyExhausted)
	case fault.Kind == providers.NotFound && strings.HasPrefix(said.Message, "models/"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
}

// accountWords are in the message of a FAILED_PRECONDITION that is about the account. Another is about the request: a file that is
// not ready.
func accountWords() []string { return []string{"billing", "location", "free tier", "api key"} }
