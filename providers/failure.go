package providers

import (
	"slices"
	"strconv"
	"strings"
)

// The codes of failures that vendors report, over all of them; what a vendor calls it stands in the message.
const (
	FailedContent   = "content_policy"
	FailedInput     = "invalid_input"
	FailedVendor    = "vendor_error"
	FailedTimeout   = "vendor_timeout"
	FailedQuota     = "quota"
	FailedForgotten = "job_not_found"
)

// Listed is the failure under a code of the list that clients read: one of the Failed words, or of the gateway's own, which an upstream
// that is such a gateway reports as well. Another is the upstream's own: what its words mean, else otherwise, and it stands before
// the message. Codes that begin with "upstream_" are an adapter's, for an upstream that gives none, and are not repeated.
func (f VideoFailure) Listed(otherwise string) VideoFailure {
	own := []string{
		FailedContent, FailedInput, FailedVendor, FailedTimeout, FailedQuota, FailedForgotten,
		"queue_timeout", "deadline_exceeded", "archive_failed", "channel_gone", "upstream_unknown", "failed_by_operator", "cancelled", "internal_error",
	}
	if slices.Contains(own, f.Code) {
		return f
	}
	said := strings.ToLower(f.Code)
	if _, err := strconv.Atoi(said); err == nil { // a number says nothing
		said = strings.ToLower(f.Message)
	}
	if f.Code != "" && !strings.HasPrefix(f.Code, "upstream_") && !strings.Contains(f.Message, f.Code) {
		f.Message = f.Code + ": " + f.Message
	}
	f.Code = otherwise
	for _, kind := range [...]struct {
		code  string
		words []string
	}{
		{FailedContent, []string{"moderation", "content_policy", "content_filter", "policy_violation", "safety", "sensitive", "risk"}},
		{FailedQuota, []string{"quota", "credit", "balance", "billing", "rate_limit"}},
		{FailedTimeout, []string{"timeout", "timed_out", "expired"}},
		{FailedInput, []string{"invalid", "unsupported", "missing", "too_large"}},
	} {
		if slices.ContainsFunc(kind.words, func(word string) bool { return strings.Contains(said, word) }) {
			f.Code = kind.code
			break
		}
	}
	return f
}
