package providers

import (
	"slices"
	"strings"
)

// The codes of failures that the gateway reports for all vendors. The vendor's own code is in the message.
const (
	FailedContent   = "content_policy"
	FailedInput     = "invalid_input"
	FailedVendor    = "vendor_error"
	FailedTimeout   = "vendor_timeout"
	FailedQuota     = "quota"
	FailedForgotten = "job_not_found"
)

// Listed returns the failure with one of the Failed codes. Another code is the upstream's own: it is added to the message, and its
// text decides the new code, otherwise the given one. That includes the gateway's own codes, because the upstream may be another
// gateway whose task was canceled. An adapter uses codes with the prefix "upstream_" for a vendor without codes; they are not added.
func (f VideoFailure) Listed(otherwise string) VideoFailure {
	if slices.Contains([]string{FailedContent, FailedInput, FailedVendor, FailedTimeout, FailedQuota, FailedForgotten}, f.Code) {
		return f
	}
	code, own := f.Code, strings.HasPrefix(f.Code, "upstream_") && f.Code != "upstream_unknown"
	if code != "" && !own && !strings.Contains(f.Message, code) {
		f.Message = code + ": " + f.Message
	}
	f.Code = otherwise
	for _, kind := range [...]struct {
		code    string
		phrases []string
	}{
		{FailedContent, []string{"moderation", "content policy", "content filter", "policy violation", "safety", "sensitive", "risk"}},
		{FailedQuota, []string{"quota", "credit", "credits", "balance", "billing", "rate limit"}},
		{FailedTimeout, []string{"timeout", "timed out", "expired", "deadline exceeded"}},
		{FailedInput, []string{"invalid", "unsupported", "missing", "too large"}},
	} {
		if Mentions(code, kind.phrases...) {
			f.Code = kind.code
			break
		}
	}
	return f
}

// As returns the failure with the given Failed code. It adds the upstream's own code to the message.
func (f VideoFailure) As(code string) VideoFailure {
	f = f.Listed(code)
	f.Code = code
	return f
}
