package api_test

import (
	"net/http"
	"strings"
	"testing"
)

// TestImageTaskRefused: a body that cannot be an image task is refused with the field, before a call exists.
func TestImageTaskRefused(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for body, want := range map[string]string{
		`{`:             "JSON",
		`{"model":"m"}`: "prompt",
		`{"model":"m","prompt":"x","stream":true}`: "stream",
	} {
		rec := g.do(t, request(http.MethodPost, "/v1/images/generations/async", body))
		if rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: answered %d %s", body, rec.Code, rec.Body)
		}
	}
}
