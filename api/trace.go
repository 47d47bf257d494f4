package api

import (
	"context"
	"net/http"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/codes"
	"go.opentelemetry.io/otel/propagation"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/providers"
)

// otherMethod stands for the methods that this server does not know, which are a stranger's words.
const otherMethod = "_OTHER"

// trace begins the request's span, as a part of the client's trace where the client sends one (W3C traceparent). Its
// tracestate and baggage are a stranger's words and go no further. Without a tracer, and for probes, there is no span.
func (s *Server) trace(ctx context.Context, r *http.Request, x *exchange) context.Context {
	if s.tracer == nil || r.URL.Path == alivePath || r.URL.Path == readyPath {
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
	ctx, x.span = s.tracer.Start(ctx, method, trace.WithSpanKind(trace.SpanKindServer), trace.WithTimestamp(x.start),
		trace.WithAttributes(semconv.HTTPRequestMethodKey.String(method), providers.TraceRequest.String(x.id)))
	return ctx
}

// traceID names the request's trace where somebody will find it, "" elsewhere.
func (x *exchange) traceID() string {
	if x.span == nil || !x.span.SpanContext().IsSampled() {
		return ""
	}
	return x.span.SpanContext().TraceID().String()
}

// endTrace ends the request's span with what is known of the request by then. It names the route and not the path, and
// nothing of what was said.
func (s *Server) endTrace(r *http.Request, x *exchange) {
	if x.span == nil {
		return
	}
	defer x.span.End()
	if !x.span.IsRecording() {
		return
	}
	status := x.shownStatus()
	attributes := append(make([]attribute.KeyValue, 0, 16), semconv.HTTPResponseStatusCode(status))
	if x.operation != "" { // so the method is one that this server knows
		x.span.SetName(r.Method + " " + x.operation)
		attributes = append(attributes, semconv.HTTPRoute(x.operation))
	}
	if x.caller != nil {
		attributes = append(attributes, providers.TraceToken.String(x.caller.Name))
	}
	if x.model != "" && (x.fault == nil || x.fault.Kind != providers.ModelNotFound) { // a name that no model has is a stranger's words
		attributes = append(attributes, semconv.GenAIOperationNameKey.String(x.asks().Convention()), semconv.GenAIRequestModel(x.model))
	}
	if x.task != "" {
		attributes = append(attributes, providers.TraceTask.String(x.task))
	}
	if x.channel != "" {
		attributes = append(attributes, providers.TraceChannel.String(x.channel), providers.TraceAttempt.Int(x.attempts),
			semconv.GenAIProviderNameKey.String(x.provider))
	}
	if x.usage.Input > 0 || x.usage.Output > 0 {
		attributes = append(attributes, providers.TraceUsage(x.usage)...)
	}
	if x.fault != nil {
		attributes = append(attributes, semconv.ErrorTypeKey.String(string(x.fault.Kind)))
	}
	if status >= http.StatusInternalServerError || x.fault != nil && status == http.StatusOK { // a stream that failed
		x.span.SetStatus(codes.Error, "") // a client's own mistakes, and its leaving, are no errors of a server
	}
	x.span.SetAttributes(attributes...)
}

// asks is the operation of a request that names a model.
func (x *exchange) asks() providers.Operation {
	switch {
	case x.endpoint.Operation != "":
		return x.endpoint.Operation
	case x.operation == realtimePath:
		return providers.Realtime
	default:
		return providers.VideoTask
	}
}
