package providers_test

import (
	"testing"

	"modelrelay/providers"
)

func TestListed(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ code, message, want, says string }{
		{"content_policy", "No.", "content_policy", "No."},
		{"moderation_blocked", "No.", "content_policy", "moderation_blocked: No."},
		{"content_policy_violation", "No.", "content_policy", "content_policy_violation: No."},
		{"InputTextRiskDetection", "No.", "content_policy", "InputTextRiskDetection: No."},
		{"50412", "Text Risk Not Pass", "vendor_error", "50412: Text Risk Not Pass"}, // which its adapter knows
		{"1201", "The upstream refused the request: 1201 is bad.", "vendor_error", "The upstream refused the request: 1201 is bad."},
		{"InvalidParameter.Size", "Bad.", "invalid_input", "InvalidParameter.Size: Bad."},
		{"file_too_large", "Bad.", "invalid_input", "file_too_large: Bad."},
		{"insufficient_quota", "Pay.", "quota", "insufficient_quota: Pay."},
		{"asterisk_in_prompt", "Bad.", "vendor_error", "asterisk_in_prompt: Bad."},
		{"unbalanced_brackets", "Bad.", "vendor_error", "unbalanced_brackets: Bad."},
		{"case_insensitive", "Bad.", "vendor_error", "case_insensitive: Bad."},
		{"upstream_expired", "It expired.", "vendor_timeout", "It expired."},
		{"upstream_failed", "It failed.", "vendor_error", "It failed."},
		{"", "It failed.", "vendor_error", "It failed."},
		// A vendor's code that equals one of ours has another meaning.
		{"upstream_unknown", "Lost.", "vendor_error", "upstream_unknown: Lost."},
		{"archive_failed", "No.", "vendor_error", "archive_failed: No."},
		{"cancelled", "Over.", "vendor_error", "cancelled: Over."},
		{"failed_by_operator", "Over.", "vendor_error", "failed_by_operator: Over."},
		{"channel_gone", "No.", "vendor_error", "channel_gone: No."},
		{"internal_error", "No.", "vendor_error", "internal_error: No."},
		{"queue_timeout", "Late.", "vendor_timeout", "queue_timeout: Late."},
		{"deadline_exceeded", "Late.", "vendor_timeout", "deadline_exceeded: Late."},
	} {
		got := providers.VideoFailure{Code: tc.code, Message: tc.message, Retryable: true}.Listed(providers.FailedVendor)
		if got != (providers.VideoFailure{Code: tc.want, Message: tc.says, Retryable: true}) {
			t.Errorf("%s %q: got %+v", tc.code, tc.message, got)
		}
	}
	if got := (providers.VideoFailure{Code: "x1", Message: "Bad."}).Listed(providers.FailedInput); got.Code != providers.FailedInput {
		t.Errorf("got %+v, want the code for all else", got)
	}
	want := providers.VideoFailure{Code: providers.FailedContent, Message: "1301: invalid."}
	if got := (providers.VideoFailure{Code: "1301", Message: "invalid."}).As(providers.FailedContent); got != want {
		t.Errorf("got %+v, want %+v", got, want)
	}
}

func TestSays(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		text string
		want bool
	}{
		{"TextRiskDetected", true},
		{"text_risk", true},
		{"Text Risk Not Pass", true},
		{"RISK", true},
		{"(risk)", true},
		{"", false},
		{"asterisk", false},
		{"risky", false},
		{"the rate-limit", true},
		{"the rate, then a limit", false},
		{"RateLimited", false},
	} {
		if got := providers.Mentions(tc.text, "risk", "rate limit"); got != tc.want {
			t.Errorf("%q: got %t", tc.text, got)
		}
	}
}
