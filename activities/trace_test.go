package activities_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"
	"go.temporal.io/sdk/worker"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/secret"
	"modelrelay/storage/tokens"
)

// traced puts the environment's activities into a recorded span.
func (r *testEnv) traced(t *testing.T) *tracetest.InMemoryExporter {
	t.Helper()
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept))
	t.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(t.Context())) })
	tracer := provider.Tracer("test")
	r.upstreams.Tracer, r.acts.Deliverer.Tracer = tracer, tracer
	ctx, _ := tracer.Start(t.Context(), "activity")
	r.env.SetWorkerOptions(worker.Options{BackgroundActivityContext: ctx})
	return kept
}

// only is the one span that has ended.
func only(t *testing.T, kept *tracetest.InMemoryExporter) (tracetest.SpanStub, map[string]string) {
	t.Helper()
	spans := kept.GetSpans()
	if len(spans) != 1 || spans[0].SpanKind != trace.SpanKindClient {
		t.Fatalf("got %+v, want one span of a client", spans)
	}
	attributes := make(map[string]string)
	for _, a := range spans[0].Attributes {
		attributes[string(a.Key)] = a.Value.String()
	}
	return spans[0], attributes
}

// TestTurnsAreSpans: what an activity asks an upstream is a span within its own, with the kind of its fault and none of
// its words.
func TestTurnsAreSpans(t *testing.T) {
	t.Parallel()
	refuse := &providers.Fault{
		Kind: providers.RateLimited, Message: "words of the upstream", Accepted: providers.NotAccepted,
		Upstream: &providers.Reply{Status: 429, Body: []byte("words of the upstream")},
	}
	var inside trace.SpanContext
	r := newTestEnv(t, fakeAdapter{submit: func(ctx context.Context, _ providers.Target, _ providers.VideoRequest) (providers.Ticket, error) {
		inside = trace.SpanContextFromContext(ctx)
		return providers.Ticket{}, refuse
	}})
	kept := r.traced(t)
	_, err := do[activities.Job](t, r, r.acts.Submitter.Submit, activities.SubmitInput{
		TaskID: "video_1", Attempt: 2, Assignment: assignment(), Request: &providers.VideoRequest{Model: "sora-2", Prompt: "words of the client"},
	})
	if err == nil {
		t.Fatal("the submit was accepted")
	}
	span, got := only(t, kept)
	want := map[string]string{
		"gateway.channel": "main", "gateway.attempt": "2", "gen_ai.operation.name": "video", "gen_ai.provider.name": "fake",
		"gen_ai.request.model": "up",
		"error.type":           "rate_limited", "http.response.status_code": "429",
	}
	for key, value := range want {
		if got[key] != value {
			t.Errorf("got %s %q, want %q", key, got[key], value)
		}
	}
	if span.Name != "submit up" || span.Status.Code != codes.Error || span.SpanContext.SpanID() != inside.SpanID() {
		t.Errorf("got %+v, the upstream was asked within %v", span, inside)
	}
	if text := fmt.Sprintf("%+v", span); strings.Contains(text, "words") || strings.Contains(text, hushKey.Reveal()) {
		t.Errorf("a span has secret data: %s", text)
	}
}

// TestDeliveriesAreSpans: a try of a delivery names the receiver's host and how it answered.
func TestDeliveriesAreSpans(t *testing.T) {
	t.Parallel()
	hook := newReceiver(t, status(http.StatusInternalServerError))
	r := newNotifier(t, tokens.Webhook{URL: hook.URL + "/secret-path?a=secret", Secrets: []secret.Text{tokens.NewWebhookSecret()}})
	kept := r.traced(t)
	in := deliver()
	in.Until = time.Now().Add(time.Hour)
	if _, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, in); err == nil {
		t.Fatal("the event was delivered")
	}
	span, got := only(t, kept)
	if got["server.address"] != "127.0.0.1" || got["http.response.status_code"] != "500" || span.Status.Code != codes.Error ||
		span.Name != "POST webhook" {
		t.Errorf("got %s %v", span.Name, got)
	}
	if text := fmt.Sprintf("%+v", span); strings.Contains(text, "secret") {
		t.Errorf("a span has secret data: %s", text)
	}
	for _, request := range hook.requests() {
		if request.header.Get("Traceparent") != "" {
			t.Errorf("the receiver got %v", request.header)
		}
	}
}
