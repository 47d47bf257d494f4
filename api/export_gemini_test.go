package api

import (
	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
)

// GeminiNames finds where the body of a batch of embeddings names its model.
func GeminiNames() func(raw []byte, model string) ([]providers.Span, error) {
	c := newGeminiChecker[geminiBatchEmbed](huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer))
	return func(raw []byte, model string) ([]providers.Span, error) {
		b, err := c.Check(raw)
		if err != nil {
			return nil, err
		}
		return geminiNames(b, model)
	}
}
