package metrics

import (
	"context"
	"crypto/rand"
	"fmt"
	"log/slog"
	"net/url"
	"slices"
	"strings"
	"sync/atomic"
	"time"

	"go.opentelemetry.io/otel/attribute"
	"go.opentelemetry.io/otel/exporters/otlp/otlptrace/otlptracehttp"
	"go.opentelemetry.io/otel/sdk/resource"
	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers/upstream"
	"modelrelay/workflows/tracing"
)

// The variables that determine whether and how traces are sent. The SDK itself reads the variables for the address, the names and the rates
// (OTEL_EXPORTER_OTLP_*, OTEL_SERVICE_NAME, OTEL_RESOURCE_ATTRIBUTES, OTEL_TRACES_SAMPLER, OTEL_BSP_*, OTEL_SPAN_*).
const (
	otelDisabled       = "OTEL_SDK_DISABLED"
	otelExporter       = "OTEL_TRACES_EXPORTER"
	otelEndpoint       = "OTEL_EXPORTER_OTLP_ENDPOINT"
	otelTracesEndpoint = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT"
	otelProtocol       = "OTEL_EXPORTER_OTLP_PROTOCOL"
	otelTracesProtocol = "OTEL_EXPORTER_OTLP_TRACES_PROTOCOL"
	otelSampler        = "OTEL_TRACES_SAMPLER"
)

// flushTimeout bounds the last sends at the end.
const flushTimeout = 5 * time.Second

// OpenTracing returns the tracer that the environment configures; nil if there is no endpoint, or tracing is disabled. An unreachable
// endpoint is not an error. An invalid environment is a *config.Error. flush sends the remaining spans, within flushTimeout; it is nil
// without a tracer.
func OpenTracing(
	ctx context.Context, env func(string) (string, bool), version string, log *slog.Logger,
) (tracer trace.Tracer, flush func() error, err error) {
	exporter, err := environment(env).spanExporter(ctx)
	if exporter == nil || err != nil {
		return nil, nil, err
	}
	about, err := resource.New(ctx, resource.WithTelemetrySDK(), resource.WithHost(), resource.WithAttributes(
		attribute.String("service.name", upstream.Product), attribute.String("service.version", version),
	), resource.WithFromEnv())
	if err != nil {
		return nil, nil, environmentError("OTEL_RESOURCE_ATTRIBUTES", "%v", err)
	}
	provider := sdktrace.NewTracerProvider(
		sdktrace.WithBatcher(&loggingExporter{SpanExporter: exporter, log: log}),
		sdktrace.WithResource(about), sdktrace.WithIDGenerator(spanIDs{}),
	)
	log.Info("spans go to the collector that the environment names")
	flush = func() error { //nolint:contextcheck // ctx has ended by then
		ctx, cancel := context.WithTimeout(context.Background(), flushTimeout)
		defer cancel()
		if err := provider.Shutdown(ctx); err != nil {
			log.Warn("some spans were lost", "error", err)
		}
		return nil
	}
	return provider.Tracer("modelrelay"), flush, nil
}

// environment looks up variables of the process.
type environment func(name string) (string, bool)

// spanExporter returns the exporter that sends spans to the collector; nil if tracing is disabled.
func (e environment) spanExporter(ctx context.Context) (sdktrace.SpanExporter, error) {
	endpoint := e.variable(otelTracesEndpoint, otelEndpoint)
	which := e.variable(otelExporter)
	switch {
	case strings.EqualFold(e.variable(otelDisabled), "true"), which == "none", which == "" && endpoint == "":
		return nil, nil
	case which != "" && which != "otlp":
		return nil, environmentError(otelExporter, "%q is not known here; otlp and none are", which)
	}
	// The SDK would ignore an invalid value, and use a default.
	if where, err := url.Parse(endpoint); endpoint != "" &&
		(err != nil || where.Host == "" || where.Scheme != "http" && where.Scheme != "https") {
		return nil, environmentError(otelEndpoint, "must be an address such as http://localhost:4318")
	}
	if sampler := e.variable(otelSampler); sampler != "" && !slices.Contains(samplers(), strings.ToLower(strings.TrimSpace(sampler))) {
		return nil, environmentError(otelSampler, "%q is not known here; %s are", sampler, strings.Join(samplers(), ", "))
	}
	protocolName := otelTracesProtocol
	if e.variable(protocolName) == "" {
		protocolName = otelProtocol
	}
	switch protocol := e.variable(protocolName); protocol {
	case "", "http/protobuf", "http/json":
	case "grpc":
		return nil, environmentError(protocolName, "grpc is not supported: use http/protobuf, and the port where the collector takes OTLP over HTTP, usually 4318")
	default:
		return nil, environmentError(protocolName, "%q is not supported; http/protobuf and http/json are", protocol)
	}
	exporter, err := otlptracehttp.New(ctx)
	if err != nil {
		return nil, environmentError(otelEndpoint, "%v", err)
	}
	return exporter, nil
}

// samplers are the samplers of the SDK.
func samplers() []string {
	return []string{
		"always_on", "always_off", "traceidratio", "parentbased_always_on", "parentbased_always_off", "parentbased_traceidratio",
	}
}

// variable returns the first value of the variables that is not empty.
func (e environment) variable(names ...string) string {
	for _, name := range names {
		if value, ok := e(name); ok && value != "" {
			return value
		}
	}
	return ""
}

func environmentError(name, format string, args ...any) error {
	return &config.Error{File: "environment", Problems: []config.Problem{{Key: name, Message: fmt.Sprintf(format, args...)}}}
}

// loggingExporter logs when the collector refuses spans, and when it accepts them again. Refused spans are lost.
type loggingExporter struct {
	sdktrace.SpanExporter

	log  *slog.Logger
	away atomic.Bool
}

// ExportSpans implements sdktrace.SpanExporter.
func (e *loggingExporter) ExportSpans(ctx context.Context, spans []sdktrace.ReadOnlySpan) error {
	err := e.SpanExporter.ExportSpans(ctx, spans)
	switch {
	case err != nil && !e.away.Swap(true):
		e.log.Warn("the collector accepts no spans, some are lost", "error", err)
	case err == nil && e.away.Swap(false):
		e.log.Info("the collector accepts spans again")
	}
	return nil
}

// spanIDs generates random ids, except for spans with a given id: a later process must find those.
type spanIDs struct{}

// NewIDs implements sdktrace.IDGenerator.
func (g spanIDs) NewIDs(ctx context.Context) (id trace.TraceID, span trace.SpanID) {
	_, _ = rand.Read(id[:]) // never fails
	return id, g.NewSpanID(ctx, id)
}

// NewSpanID implements sdktrace.IDGenerator.
func (spanIDs) NewSpanID(ctx context.Context, _ trace.TraceID) (id trace.SpanID) {
	if given, ok := tracing.GivenSpanID(ctx); ok {
		return given
	}
	_, _ = rand.Read(id[:])
	return id
}
