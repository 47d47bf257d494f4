package gemini

import (
	"strings"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/providers"
)

// ModelNames finds where the body of a batch of embeddings names its model.
func ModelNames() func(raw []byte, model string) ([]providers.Span, error) {
	c, _ := newBody[geminiBatchEmbed](huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer))
	return func(raw []byte, model string) ([]providers.Span, error) {
		b, err := c.Check(raw)
		if err != nil {
			return nil, err
		}
		return modelNames(b, model)
	}
}

// Checkers are those of some operations.
func Checkers() map[string]*body.Checker {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	check, _ := newBody[geminiGenerate](registry)
	return map[string]*body.Checker{"gemini": check}
}

// InteractionOf is the interaction with these events.
func InteractionOf(stream string) (string, error) {
	document, err := interactionOf(strings.NewReader(stream))
	return string(document), err
}
