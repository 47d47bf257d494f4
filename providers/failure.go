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
// text decides the new code, otherwise the given one. That includes the gateway's own codes, because the upstream may be such a
// gateway whose own task was canceled. Codes with the prefix "upstream_" are those of an adapter whose vendor has none, and are not
// added.
func (f VideoFailure) Listed(otherwise string) VideoFailure {
	if slices.Contains([]string{FailedContent, FailedInput, FailedVendor, FailedTimeout, FailedQuota, FailedForgotten}, f.Code) {
		return f
	}
	said, own := f.Code, strings.HasPrefix(f.Code, "upstream_") && f.Code != "upstream_unknown"
	if said != "" && !own && !strings.Contains(f.Message, said) {
		f.Message = said + ": " + f.Message
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
		if Says(said, kind.phrases...) {
			f.Code = kind.code
			break
		}
	}
	return f
}

// As returns the failure with a Failed code that is known to be right. It adds the upstream's own code to the message.
func (f VideoFailure) As(word string) VideoFailure {
	f = f.Listed(word)
	f.Code = word
	return f
}
