package providers_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"testing"

	"modelrelay/providers"
)

func TestAsFault(t *testing.T) {
	t.Parallel()
	fault := providers.InvalidField("n", "must be %d", 1)
	for _, tc := range []struct {
		name string
		err  error
		want providers.Kind
	}{
		{"a fault", fault, providers.Invalid},
		{"a wrapped fault", fmt.Errorf("reading: %w", fault), providers.Invalid},
		{"canceled", fmt.Errorf("reading: %w", context.Canceled), providers.Canceled},
		{"overdue", context.DeadlineExceeded, providers.Timeout},
		{"anything else", io.ErrUnexpectedEOF, providers.Internal},
	} {
		got := providers.AsFault(tc.err)
		if got.Kind != tc.want {
			t.Errorf("%s: got %s, want %s", tc.name, got.Kind, tc.want)
		}
		if tc.want == providers.Internal && (!errors.Is(got, tc.err) || got.Message == tc.err.Error()) {
			t.Errorf("%s: got message %q, cause %v", tc.name, got.Message, got.Err)
		}
	}
	if got := providers.AsFault(nil); got != nil {
		t.Errorf("got %v of nil", got)
	}
	if fault.Param != "n" || fault.Message != "must be 1" || fault.Accepted != providers.NotAccepted {
		t.Errorf("got %+v", fault)
	}
}

func TestRetryable(t *testing.T) {
	t.Parallel()
	for kind, want := range map[providers.Kind]bool{
		providers.Upstream: true, providers.Overloaded: true, providers.RateLimited: true, providers.Quota: true, providers.Timeout: true,
		providers.Invalid: false, providers.NotFound: false, providers.ModelNotFound: false, providers.TooLarge: false, providers.Conflict: false,
		providers.Canceled: false, providers.Internal: false,
	} {
		if got := (&providers.Fault{Kind: kind}).Retryable(); got != want {
			t.Errorf("%s: got %v, want %v", kind, got, want)
		}
	}
}

// TestLost: an answer is lost if nothing is known of it. One that makes no sense is not lost.
func TestLost(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		fault providers.Fault
		want  bool
	}{
		"broken connection": {providers.Fault{Kind: providers.Upstream}, true},
		"no answer in time": {providers.Fault{Kind: providers.Timeout}, true},
		"nonsense":          {providers.Fault{Kind: providers.Upstream, Malformed: true}, false},
		"an error answer":   {providers.Fault{Kind: providers.Upstream, Upstream: new(providers.Reply)}, false},
		"not sent":          {providers.Fault{Kind: providers.Upstream, Accepted: providers.NotAccepted}, false},
		"refused":           {providers.Fault{Kind: providers.Invalid}, false},
	} {
		if got := test.fault.Lost(); got != test.want {
			t.Errorf("%s: got %t", name, got)
		}
	}
}
