package openai

import (
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/upstream"
)

// classify reads the error object of an answer: the field that it names, and the codes that are more precise than their status.
func classify(fault *providers.Fault) {
	answer := upstream.DocOf(fault.Upstream.Body).At("error")
	code := answer.Get("code", "type")
	if rawjson.Value(answer.At("code")).IsNumber() { // of a compatible server
		code = answer.Get("type")
	}
	fault.Code = providers.Cut(string(code), providers.WordLimit)
	switch fault.Code {
	case "insufficient_quota", "billing_hard_limit_reached", "billing_not_active":
		// The gateway's account is out of money; the status is 429 or 400.
		fault.RefuseKey(providers.KeyExhausted)
	case "account_deactivated", "invalid_api_key":
		fault.RefuseKey(providers.KeyRefused)
	case "model_not_found":
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
	if fault.Blame == providers.BlameNone {
		fault.Param = string(answer.Get("param"))
	}
}
