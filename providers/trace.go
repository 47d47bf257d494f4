package providers

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// Span attributes that no convention defines.
const (
	TraceChannel = attribute.Key("gateway.channel")
	TraceAttempt = attribute.Key("gateway.attempt")
	TraceToken   = attribute.Key("gateway.token")   // the token's name, never its key
	TraceRequest = attribute.Key("gateway.request") // the request's id, as in the log
	TraceTask    = attribute.Key("gateway.task")
	// The client's endpoint and the upstream's, of a translated call.
	TraceEndpoint         = attribute.Key("gateway.endpoint")
	TraceUpstreamEndpoint = attribute.Key("gateway.upstream_endpoint")
)

// Convention returns the operation's name in the OpenTelemetry conventions for generative AI. An unknown operation keeps its own name.
func (o Operation) Convention() string {
	switch o {
	case Chat, Responses, Messages:
		return "chat"
	case Completions:
		return "text_completion"
	case GenerateContent, StreamContent, Interactions:
		return "generate_content"
	case Embeddings, BatchEmbeddings:
		return "embeddings"
	default:
		return string(o)
	}
}

// TraceUsage returns the span attributes of a usage.
func TraceUsage(usage Usage) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		semconv.GenAIUsageInputTokens(int(usage.Input)), semconv.GenAIUsageOutputTokens(int(usage.Output)),
	}
	if usage.Cached > 0 {
		attributes = append(attributes, semconv.GenAIUsageCacheReadInputTokens(int(usage.Cached)))
	}
	return attributes
}
