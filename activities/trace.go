package activities

import (
	"context"
	"net"

	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// turn begins the span of a turn to an upstream, where the activity has one.
func (a *Activities) turn(ctx context.Context, to providers.Target, turn upstream.Step) (context.Context, *upstream.Span) {
	return upstream.StartSpan(ctx, a.Tracer, a.Catalog[to.Channel.Vendor], to, turn)
}

// traceDelivery begins the span of a try of a delivery; what it returns ends it. The receiver is named by its host alone,
// since the rest of its address may be a secret, and is told nothing of the trace: it is a stranger.
func (a *Activities) traceDelivery(ctx context.Context, d Delivery) (end func(status int, err error)) {
	if a.Tracer == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return func(int, error) {}
	}
	host, _, err := net.SplitHostPort(d.Host)
	if err != nil {
		host = d.Host // without a port
	}
	_, span := a.Tracer.Start(ctx, "POST webhook", trace.WithSpanKind(trace.SpanKindClient), trace.WithAttributes(
		semconv.HTTPRequestMethodPost, semconv.ServerAddress(host), semconv.HTTPRequestResendCount(d.Tries-1),
	))
	return func(status int, err error) {
		defer span.End()
		if status > 0 {
			span.SetAttributes(semconv.HTTPResponseStatusCode(status))
		}
		if err != nil || status/100 != 2 {
			span.SetStatus(codes.Error, "")
		}
	}
}
