package providers_test

import (
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
)

// The names are those of the registry of attributes, gen_ai.operation.name and gen_ai.provider.name.
func TestConventions(t *testing.T) {
	t.Parallel()
	for operation, want := range map[providers.Operation]string{
		providers.Chat: "chat", providers.Responses: "chat", providers.Messages: "chat", providers.Completions: "text_completion",
		providers.StreamContent: "generate_content", providers.GenerateContent: "generate_content",
		providers.BatchEmbeddings: "embeddings", providers.Embeddings: "embeddings",
		providers.Rerank: "rerank", providers.VideoTask: "video",
	} {
		if got := operation.Convention(); got != want {
			t.Errorf("%s: got %q, want %q", operation, got, want)
		}
	}
	vendors := vendors.New(upstream.NewClient(nil))
	for vendor, want := range map[string]string{"openai": "openai", "anthropic": "anthropic", "gemini": "gcp.gemini", "generic": "generic"} {
		if got := vendors[vendor].Convention(); got != want {
			t.Errorf("%s: got %q, want %q", vendor, got, want)
		}
	}
}
