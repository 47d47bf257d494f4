package providers

import (
	"go.opentelemetry.io/otel/attribute"
	semconv "go.opentelemetry.io/otel/semconv/v1.41.0"
)

// Attributes of spans that no convention names.
const (
	TraceChannel = attribute.Key("gateway.channel")
	TraceAttempt = attribute.Key("gateway.attempt")
	TraceToken   = attribute.Key("gateway.token")   // a token's name, never its key
	TraceRequest = attribute.Key("gateway.request") // the request's id, as the log has it
	TraceTask    = attribute.Key("gateway.task")
	// Of a call that was translated: the client's endpoint and the upstream's.
	TraceEndpoint         = attribute.Key("gateway.endpoint")
	TraceUpstreamEndpoint = attribute.Key("gateway.upstream_endpoint")
)

// Convention is what the OpenTelemetry conventions for generative AI call the operation, under which other programs'
// figures and traces stand as well. An operation that they do not know keeps its own name.
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

// TraceUsage is what a span says of tokens.
func TraceUsage(usage Usage) []attribute.KeyValue {
	attributes := []attribute.KeyValue{
		semconv.GenAIUsageInputTokens(int(usage.Input)), semconv.GenAIUsageOutputTokens(int(usage.Output)),
	}
	if usage.Cached > 0 {
		attributes = append(attributes, semconv.GenAIUsageCacheReadInputTokens(int(usage.Cached)))
	}
	return attributes
}
