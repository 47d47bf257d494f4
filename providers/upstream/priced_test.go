package upstream_test

import (
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// TestPriced: what a vendor charges for a job that ended, in its own unit, and whether a failed one is billed.
func TestPriced(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		state  providers.VideoState
		object string
		price  string
		billed bool
	}{
		{providers.JobDone, `{"credits":60}`, "60 credits", false},
		{providers.JobFailed, `{"credits":"2.5"}`, "2.5 credits", true},
		{providers.JobFailed, `{"credits":0}`, "0 credits", false},
		{providers.JobFailed, `{"credits":null}`, "", false},
		{providers.JobFailed, `{"credits":-1}`, "", false},
		{providers.JobRunning, `{"credits":60}`, "", false},
		{providers.JobFailed, `[60]`, "", false},
		{providers.JobFailed, ``, "", false},
	} {
		s := providers.VideoStatus{State: tc.state}
		if tc.state == providers.JobFailed {
			s.Failure = new(providers.VideoFailure)
		}
		s = upstream.Priced(s, upstream.DocOf([]byte(tc.object)).Get("credits"), "credits")
		if s.Price != tc.price || s.Failure != nil && s.Failure.Billed != tc.billed {
			t.Errorf("%s %s: got %q, %+v", tc.state, tc.object, s.Price, s.Failure)
		}
	}
}
