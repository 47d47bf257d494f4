package api_test

import (
	"bytes"
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"go.opentelemetry.io/otel/codes"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/api"
)

const (
	givenTrace  = "0af7651916cd43dd8448eb211c80319c"
	givenParent = "00-" + givenTrace + "-b7ad6b7169203331-01"
	unsampled   = "00-" + givenTrace + "-b7ad6b7169203331-00"
)

// newTracer makes a tracer whose ended spans the exporter keeps.
func newTracer(tb testing.TB) (trace.Tracer, *tracetest.InMemoryExporter) {
	tb.Helper()
	kept := tracetest.NewInMemoryExporter()
	provider := sdktrace.NewTracerProvider(sdktrace.WithSyncer(kept), sdktrace.WithSampler(sdktrace.ParentBased(sdktrace.AlwaysSample())))
	tb.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(tb.Context())) })
	return provider.Tracer("test"), kept
}

// attributes are a span's, as text.
func attributes(span tracetest.SpanStub) map[string]string {
	all := make(map[string]string)
	for _, a := range span.Attributes {
		all[string(a.Key)] = a.Value.String()
	}
	return all
}

// TestRequestsAreSpans: the name and the attributes of a request's span, for every way in which a request ends.
func TestRequestsAreSpans(t *testing.T) {
	t.Parallel()
	const prompt = "a very private prompt"
	call := func(model, more string) string {
		return `{"model":"` + model + `","messages":[{"role":"user","content":"` + prompt + more + `"}]}`
	}
	for name, tc := range map[string]struct {
		req    *http.Request
		span   string
		spans  int // those of upstream attempts included
		status codes.Code
		want   map[string]string
	}{
		"call": {
			req: request("POST", "/v1/chat/completions", call("fast", "")), span: "POST /v1/chat/completions", spans: 2,
			want: map[string]string{
				"http.route": "/v1/chat/completions", "http.request.method": "POST", "http.response.status_code": "200",
				"gen_ai.operation.name": "chat",
				"gen_ai.provider.name":  "openai",
				"gen_ai.request.model":  "fast", "gen_ai.usage.input_tokens": "5", "gen_ai.usage.output_tokens": "7", "gateway.token": "good",
				"gateway.channel": "main", "gateway.attempt": "1", "error.type": "",
			},
		},
		"upstream fails": {
			req: request("POST", "/v1/chat/completions", call("fast", "fail 500")), span: "POST /v1/chat/completions", spans: 2,
			status: codes.Error, want: map[string]string{
				"http.response.status_code": "502", "error.type": "upstream", "gen_ai.request.model": "fast",
			},
		},
		"bad request": {
			req: request("POST", "/v1/chat/completions", `{"model":"fast"}`), span: "POST /v1/chat/completions", spans: 1,
			want: map[string]string{
				"http.response.status_code": "400", "error.type": "invalid",
			},
		},
		"unknown model": {req: request("POST", "/v1/moderations", `{"model":"sk-pasted-into-the-wrong-field","input":"x"}`, "Authorization",
			"Bearer sk-few"), span: "POST /v1/moderations", spans: 1, want: map[string]string{
			"http.response.status_code": "404", "gen_ai.request.model": "",
		}},
		"no key": {
			req: request("GET", "/v1/models", "", "Authorization", ""), span: "GET /v1/models", spans: 1,
			want: map[string]string{"http.response.status_code": "401", "gateway.token": ""},
		},
		"no such path": {
			req: request("GET", "/sk-pasted-into-the-path", ""), span: "GET", spans: 1,
			want: map[string]string{"http.response.status_code": "404", "http.route": ""},
		},
		"odd method": {
			req: request("SK-PASTED", "/v1/models", ""), span: "_OTHER", spans: 1,
			want: map[string]string{"http.request.method": "_OTHER"},
		},
		"probe":     {req: request("GET", "/healthz", "")},
		"unsampled": {req: request("POST", "/v1/chat/completions", call("fast", ""), "Traceparent", unsampled)},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			tracer, kept := newTracer(t)
			g, _ := newOpenAI(t, func(o *api.Options) { o.Tracer = tracer })
			g.do(t, tc.req)
			spans := kept.GetSpans()
			if len(spans) != tc.spans {
				t.Fatalf("got %d spans, want %d: %+v", len(spans), tc.spans, spans)
			}
			if strings.Contains(g.log.String(), "trace_id") != (tc.spans > 0) && name != "probe" {
				t.Errorf("log %s, want a trace_id: %t", g.log.String(), tc.spans > 0)
			}
			if tc.spans == 0 {
				return
			}
			span := spans[len(spans)-1]
			if span.Name != tc.span || span.SpanKind != trace.SpanKindServer || span.Parent.IsValid() || span.Status.Code != tc.status ||
				span.Status.Description != "" {
				t.Errorf("got %q %v, parent %v, %+v", span.Name, span.SpanKind, span.Parent, span.Status)
			}
			got := attributes(span)
			for key, want := range tc.want {
				if got[key] != want {
					t.Errorf("got %s %q, want %q", key, got[key], want)
				}
			}
			if id := span.SpanContext.TraceID().String(); !strings.Contains(g.log.String(), `"trace_id":"`+id+`"`) {
				t.Errorf("the log does not name %s: %s", id, g.log.String())
			}
			for _, secret := range []string{"private", "hello", "pasted", "PASTED", goodKey, "sk-few", upstreamKey, "broken"} {
				if bytes.Contains(fmt.Appendf(nil, "%+v", spans), []byte(secret)) {
					t.Errorf("%q is in a span: %+v", secret, spans)
				}
			}
		})
	}
}

// TestClientsTrace: the request's span is a part of the client's trace, whose own words go no further.
func TestClientsTrace(t *testing.T) {
	t.Parallel()
	tracer, kept := newTracer(t)
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Tracer = tracer })
	g.do(t, request("GET", "/v1/models", "", "Traceparent", givenParent, "Tracestate", "vendor=secret-words", "Baggage", "who=secret-words"))
	g.do(t, request("GET", "/v1/models", "", "Traceparent", "00-nonsense"))
	spans := kept.GetSpans()
	if len(spans) != 2 {
		t.Fatalf("got %d spans", len(spans))
	}
	if span := spans[0]; span.SpanContext.TraceID().String() != givenTrace || span.Parent.SpanID().String() != "b7ad6b7169203331" ||
		!span.Parent.IsRemote() {
		t.Errorf("got %v of %v", span.SpanContext, span.Parent)
	}
	if spans[1].Parent.IsValid() || spans[1].SpanContext.TraceID().String() == givenTrace {
		t.Errorf("got %v of nonsense", spans[1].Parent)
	}
	if text := fmt.Sprintf("%+v", spans); strings.Contains(text, "secret-words") {
		t.Errorf("a stranger's words stand in a span: %s", text)
	}
}

// TestCreatesAreTraced: a create's span names the task, and the task's start is within it.
func TestCreatesAreTraced(t *testing.T) {
	t.Parallel()
	tracer, kept := newTracer(t)
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Tracer = tracer })
	g.do(t, request("POST", "/v1/videos", `{"model":"sora-2","prompt":"a very private prompt"}`))
	spans := kept.GetSpans()
	if len(spans) != 1 || spans[0].Name != "POST /v1/videos" {
		t.Fatalf("got %+v", spans)
	}
	got := attributes(spans[0])
	if got["gateway.task"] != "video_1" || got["gen_ai.operation.name"] != "video" || got["gen_ai.request.model"] != "sora-2" {
		t.Errorf("got %v", got)
	}
}
