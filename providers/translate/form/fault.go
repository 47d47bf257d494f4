package form

import (
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
)

// Bounded returns an upstream's message, shortened to a limit.
func Bounded(message string) string {
	const most = 2 << 10
	return providers.Cut(message, most)
}

// ErrorMessage returns the upstream's own message in an error body, "" for none. Its member is {"error":{"message"}}, which Google's
// endpoints sometimes put into an array; other servers of OpenAI's format have other members.
func ErrorMessage(body []byte) string {
	if !rawjson.Valid(body) {
		return ""
	}
	value := rawjson.Trim(body)
	for _, item := range value.Items() {
		value = item
		break
	}
	for _, text := range []rawjson.Value{value.At("error", "message"), value.Get("error"), value.Get("message"), value.Get("detail")} {
		if !text.Text().Empty() {
			return Bounded(text.Text().String())
		}
	}
	return ""
}

// BrokenOff returns the fault of an incomplete answer.
func BrokenOff() *providers.Fault {
	return &providers.Fault{Kind: providers.Upstream, Message: "The upstream ended its answer early.", Blame: providers.BlameChannel}
}

// StatusFault returns the fault of an error within an answer, by the status that the error has without an answer; 0 for an unknown error.
func StatusFault(status int, code, message string) *providers.Fault {
	fault := providers.StatusFault(status)
	fault.Code, fault.KeyNamed = providers.Cut(code, providers.WordLimit), fault.Key != providers.KeyBusy
	if fault.Kind == providers.Invalid || fault.Kind == providers.TooLarge {
		fault.UpstreamMessage = Bounded(message)
	}
	return fault
}

// OpenAIFault returns the fault of an error {"code", "type", "message"} within an answer of one of OpenAI's dialects. It is classified by
// the status that the error has without an answer. Other servers of the format write the status as the code.
func OpenAIFault(value rawjson.Value) *providers.Fault {
	code, class := value.Get("code").Text().String(), value.Get("type").Text().String()
	if n := value.Get("code"); n.IsNumber() {
		code = string(n)
	}
	if code == "" {
		code = class
	}
	message := value.Get("message").Text().String()
	status := map[string]int{
		"insufficient_quota": 402, "billing_hard_limit_reached": 402, "billing_not_active": 402, "402": 402,
		"account_deactivated": 401, "invalid_api_key": 401, "authentication_error": 401, "401": 401,
		"rate_limit_exceeded": 429, "rate_limit_error": 429, "429": 429, "model_not_found": 404,
		"server_is_overloaded": 503, "slow_down": 503, "overloaded_error": 503, "503": 503, "529": 503,
	}[code]
	if status == 0 && aboutRequest(code, class) {
		status = 400
	}
	fault := StatusFault(status, code, message)
	switch fault.Kind {
	case providers.RateLimited:
		fault.RetryAfter = tryAgainIn(message)
	case providers.NotFound:
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	}
	return fault
}

// aboutRequest reports whether the request is the cause of an error. The codes are those of ResponseError of openai-node 7.55.
func aboutRequest(code, class string) bool {
	switch code {
	case "invalid_prompt", "context_length_exceeded", "data_residency_mismatch", "failed_to_download_image", "400", "413", "422":
		return true
	}
	return class == "invalid_request_error" || strings.HasPrefix(code, "invalid_") || strings.Contains(code, "image_") ||
		strings.HasSuffix(code, "_policy") || strings.HasSuffix(code, "_policy_violation")
}

// tryAgainIn returns the wait that an upstream requests in the text of its message: "Please try again in 1m2.5s."
func tryAgainIn(message string) time.Duration {
	_, rest, _ := strings.Cut(message, "try again in ")
	word, _, _ := strings.Cut(rest, " ")
	wait, err := time.ParseDuration(strings.TrimRight(word, "."))
	if err != nil || wait < 0 {
		return 0
	}
	return wait
}
