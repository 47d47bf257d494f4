package gemini

import (
	"net/http"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// FaultOf reads the error object of a stream: a google.rpc.Status.
func FaultOf(status rawjson.Value) *providers.Fault {
	code, _ := status.Get("code").Int()
	fault := &providers.Fault{Code: providers.Cut(status.Get("status").Text().String(), providers.WordLimit)}
	var reason string
	var day bool // a day's quota is exhausted; the delay next to it is that of a shorter quota
	for _, detail := range status.Get("details").Items() {
		if text := detail.Get("reason").Text(); text != nil {
			reason = text.String()
		}
		if delay, err := time.ParseDuration(detail.Get("retryDelay").Text().String()); err == nil && delay > 0 {
			fault.RetryAfter = delay
		}
		for _, violation := range detail.Get("violations").Items() {
			day = day || strings.Contains(violation.Get("quotaId").Text().String(), "PerDay")
		}
	}
	message := form.Bounded(status.Get("message").Text().String())
	switch word := fault.Code; {
	case reason == "API_KEY_INVALID", word == "FAILED_PRECONDITION" && providers.Mentions(message, accountWords()...), word == "UNAUTHENTICATED",
		code == http.StatusUnauthorized:
		fault.RefuseKey(providers.KeyRefused)
	case reason == "BILLING_DISABLED":
		fault.RefuseKey(providers.KeyExhausted)
	case word == "PERMISSION_DENIED", code == http.StatusForbidden:
		fault.RefuseKey(providers.KeyForbidden)
	case word == "RESOURCE_EXHAUSTED", code == http.StatusTooManyRequests:
		fault.Kind, fault.Message = providers.RateLimited, "The upstream limits the rate of requests."
		fault.Blame, fault.Accepted = providers.BlameKey, providers.NotAccepted
		if day {
			fault.Key, fault.KeyNamed = providers.KeyExhausted, true
		}
	case word == "UNAVAILABLE", code == http.StatusServiceUnavailable:
		fault.Kind, fault.Message, fault.Blame = providers.Overloaded, "The upstream is overloaded.", providers.BlameChannel
	case word == "NOT_FOUND" && strings.HasPrefix(message, "models/"):
		fault.Kind, fault.Message, fault.Accepted = providers.ModelNotFound, "The upstream does not have the model.", providers.NotAccepted
	case word == "INVALID_ARGUMENT", word == "FAILED_PRECONDITION", word == "NOT_FOUND", word == "OUT_OF_RANGE", code/100 == 4:
		fault.Kind, fault.Message, fault.UpstreamMessage = providers.Invalid, "The upstream refused the request.", message
		fault.Accepted = providers.NotAccepted
	default:
		fault.Kind, fault.Message, fault.Blame = providers.Upstream, "The upstream failed while it answered.", providers.BlameChannel
	}
	return fault
}

// accountWords returns words in the message of a FAILED_PRECONDITION that concerns the account. Others concern the request, such as a file
// that is not ready.
func accountWords() []string { return []string{"billing", "location", "free tier", "api key"} }
