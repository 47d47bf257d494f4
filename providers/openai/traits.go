package openai

import (
	"strings"

	"modelrelay/providers"
)

// Traits returns what a model accepts, by its name: OpenAI's pages on reasoning and on prompt caching. A name of none of OpenAI's families
// is that of another vendor's model, which accepts the original fields of chat completions.
func Traits(model string) providers.Traits { return providers.Traits{OpenAI: traitsOf(model)} }

func traitsOf(model string) providers.OpenAITraits {
	name := strings.TrimPrefix(strings.ToLower(model), "ft:")
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		name = name[at+1:]
	}
	if rest, is := strings.CutPrefix(name, "o"); is && rest != "" && rest[0] >= '1' && rest[0] <= '9' {
		return providers.OpenAITraits{Reasons: true}
	}
	rest, is := strings.CutPrefix(name, "gpt-")
	switch {
	case strings.HasPrefix(name, "codex-"):
		return providers.OpenAITraits{Reasons: true}
	case strings.HasPrefix(name, "chatgpt-"):
		return providers.OpenAITraits{}
	case !is, strings.HasPrefix(rest, "oss"):
		return providers.OpenAITraits{OtherVendor: true}
	}
	v := providers.ModelVersionOf(rest)
	if strings.HasPrefix(rest, "4") || !v.AtLeast(5, 0) || strings.Contains(rest, "-chat") {
		return providers.OpenAITraits{}
	}
	return providers.OpenAITraits{
		Reasons: true, NoneEffort: v.AtLeast(5, 1), MinimalEffort: !v.AtLeast(5, 1),
		XHigh: v.AtLeast(5, 2) || strings.Contains(rest, "codex-max"), MaxEffort: v.AtLeast(5, 6), Breakpoints: v.AtLeast(5, 6),
	}
}
