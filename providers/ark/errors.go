package ark

import (
	"encoding/json"
	"net/http"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// words are the vendor's code and message for what went wrong.
type words struct{ Code, Message string }

// said reads an error; another shape says nothing.
func said(raw json.RawMessage) words {
	var answer struct {
		Code    upstream.Loose `json:"code"`
		Message upstream.Loose `json:"message"`
	}
	_ = json.Unmarshal(raw, &answer)
	return words{string(answer.Code), string(answer.Message)}
}

// failureCode is the product's word for the vendor's code of a failed job.
func failureCode(code string) string {
	switch {
	case strings.Contains(code, "SensitiveContentDetected"), strings.Contains(code, "RiskDetection"):
		return providers.FailedContent
	case hasPrefix(code, "InvalidParameter", "MissingParameter", "InvalidImageURL", "InvalidVideoURL", "InvalidAudioURL"):
		return providers.FailedInput
	case hasPrefix(code, "AccountOverdue", "QuotaExceeded", "SetLimitExceeded", "OperationDenied.ServiceOverdue"), strings.Contains(code, "RateLimit"):
		return providers.FailedQuota
	default:
		return providers.FailedVendor
	}
}

func hasPrefix(code string, prefixes ...string) bool {
	for _, prefix := range prefixes {
		if strings.HasPrefix(code, prefix) {
			return true
		}
	}
	return false
}

// classify reads what the vendor's codes say beside the status.
func classify(fault *providers.Fault) {
	var answer struct {
		Error json.RawMessage `json:"error"`
	}
	_ = json.Unmarshal(fault.Upstream.Body, &answer) // another shape says nothing more than the status
	why := said(answer.Error)
	fault.Code = providers.Cut(why.Code, providers.WordLimit)
	message := strings.ToLower(why.Message)
	switch status := fault.Upstream.Status; {
	case status == http.StatusForbidden && hasPrefix(why.Code, "AccountOverdue", "OperationDenied.ServiceOverdue"):
		fault.RefuseKey(providers.KeyExhausted)
	case status == http.StatusNotFound && (why.Code == "ModelNotOpen" || why.Code == "InvalidEndpointOrModel.ModelIDAccessDisabled"):
		fault.RefuseKey(providers.KeyForbidden)
	case status == http.StatusNotFound && hasPrefix(why.Code, "InvalidEndpointOrModel", "UnsupportedModel"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	case status == http.StatusBadRequest && why.Code == "ContentSecurityDetectionError": // its checker failed, the content did not
		fault.Kind, fault.Message = providers.Overloaded, "The upstream's check of the content failed."
	case status == http.StatusTooManyRequests && why.Code == "ServerOverloaded":
		fault.Kind, fault.Message, fault.Blame = providers.Overloaded, "The upstream is overloaded.", providers.BlameChannel
	case status == http.StatusTooManyRequests && (why.Code == "SetLimitExceeded" ||
		why.Code == "QuotaExceeded" && (strings.Contains(message, "free trial") || strings.Contains(message, "reset at"))):
		fault.RefuseKey(providers.KeyExhausted)
	}
}
