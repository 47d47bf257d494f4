package gemini

import (
	"strings"

	"modelrelay/providers"
)

// Traits returns what a model accepts, by its name: Google's pages on thinking and on file input.
func Traits(model string) providers.Traits { return providers.Traits{Gemini: traitsOf(model)} }

func traitsOf(model string) providers.GeminiTraits {
	_, name, is := strings.Cut(strings.ToLower(model), "gemini-")
	if !is {
		return providers.GeminiTraits{}
	}
	v := providers.ModelVersionOf(name)
	return providers.GeminiTraits{
		Level: v.AtLeast(3, 0), Pro: strings.Contains(name, "pro"), Thinks: v.AtLeast(2, 5), URLs: v.AtLeast(2, 1),
	}
}
