package upstream

import (
	"context"
	"net/url"
	"strconv"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
)

const firstByte = "first byte"

// Span is one step at an upstream: an attempt, or a step of a job. nil records nothing. It holds no text of clients or upstreams.
type Span struct {
	span  trace.Span
	began time.Time
}

// Step describes a request to an upstream.
type Step struct {
	// Does begins the span's name, followed by the upstream model.
	Does string
	// Operation is what the upstream does; "" for a request about a job.
	Operation providers.Operation
	// From and To are the endpoints of a translation; zero for none.
	From, To providers.Endpoint
	// Attempt counts from 1; 0 if there is only one.
	Attempt int
}

// StartSpan begins the span of a step as a child of the context's span. The returned context has the new span. Without tracing,
// that is, if tracer is nil or the context's span is not recorded, it returns the context and nil.
func StartSpan(ctx context.Context, tracer trace.Tracer, vendor providers.Vendor, to providers.Target, step Step) (context.Context, *Span) {
	if tracer == nil || !trace.SpanFromContext(ctx).IsRecording() {
		return ctx, nil
	}
	attributes := append(make([]attribute.KeyValue, 0, 8),
		providers.TraceChannel.String(to.Channel.Name), semconv.GenAIProviderNameKey.String(vendor.Convention()),
		semconv.GenAIRequestModel(to.Model))
	if step.Operation != "" {
		attributes = append(attributes, semconv.GenAIOperationNameKey.String(step.Operation.Convention()))
	}
	if step.From != step.To {
		attributes = append(attributes, providers.TraceEndpoint.String(step.From.String()),
			providers.TraceUpstreamEndpoint.String(step.To.String()))
	}
	if step.Attempt > 0 {
		attributes = append(attributes, providers.TraceAttempt.Int(step.Attempt))
	}
	if base, err := url.Parse(to.Channel.BaseURL); err == nil && base.Hostname() != "" {
		attributes = append(attributes, semconv.ServerAddress(base.Hostname()))
		if port, err := strconv.Atoi(base.Port()); err == nil {
			attributes = append(attributes, semconv.ServerPort(port))
		}
	}
	s := &Span{began: time.Now()}
	ctx, s.span = tracer.Start(ctx, step.Does+" "+to.Model,
		trace.WithSpanKind(trace.SpanKindClient), trace.WithTimestamp(s.began), trace.WithAttributes(attributes...))
	return ctx, s
}

// Answered records that the first byte of an answer has arrived. status is 0 if it is unknown.
func (s *Span) Answered(status int, stream bool) {
	if s == nil {
		return
	}
	now := time.Now()
	s.span.AddEvent(firstByte, trace.WithTimestamp(now))
	if status > 0 {
		s.span.SetAttributes(semconv.HTTPResponseStatusCode(status))
	}
	if stream {
		s.span.SetAttributes(semconv.GenAIResponseTimeToFirstChunk(now.Sub(s.began).Seconds()))
	}
}

// Used records the usage of the answer.
func (s *Span) Used(usage providers.Usage) {
	if s != nil {
		s.span.SetAttributes(providers.TraceUsage(usage)...)
	}
}

// End ends the span; nil is success. Further calls do nothing.
func (s *Span) End(fault *providers.Fault) {
	if s == nil {
		return
	}
	if fault != nil {
		s.span.SetStatus(codes.Error, "")
		s.span.SetAttributes(semconv.ErrorTypeKey.String(string(fault.Kind)))
		if fault.Upstream != nil {
			s.span.SetAttributes(semconv.HTTPResponseStatusCode(fault.Upstream.Status))
		}
	}
	s.span.End()
}
