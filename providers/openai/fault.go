package openai

import (
	"encoding/json"

	"modelrelay/providers"
)

// classify reads the error object of an answer: the field that it names, and the codes that are more precise than their status.
func classify(fault *providers.Fault) {
	var answer struct {
		Error struct {
			// Code is a string or null; at some compatible servers it is a number.
			Code  any    `json:"code"`
			Param string `json:"param"`
			Type  string `json:"type"`
		} `json:"error"`
	}
	// Errors leave the fields empty; the status is enough.
	_ = json.Unmarshal(fault.Upstream.Body, &answer)
	fault.Code, _ = answer.Error.Code.(string)
	if fault.Code == "" {
		fault.Code = answer.Error.Type
	}
	fault.Code = providers.Cut(fault.Code, providers.WordLimit)
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
		fault.Param = answer.Error.Param
	}
}
