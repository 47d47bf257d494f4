package anthropic

import (
	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
)

// Checkers are those of some operations.
func Checkers() map[string]*body.Checker {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	return map[string]*body.Checker{"message": body.NewChecker[anthropicMessages](registry)}
}
