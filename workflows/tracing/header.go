package tracing

import (
	"context"
	"crypto/sha256"
	"strings"

	"go.opentelemetry.io/otel/trace"
	commonpb "go.temporal.io/api/common/v1"
	"go.temporal.io/sdk/converter"
)

// traceHeader is the Temporal header in which the interceptors of Temporal's own SDKs carry a trace: an object with a W3C traceparent.
const (
	traceHeader = "_tracer-data"
	traceParent = "traceparent"
	sampledFlag = "01"
)

// write puts a sampled span into a header. It ignores a span that is not sampled.
func write(header map[string]*commonpb.Payload, span trace.SpanContext) {
	if header == nil || !span.IsSampled() {
		return
	}
	value := "00-" + span.TraceID().String() + "-" + span.SpanID().String() + "-" + sampledFlag
	payload, err := converter.GetDefaultDataConverter().ToPayload(map[string]string{traceParent: value})
	if err == nil { // a map of strings can always be marshalled
		header[traceHeader] = payload
	}
}

// read returns the sampled span of a header. It returns false for an unreadable header: a trace fails no task.
func read(header map[string]*commonpb.Payload) (trace.SpanContext, bool) {
	payload := header[traceHeader]
	if payload == nil {
		return trace.SpanContext{}, false
	}
	var data map[string]string
	if err := converter.GetDefaultDataConverter().FromPayload(payload, &data); err != nil {
		return trace.SpanContext{}, false
	}
	parts := strings.Split(data[traceParent], "-")
	if len(parts) != 4 {
		return trace.SpanContext{}, false
	}
	id, err := trace.TraceIDFromHex(parts[1])
	if err != nil {
		return trace.SpanContext{}, false
	}
	span, err := trace.SpanIDFromHex(parts[2])
	if err != nil || parts[3] != sampledFlag {
		return trace.SpanContext{}, false
	}
	return trace.NewSpanContext(trace.SpanContextConfig{TraceID: id, SpanID: span, TraceFlags: trace.FlagsSampled, Remote: true}), true
}

// givenID is the context key of the id for the next span.
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
