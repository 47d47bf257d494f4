package edge

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
	"modelrelay/storage/tokens"
)

// otherMethod replaces methods that this server does not know, because any client can invent them.
const otherMethod = "_OTHER"

// trace starts the request's span, as a part of the client's trace if the client sends one (W3C traceparent). It ignores tracestate and
// baggage, because any client can invent them. Without a tracer, and for probes, there is no span.
func (e *Edge) trace(ctx context.Context, r *http.Request, x *Request) context.Context {
	tracer := e.options.Tracer
	if tracer == nil || r.URL.Path == AlivePath || r.URL.Path == ReadyPath {
		return ctx
	}
	given := trace.SpanContextFromContext(propagation.TraceContext{}.Extract(ctx, propagation.HeaderCarrier(r.Header)))
	if given.IsValid() {
		ctx = trace.ContextWithRemoteSpanContext(ctx, given.WithTraceState(trace.TraceState{}))
	}
	method := r.Method
	switch method {
	case http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete, http.MethodOptions:
	default:
		method = otherMethod
	}
	ctx, x.span = tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(x.Start),
		trace.WithAttributes(semconv.HTTPRequestMethodKey.String(method), providers.TraceRequest.String(x.ID)))
	return ctx
}

// traceID returns the id of a span's trace if the trace is recorded, else "".
func traceID(span trace.Span) string {
	if span == nil || !span.SpanContext().IsSampled() {
		return ""
	}
	return span.SpanContext().TraceID().String()
}

// endTrace ends the request's span and sets its attributes. They have the route, not the path, and no text of prompts or answers.
func (x report) endTrace() {
	if x.span == nil {
		return
	}
	defer x.span.End()
	if !x.span.IsRecording() {
		return
	}
	status := x.shownStatus()
	attributes := append(make([]attribute.KeyValue, 0, 16), semconv.HTTPResponseStatusCode(status))
	if x.Operation != "" { // the method is known, because the route matched
		x.span.SetName(x.http.Method + " " + x.Operation)
		attributes = append(attributes, semconv.HTTPRoute(x.Operation))
	}
	if x.Caller != nil {
		attributes = append(attributes, providers.TraceToken.String(x.Caller.Name))
	}
	// The name of an unknown model is the client's own text.
	if x.Outcome.Model != "" && (x.Fault == nil || x.Fault.Kind != providers.ModelNotFound) {
		attributes = append(attributes, semconv.GenAIOperationNameKey.String(operationOf(x.Request).Convention()),
			semconv.GenAIRequestModel(x.Outcome.Model))
	}
	if x.Outcome.Task != "" {
		attributes = append(attributes, providers.TraceTask.String(x.Outcome.Task))
	}
	if x.Outcome.Channel != "" {
		attributes = append(attributes, providers.TraceChannel.String(x.Outcome.Channel), providers.TraceAttempt.Int(x.Outcome.Attempts),
			semconv.GenAIProviderNameKey.String(x.Outcome.Provider))
	}
	if to := x.Outcome.Translated; to != (providers.Endpoint{}) {
		from := providers.Endpoint{Format: x.Format.Name, Operation: x.Outcome.Operation}
		attributes = append(attributes, providers.TraceEndpoint.String(from.String()), providers.TraceUpstreamEndpoint.String(to.String()))
	}
	if x.Outcome.Usage.Input > 0 || x.Outcome.Usage.Output > 0 {
		attributes = append(attributes, providers.TraceUsage(x.Outcome.Usage)...)
	}
	if x.Fault != nil {
		attributes = append(attributes, semconv.ErrorTypeKey.String(string(x.Fault.Kind)))
	}
	if status >= http.StatusInternalServerError || x.Fault != nil && status == http.StatusOK { // a failed stream
		x.span.SetStatus(codes.Error, "") // faults of the client, and its disconnect, are not errors of the server
	}
	x.span.SetAttributes(attributes...)
}

// operationOf returns the operation of a request that names a model.
func operationOf(x *Request) providers.Operation {
	switch {
	case x.Outcome.Operation != "":
		return x.Outcome.Operation
	case x.presence.permission == tokens.OperationRealtime:
		return providers.Realtime
	default:
		return providers.VideoTask
	}
}
