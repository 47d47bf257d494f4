package form_test

import (
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
)

// TestOpenAIFault reads errors of https://platform.openai.com/docs/guides/error-codes, and of imitators:
// https://openrouter.ai/docs/api/reference/errors-and-debugging has statuses as codes.
func TestOpenAIFault(t *testing.T) {
	t.Parallel()
	for _, test := range []struct {
		value    string
		kind     providers.Kind
		blame    providers.Blame
		accepted providers.Accepted
		said     string
	}{
		{`{"message":"m","type":"insufficient_quota","code":"insufficient_quota"}`, providers.Upstream, providers.BlameKey, providers.NotAccepted, ""},
		{`{"message":"m","type":"invalid_request_error","code":"invalid_api_key"}`, providers.Upstream, providers.BlameKey, providers.NotAccepted, ""},
		{`{"message":"m","type":"tokens","code":"rate_limit_exceeded"}`, providers.RateLimited, providers.BlameKey, providers.NotAccepted, ""},
		{`{"message":"m","code":429}`, providers.RateLimited, providers.BlameKey, providers.NotAccepted, ""},
		{`{"message":"m","type":"server_error","code":"server_is_overloaded"}`, providers.Overloaded, providers.BlameChannel, providers.AcceptedUnknown, ""},
		{`{"message":"m","code":"503"}`, providers.Overloaded, providers.BlameChannel, providers.AcceptedUnknown, ""},
		{`{"message":"m","type":"invalid_request_error","code":"model_not_found"}`, providers.ModelNotFound, providers.BlameNone, providers.NotAccepted, ""},
		{`{"message":"too \u006cong","type":"invalid_request_error","code":"context_length_exceeded"}`, providers.Invalid, providers.BlameNone, providers.NotAccepted, "too long"},
		{`{"message":"m","type":"server_error","code":null}`, providers.Upstream, providers.BlameChannel, providers.AcceptedUnknown, ""},
		{`{"message":"m","code":500}`, providers.Upstream, providers.BlameChannel, providers.AcceptedUnknown, ""},
		{`"oops"`, providers.Upstream, providers.BlameChannel, providers.AcceptedUnknown, ""},
	} {
		got := form.OpenAIFault(form.Value(test.value))
		if got.Kind != test.kind || got.Blame != test.blame || got.Accepted != test.accepted || got.Said != test.said || got.Message == "" {
			t.Errorf("%s: got %+v", test.value, got)
		}
	}
	long := form.OpenAIFault(form.Value(`{"type":"invalid_request_error","message":"` + strings.Repeat("x", 5000) + `"}`))
	if len(long.Said) > 2<<10+len("…") {
		t.Errorf("%d bytes are kept", len(long.Said))
	}
}
