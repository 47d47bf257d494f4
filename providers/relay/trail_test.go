package relay_test

import (
	"net/http"
	"testing"

	"modelrelay/providers"
)

// TestTrail: a call's trail has each request that it took, with what the upstreams call them.
func TestTrail(t *testing.T) {
	t.Parallel()
	b := newBench(t, nil,
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Request-Id", "first")
			w.WriteHeader(http.StatusBadGateway)
		},
		func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("X-Request-Id", `"odd" id`)
			w.WriteHeader(http.StatusTooManyRequests)
		},
		func(w http.ResponseWriter, r *http.Request) {
			w.Header().Set("X-Request-Id", "third")
			answers(document)(w, r)
		},
	)
	var trail providers.Trail
	answer, err := b.Do(t.Context(), "default", chatCall(func(c *providers.Call) { c.Trail = &trail }))
	if err != nil {
		t.Fatal(err)
	}
	_ = answer.Body.Close()
	want := []providers.Try{
		{Channel: "a", Model: "m", Fault: providers.Upstream, RequestID: "first"},
		{Channel: "b", Model: "m", Fault: providers.RateLimited},
		{Channel: "c", Model: "m", RequestID: "third"},
	}
	got := trail.Tries()
	if len(got) != len(want) {
		t.Fatalf("got %+v", got)
	}
	for i, try := range got {
		if try.Took <= 0 || try.Key != providers.Secret("hush-"+try.Channel).Fingerprint() {
			t.Errorf("try %+v", try)
		}
		try.Took, try.Key = 0, ""
		if try != want[i] {
			t.Errorf("got %+v, want %+v", try, want[i])
		}
	}
}
