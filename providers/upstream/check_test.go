package upstream_test

import (
	"net/http"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// TestLookedUp: a channel test passes if the vendor reports the made-up job as unknown in its own format. The 404 page of a web
// server does not pass.
func TestLookedUp(t *testing.T) {
	t.Parallel()
	refused := func(status int, body string) error {
		fault := upstream.Refusal(status, http.Header{})
		fault.Upstream = &providers.Reply{Status: status, Body: []byte(body)}
		return fault
	}
	for _, tc := range []struct {
		err  error
		good bool
	}{
		{nil, true},
		{refused(404, `{"error":"no such job"}`), true},
		{refused(400, `{"error":"no such job"}`), true},
		{refused(404, "404 page not found"), false},
		{refused(401, `{"error":"who are you?"}`), false},
		{refused(500, `{}`), false},
	} {
		if _, err := upstream.LookedUp(tc.err, nil); (err == nil) != tc.good {
			t.Errorf("%v: got %v, want good %t", tc.err, err, tc.good)
		}
	}
}
