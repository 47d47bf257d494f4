package providers_test

import (
	"testing"

	"modelrelay/providers"
)

func TestListed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ code, message, want, says string }{
		{"content_policy", "No.", "content_policy", "No."},
		{"deadline_exceeded", "Late.", "deadline_exceeded", "Late."},
		{"moderation_blocked", "No.", "content_policy", "moderation_blocked: No."},
		{"50412", "Text Risk Not Pass", "content_policy", "50412: Text Risk Not Pass"},
		{"50500", "Internal Error", "vendor_error", "50500: Internal Error"},
		{"1201", "The upstream refused the request: 1201 is bad.", "vendor_error", "The upstream refused the request: 1201 is bad."},
		{"InvalidParameter.Size", "Bad.", "invalid_input", "InvalidParameter.Size: Bad."},
		{"insufficient_quota", "Pay.", "quota", "insufficient_quota: Pay."},
		{"upstream_expired", "It expired.", "vendor_timeout", "It expired."},
		{"upstream_failed", "It failed.", "vendor_error", "It failed."},
		{"", "It failed.", "vendor_error", "It failed."},
	} {
		got := providers.VideoFailure{Code: tc.code, Message: tc.message, Retryable: true}.Listed(providers.FailedVendor)
		if got != (providers.VideoFailure{Code: tc.want, Message: tc.says, Retryable: true}) {
			t.Errorf("%s %q: got %+v", tc.code, tc.message, got)
		}
	}
	if got := (providers.VideoFailure{Code: "x1", Message: "Bad."}).Listed(providers.FailedInput); got.Code != providers.FailedInput {
		t.Errorf("got %+v, want the code for all else", got)
	}
}
