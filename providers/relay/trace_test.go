package relay_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers/relay"
)

// newTracer makes a tracer whose ended spans the exporter keeps.
func newTracer(tb testing.TB, options ...sdktrace.TracerProviderOption) (trace.Tracer, *tracetest.InMemoryExporter) {
	tb.Helper()
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(append(options, sdktrace.WithSyncer(kept))...)
	tb.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(tb.Context())) })
	return provider.Tracer("test"), kept
}

// TestAttemptsAreSpans: each attempt of a call has a span within the request's, with its outcome and no text of the prompt or answer.
func TestAttemptsAreSpans(t *testing.T) {
	t.Parallel()
	var headers []http.Header
	seen := func(next http.HandlerFunc) http.HandlerFunc {
		return func(w http.ResponseWriter, r *http.Request) {
			headers = append(headers, r.Header.Clone()) // one after the other
			next(w, r)
		}
	}
	tracer, kept := newTracer(t)
	b := newBench(t, &relay.Options{Tracer: tracer}, seen(status(http.StatusServiceUnavailable)), seen(streams(chunk1, counts, lastWord)))
	ctx, request := tracer.Start(t.Context(), "request")
	answer, err := b.Do(ctx, "default", chatCall(streamed))
	if err != nil {
		t.Fatal(err)
	}
	if n := len(kept.GetSpans()); n != 1 {
		t.Errorf("got %d ended spans before the end of the answer, want the first attempt's", n)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err != nil {
		t.Fatal(err)
	}
	answer.Body.Close()
	answer.Body.Close()
	request.End()

	spans := kept.GetSpans()
	if len(spans) != 3 {
		t.Fatalf("got %d spans, want two attempts and the request", len(spans))
	}
	for i, want := range []struct {
		channel string
		status  codes.Code
		code    int
		kind    string
		event   bool
	}{{"a", codes.Error, 503, "overloaded", false}, {"b", codes.Unset, 200, "", true}} {
		span := spans[i]
		has := attribute.NewSet(span.Attributes...)
		got := func(key string) string { v, _ := has.Value(attribute.Key(key)); return v.String() }
		if span.Name != "chat m" || span.SpanKind != trace.SpanKindClient || span.Parent.SpanID() != request.SpanContext().SpanID() ||
			span.Status.Code != want.status || span.Status.Description != "" {
			t.Errorf("attempt %d: got %s %v %v, parent %v", i+1, span.Name, span.SpanKind, span.Status, span.Parent.SpanID())
		}
		for key, want := range map[string]string{
			"gateway.channel": want.channel, "gateway.attempt": fmt.Sprint(i + 1), "gen_ai.operation.name": "chat", "gen_ai.provider.name": "openai",
			"gen_ai.request.model": "m", "http.response.status_code": fmt.Sprint(want.code), "error.type": want.kind, "server.address": "127.0.0.1",
		} {
			if got(key) != want {
				t.Errorf("attempt %d: got %s %q, want %q", i+1, key, got(key), want)
			}
		}
		if events := slices.IndexFunc(span.Events, func(e sdktrace.Event) bool { return e.Name == "first byte" }) >= 0; events != want.event {
			t.Errorf("attempt %d: got a first byte: %t, want %t", i+1, events, want.event)
		}
	}
	used := attribute.NewSet(spans[1].Attributes...)
	for key, want := range map[attribute.Key]int64{"gen_ai.usage.input_tokens": 7, "gen_ai.usage.output_tokens": 2} {
		if got, _ := used.Value(key); got.AsInt64() != want {
			t.Errorf("got %s %d, want %d", key, got.AsInt64(), want)
		}
	}
	if text := fmt.Sprintf("%+v", spans); strings.Contains(text, "hush-") || strings.Contains(text, "private") ||
		strings.Contains(text, "upstream words") || strings.Contains(text, "Hel") {
		t.Errorf("a span has private data: %s", text)
	}
	for _, header := range headers {
		if header.Get("Traceparent") != "" || header.Get("Tracestate") != "" || header.Get("Baggage") != "" {
			t.Errorf("the upstream got %v", header)
		}
	}
}

// TestBrokenAnswerIsTraced: the span of an answer that breaks off after its first byte has the status error.
func TestBrokenAnswerIsTraced(t *testing.T) {
	t.Parallel()
	tracer, kept := newTracer(t)
	b := newBench(t, &relay.Options{Tracer: tracer}, func(w http.ResponseWriter, r *http.Request) {
		streams(chunk1)(w, r)
		panic(http.ErrAbortHandler)
	})
	ctx, _ := tracer.Start(t.Context(), "request")
	answer, err := b.Do(ctx, "default", chatCall(streamed))
	if err != nil {
		t.Fatal(err)
	}
	if _, err := io.Copy(io.Discard, answer.Body); err == nil {
		t.Fatal("the answer was whole")
	}
	answer.Body.Close()
	spans := kept.GetSpans()
	if len(spans) != 1 || spans[0].Status.Code != codes.Error {
		t.Errorf("got %+v, want one span that failed", spans)
	}
}

// TestUnrecordedCallsMakeNoSpans: neither a call outside of a trace nor one whose trace is not recorded.
func TestUnrecordedCallsMakeNoSpans(t *testing.T) {
	t.Parallel()
	tracer, kept := newTracer(t, sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
	b := newBench(t, &relay.Options{Tracer: tracer}, answers(document))
	unsampled := trace.ContextWithRemoteSpanContext(t.Context(),
		trace.NewSpanContext(trace.SpanContextConfig{TraceID: trace.TraceID{1}, SpanID: trace.SpanID{1}}))
	unrecorded, _ := tracer.Start(unsampled, "request")
	for _, ctx := range []context.Context{t.Context(), unrecorded} {
		answer, err := b.Do(ctx, "default", chatCall())
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
	}
	if spans := kept.GetSpans(); len(spans) != 0 {
		t.Errorf("got spans %+v", spans)
	}
}
