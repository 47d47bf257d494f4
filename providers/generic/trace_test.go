package generic_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"testing"

	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
)

// TestTraceIsPassedOn: the next gateway receives the trace. A link to another host does not. Without a trace no request has one.
func TestTraceIsPassedOn(t *testing.T) {
	t.Parallel()
	const want = "00-01000000000000000000000000000000-0200000000000000-01"
	other := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Traceparent"); got != "" {
			t.Errorf("another host got %q", got)
		}
		w.Header().Set("Content-Type", "video/mp4")
		_, _ = io.WriteString(w, clip)
	}))
	t.Cleanup(other.Close)
	var got []string
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		got = append(got, r.Header.Get("Traceparent")) // one after the other
		_, _ = io.WriteString(w, `{"status":"completed","urls":["`+other.URL+`/o/1.mp4"]}`)
	}))
	t.Cleanup(server.Close)
	traced := trace.ContextWithSpanContext(t.Context(), trace.NewSpanContext(trace.SpanContextConfig{
		TraceID: trace.TraceID{1}, SpanID: trace.SpanID{2}, TraceFlags: trace.FlagsSampled,
	}))
	videos, to := newVideos(t), target(server.URL+"/v1")
	to.Channel.AllowPrivateResults = true // the other host is local
	if _, err := videos.Poll(t.Context(), to, providers.Ticket{Job: "1"}); err != nil {
		t.Fatal(err)
	}
	video, err := videos.Open(traced, to, providers.Ticket{Job: "1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	_ = video.Body.Close()
	if len(got) != 2 || got[0] != "" || got[1] != want {
		t.Errorf("the next gateway got %q, want none and %q", got, want)
	}
}
