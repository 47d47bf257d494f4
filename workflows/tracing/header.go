package tracing

import (
	"context"
	"crypto/sha256"

	"go.opentelemetry.io/otel/propagation"
	"go.opentelemetry.io/otel/trace"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// traceHeader is the Temporal header in which the interceptors of Temporal's own SDKs carry a trace: an object with a W3C traceparent.
const traceHeader = "_tracer-data"

// write puts a sampled span into a header. It ignores a span that is not sampled.
func write(ctx context.Context, header map[string]*commonpb.Payload, span trace.SpanContext) {
	if header == nil || !span.IsSampled() {
		return
	}
	data := make(propagation.MapCarrier)
	propagation.TraceContext{}.Inject(trace.ContextWithSpanContext(ctx, span), data)
	payload, err := converter.GetDefaultDataConverter().ToPayload(data)
	if err == nil { // a map of strings can always be marshalled
		header[traceHeader] = payload
	}
}

// read returns the sampled span of a header. It returns false for an unreadable header: a trace fails no task.
func read(ctx context.Context, header map[string]*commonpb.Payload) (trace.SpanContext, bool) {
	payload := header[traceHeader]
	if payload == nil {
		return trace.SpanContext{}, false
	}
	var data propagation.MapCarrier
	if err := converter.GetDefaultDataConverter().FromPayload(payload, &data); err != nil {
		return trace.SpanContext{}, false
	}
	span := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, data))
	return span, span.IsSampled()
}

// noContext is the context of spans in a workflow, because a workflow.Context is not a context.Context.
func noContext() context.Context { return context.Background() } //nolint:forbidigo // a workflow has no other

type givenID struct{}

// withSpanID gives the next span of the context an id that depends only on the name.
func withSpanID(ctx context.Context, name string) context.Context {
	sum := sha256.Sum256([]byte(name))
	return context.WithValue(ctx, givenID{}, trace.SpanID(sum[:8]))
}

// GivenSpanID returns the id that a span started in the context must have, and false if it may have any.
func GivenSpanID(ctx context.Context) (trace.SpanID, bool) {
	id, ok := ctx.Value(givenID{}).(trace.SpanID)
	return id, ok
}
