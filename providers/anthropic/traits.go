package anthropic

import (
	"strings"

	"modelrelay/providers"
)

// Traits returns what a model accepts, by its name: Anthropic's model overview, and its pages on thinking, effort and structured outputs.
func Traits(model string) providers.Traits { return providers.Traits{Anthropic: traitsOf(model)} }

func traitsOf(model string) providers.AnthropicTraits {
	_, name, is := strings.Cut(strings.ToLower(model), "claude-")
	if !is { // another vendor's model
		return providers.AnthropicTraits{Sampling: true, Budget: true, Prefill: true, MaxOutput: 32_000}
	}
	v := providers.ModelVersionOf(name)
	opus := strings.Contains(name, "opus")
	later := v.AtLeast(4, 6)
	sonnet := strings.Contains(name, "sonnet")
	always := strings.Contains(name, "fable") || strings.Contains(name, "mythos") || v.Major == 5 && v.Minor == 5 && (opus || sonnet)
	traits := providers.AnthropicTraits{
		Sampling: !v.AtLeast(4, 7), OneSampler: v.AtLeast(4, 1),
		Budget: v.AtLeast(3, 7) && !v.AtLeast(4, 7), Adaptive: later, AlwaysThinks: always,
		Effort: later || opus && v.AtLeast(4, 5), XHigh: v.AtLeast(4, 7),
		Schema:  v.AtLeast(4, 5) || opus && v.AtLeast(4, 1),
		Prefill: !later, InlineSystem: v.AtLeast(4, 8),
	}
	switch {
	case later:
		traits.MaxOutput = 128_000
	case v.AtLeast(4, 2), v.AtLeast(4, 0) && !opus, v.AtLeast(3, 7) && !v.AtLeast(4, 0):
		traits.MaxOutput = 64_000
	case v.AtLeast(4, 0):
		traits.MaxOutput = 32_000
	case v.AtLeast(3, 5):
		traits.MaxOutput = 8192
	default:
		traits.MaxOutput = 4096
	}
	return traits
}
