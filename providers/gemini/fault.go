package gemini

import (
	"cmp"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

func classify(fault *providers.Fault) {
	rpcError := upstream.RPCErrorOf(upstream.DocOf(fault.Upstream.Body).At("error"))
	fault.Code = providers.Cut(cmp.Or(rpcError.Reason, rpcError.Status), providers.WordLimit)
	if fault.RetryAfter == 0 {
		fault.RetryAfter = rpcError.RetryDelay
	}
	if fault.Kind == providers.RateLimited && rpcError.DailyQuota {
		fault.Key, fault.KeyNamed = providers.KeyExhausted, true
	}
	switch {
	case fault.Code == "API_KEY_INVALID", fault.Code == "FAILED_PRECONDITION" &&
		providers.Mentions(rpcError.Message, "billing", "location", "free tier", "api key"): // others concern the request
		// A wrong or expired key, an account without billing or of an unsupported country: all have status 400.
		fault.RefuseKey(providers.KeyRefused)
	case fault.Code == "BILLING_DISABLED":
		fault.RefuseKey(providers.KeyExhausted)
	case fault.Kind == providers.NotFound && strings.HasPrefix(rpcError.Message, "models/"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
}
