package form

import (
	"net/http"
	"strconv"

	"modelrelay/providers"
)

// saidLimit is how much of an upstream's message is kept, in bytes.
const saidLimit = 2 << 10

// BrokenOff is the fault of an answer that ended before it was whole.
func BrokenOff() *providers.Fault {
	return &providers.Fault{Kind: providers.Upstream, Message: "The upstream broke off its answer.", Blame: providers.BlameChannel}
}

// OpenAIFault makes the fault of an error object within an answer, as both of OpenAI's dialects have it: {"message", "type",
// "code"}. The words are those of https://platform.openai.com/docs/guides/error-codes. A code may be a status, as some
// imitators have it.
func OpenAIFault(value Value) *providers.Fault {
	code, class := value.Get("code").Text().String(), value.Get("type").Text().String()
	status, _ := value.Get("code").Int()
	if n, err := strconv.Atoi(code); err == nil {
		status = int64(n)
	}
	fault := &providers.Fault{Code: providers.Cut(code, providers.WordLimit)}
	if code == "" {
		fault.Code = providers.Cut(class, providers.WordLimit)
	}
	refused := func(kind providers.Kind, message string) {
		fault.Kind, fault.Message, fault.Accepted = kind, message, providers.NotAccepted
	}
	is := func(words ...string) bool {
		for _, word := range words {
			if code == word || class == word {
				return true
			}
		}
		return false
	}
	switch {
	case is("insufficient_quota", "billing_hard_limit_reached", "billing_not_active"), status == http.StatusPaymentRequired:
		fault.RefuseKey(providers.KeyExhausted)
	case is("invalid_api_key", "account_deactivated", "authentication_error"), status == http.StatusUnauthorized:
		fault.RefuseKey(providers.KeyRefused)
	case is("permission_error"), status == http.StatusForbidden:
		fault.RefuseKey(providers.KeyForbidden)
	case is("rate_limit_exceeded", "rate_limit_error"), status == http.StatusTooManyRequests:
		refused(providers.RateLimited, "The upstream limits the rate of requests.")
		fault.Blame = providers.BlameKey
	case is("overloaded", "overloaded_error", "server_is_overloaded", "service_unavailable", "slow_down"), status == http.StatusServiceUnavailable:
		fault.Kind, fault.Message, fault.Blame = providers.Overloaded, "The upstream is overloaded.", providers.BlameChannel
	case is("model_not_found"):
		refused(providers.ModelNotFound, "The upstream does not have the model.")
	case is("invalid_request_error", "invalid_prompt", "context_length_exceeded", "content_policy_violation", "BadRequestError"), status == http.StatusBadRequest:
		refused(providers.Invalid, "The upstream refused the request.")
		fault.Said = providers.Cut(value.Get("message").Text().String(), saidLimit)
	default: // server_error, and what is not known yet
		fault.Kind, fault.Message, fault.Blame = providers.Upstream, "The upstream failed.", providers.BlameChannel
	}
	return fault
}
