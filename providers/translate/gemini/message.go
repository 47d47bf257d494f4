package gemini

import (
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// FaultOf reads the error object of a stream: a google.rpc.Status.
func FaultOf(status rawjson.Value) *providers.Fault {
	code, _ := status.Get("code").Int()
	word, message := status.Get("status").Text().String(), form.Bounded(status.Get("message").Text().String())
	var reason string
	var wait time.Duration
	var day bool // a day's quota is exhausted; the delay next to it is that of a shorter quota
	for _, detail := range status.Get("details").Items() {
		if text := detail.Get("reason").Text(); text != nil {
			reason = text.String()
		}
		if delay, err := time.ParseDuration(detail.Get("retryDelay").Text().String()); err == nil && delay > 0 {
			wait = delay
		}
		for _, violation := range detail.Get("violations").Items() {
			day = day || strings.Contains(violation.Get("quotaId").Text().String(), "PerDay")
		}
	}
	is := map[string]int{
		"INVALID_ARGUMENT": 400, "FAILED_PRECONDITION": 400, "NOT_FOUND": 400, "OUT_OF_RANGE": 400, "UNAUTHENTICATED": 401,
		"PERMISSION_DENIED": 403, "RESOURCE_EXHAUSTED": 429, "UNAVAILABLE": 503,
	}[word]
	switch {
	case reason == "API_KEY_INVALID", word == "FAILED_PRECONDITION" && providers.Mentions(message, accountWords()...):
		is = 401
	case reason == "BILLING_DISABLED":
		is = 402
	case is == 0 && (code == 401 || code == 403 || code == 429 || code == 503):
		is = int(code)
	case is == 0 && code/100 == 4:
		is = 400
	}
	fault := form.StatusFault(is, word, message)
	fault.RetryAfter = wait
	switch {
	case fault.Kind == providers.RateLimited && day:
		fault.Key, fault.KeyNamed = providers.KeyExhausted, true
	case word == "NOT_FOUND" && fault.Kind == providers.Invalid && strings.HasPrefix(message, "models/"):
		fault.Kind, fault.Message, fault.UpstreamMessage = providers.ModelNotFound, "The upstream does not have the model.", ""
	}
	return fault
}

// accountWords returns words in the message of a FAILED_PRECONDITION that concerns the account. Others concern the request.
func accountWords() []string { return []string{"billing", "location", "free tier", "api key"} }
