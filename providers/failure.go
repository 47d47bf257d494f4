package providers

import (
	"slices"
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

// Listed is the failure under a code of the list that clients read: one of the Failed words. Another is the upstream's own and stands
// before the message; it counts as what its words mean, else as otherwise. The gateway's own codes are no exception: an upstream that
// is such a gateway says "cancelled" of its task, not of ours. Codes that begin with "upstream_" are an adapter's, for an upstream that
// gives none, and are not repeated.
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

// As is the failure under a Failed word that is known to be meant, with the upstream's own code before the message.
func (f VideoFailure) As(word string) VideoFailure {
	f = f.Listed(word)
	f.Code = word
	return f
}
