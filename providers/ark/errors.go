package ark

import (
	"net/http"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

func failureCode(code string) string {
	switch {
	case strings.Contains(code, "SensitiveContentDetected"), strings.Contains(code, "RiskDetection"):
		return providers.FailedContent
	case hasPrefix(code, "InvalidParameter", "MissingParameter", "InvalidImageURL", "InvalidVideoURL", "InvalidAudioURL"):
		return providers.FailedInput
	case hasPrefix(code, "AccountOverdue", "QuotaExceeded", "SetLimitExceeded", "OperationDenied.ServiceOverdue"),
		strings.Contains(code, "RateLimit"):
		return providers.FailedQuota
	default:
		return providers.FailedVendor
	}
}

func hasPrefix(code string, prefixes ...string) bool {
	return slices.ContainsFunc(prefixes, func(prefix string) bool { return strings.HasPrefix(code, prefix) })
}

func classify(fault *providers.Fault) {
	code, message := fault.Code, strings.ToLower(upstream.Reason(fault.Upstream.Body))
	switch status := fault.Upstream.Status; {
	case status == http.StatusForbidden && hasPrefix(code, "AccountOverdue", "OperationDenied.ServiceOverdue"):
		fault.RefuseKey(providers.KeyExhausted)
	case status == http.StatusNotFound && (code == "ModelNotOpen" || code == "InvalidEndpointOrModel.ModelIDAccessDisabled"):
		fault.RefuseKey(providers.KeyForbidden)
	case status == http.StatusNotFound && hasPrefix(code, "InvalidEndpointOrModel", "UnsupportedModel"):
		fault.Kind, fault.Message = providers.ModelNotFound, "The upstream does not have the model."
	case status == http.StatusBadRequest && code == "ContentSecurityDetectionError": // its checker failed, the content did not
		fault.Kind, fault.Message = providers.Overloaded, "The upstream's check of the content failed."
	case status == http.StatusTooManyRequests && code == "ServerOverloaded":
		fault.Kind, fault.Message, fault.Blame = providers.Overloaded, "The upstream is overloaded.", providers.BlameChannel
	case status == http.StatusTooManyRequests && (code == "SetLimitExceeded" ||
		code == "QuotaExceeded" && (strings.Contains(message, "free trial") || strings.Contains(message, "reset at"))):
		fault.RefuseKey(providers.KeyExhausted)
	}
}
