package videos

import (
	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
)

// Checkers are those of the creates of all formats.
func Checkers() map[string]*body.Checker {
	registry := huma.NewMapRegistry("#/components/schemas/", huma.DefaultSchemaNamer)
	checks := newFieldChecks()
	gemini := body.NewChecker[geminiVideoBody](registry)
	gemini.AllowSnakeCase()
	return map[string]*body.Checker{
		"gemini": gemini, "source": body.NewChecker[openAISourceBody](registry),
		"sora": body.NewChecker[openAIVideoBody](registry), "generic": body.NewChecker[genericVideoBody](registry),
		"vendor C": body.NewChecker[vendorCBody](registry), "video": checks.fields, "metadata": checks.metadata,
	}
}
