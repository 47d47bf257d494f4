package translate

import (
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/anthropic"
	"modelrelay/providers/gemini"
	"modelrelay/providers/openai"
	"modelrelay/providers/translate/form"
)

// words lists the traits that a channel could name, for tables.
func words(traits providers.Traits) string {
	var all []string
	for _, word := range TraitWords() {
		for _, field := range traitFields(&traits)[word] {
			if *field {
				all = append(all, word)
			}
		}
	}
	return strings.Join(all, " ")
}

// vendorOf is the vendor whose format the dialect is.
func vendorOf(dialect form.Dialect) providers.Vendor {
	switch dialect {
	case form.Messages:
		return providers.Vendor{Traits: anthropic.Traits}
	case form.Gemini:
		return providers.Vendor{Traits: gemini.Traits}
	default:
		return providers.Vendor{Traits: openai.Traits}
	}
}

// TestTraits: what Anthropic's "Models overview", "Extended thinking", "Effort" and "Structured outputs" pages, Google's
// "Gemini thinking" and OpenAI's "Reasoning models" say of models, by the names that upstreams have for them.
func TestTraits(t *testing.T) {
	t.Parallel()
	const (
		old    = "prefill sampling"
		budget = "budget prefill sampling"
		four   = "budget one_sampler prefill sampling"
		latest = "adaptive effort inline_system one_sampler schema xhigh"
	)
	for _, tc := range []struct {
		dialect form.Dialect
		model   string
		want    string
		most    int64
	}{
		{form.Messages, "claude-3-haiku-20240307", old, 4096},
		{form.Messages, "claude-3-opus-20240229", old, 4096},
		{form.Messages, "claude-3-5-sonnet-20241022", old, 8192},
		{form.Messages, "claude-3-5-haiku-latest", old, 8192},
		{form.Messages, "claude-3-7-sonnet-20250219", budget, 64_000},
		{form.Messages, "claude-opus-4-20250514", budget, 32_000},
		{form.Messages, "claude-opus-4-0", budget, 32_000},
		{form.Messages, "claude-sonnet-4-20250514", budget, 64_000},
		{form.Messages, "claude-opus-4-1-20250805", "budget one_sampler prefill sampling schema", 32_000},
		{form.Messages, "claude-sonnet-4-5-20250929", four + " schema", 64_000},
		{form.Messages, "claude-haiku-4-5", four + " schema", 64_000},
		{form.Messages, "claude-opus-4-5-20251101", "budget effort one_sampler prefill sampling schema", 64_000},
		{form.Messages, "claude-opus-4-6", "adaptive budget effort one_sampler sampling schema", 128_000},
		{form.Messages, "claude-sonnet-4-6", "adaptive budget effort one_sampler sampling schema", 128_000},
		// Budgets are gone: https://github.com/NousResearch/hermes-agent/issues/11137
		{form.Messages, "claude-opus-4-7", "adaptive effort one_sampler schema xhigh", 128_000},
		{form.Messages, "claude-opus-4-8", "adaptive effort inline_system one_sampler schema xhigh", 128_000},
		{form.Messages, "claude-opus-4-10", "adaptive effort inline_system one_sampler schema xhigh", 128_000},
		{form.Messages, "claude-sonnet-5", "adaptive effort inline_system one_sampler schema xhigh", 128_000},
		{form.Messages, "claude-opus-5-5", "adaptive always_thinks effort inline_system one_sampler schema xhigh", 128_000},
		{form.Messages, "claude-sonnet-5-5", "adaptive always_thinks effort inline_system one_sampler schema xhigh", 128_000},
		{form.Messages, "claude-haiku-5-5", latest, 128_000},
		// https://docs.aws.amazon.com/bedrock/latest/userguide/claude-messages-adaptive-thinking.html
		{form.Messages, "claude-fable-5", "adaptive always_thinks effort inline_system one_sampler schema xhigh", 128_000},
		{form.Messages, "claude-fable-5-1", "adaptive always_thinks effort inline_system one_sampler schema xhigh", 128_000},
		{form.Messages, "claude-fable-5-2", "adaptive always_thinks effort inline_system one_sampler schema xhigh", 128_000},
		{form.Messages, "claude-opus-7", latest, 128_000},
		{form.Messages, "claude-next", latest, 128_000},
		{form.Messages, "anthropic/claude-sonnet-4.5", four + " schema", 64_000},
		{form.Messages, "imitator-1", "budget prefill sampling", 32_000},

		{form.Gemini, "gemini-1.5-pro", "pro", 0},
		{form.Gemini, "gemini-2.0-flash", "", 0},
		{form.Gemini, "gemini-2.5-flash", "thinks urls", 0},
		{form.Gemini, "gemini-2.5-pro", "pro thinks urls", 0},
		{form.Gemini, "models/gemini-3-pro-preview", "level pro thinks urls", 0},
		{form.Gemini, "gemini-3.1-flash-lite", "level thinks urls", 0},
		{form.Gemini, "gemini-flash-latest", "level thinks urls", 0},
		{form.Gemini, "gemma-3-27b-it", "", 0},

		{form.Chat, "gpt-3.5-turbo", "", 0},
		{form.Chat, "gpt-4", "", 0},
		{form.Chat, "gpt-4o-mini-2024-07-18", "", 0},
		{form.Responses, "gpt-4.1", "", 0},
		{form.Chat, "chatgpt-4o-latest", "", 0},
		{form.Chat, "gpt-5-chat-latest", "", 0},
		{form.Chat, "o1", "reasons", 0},
		{form.Chat, "o3-mini", "reasons", 0},
		{form.Chat, "o4-mini", "reasons", 0},
		{form.Responses, "gpt-5", "minimal_effort reasons", 0},
		{form.Responses, "gpt-5-nano-2025-08-07", "minimal_effort reasons", 0},
		{form.Responses, "gpt-5.1", "none_effort reasons", 0},
		{form.Responses, "gpt-5.1-codex-max", "none_effort reasons xhigh", 0},
		{form.Responses, "gpt-5.4-nano", "none_effort reasons xhigh", 0},
		{form.Responses, "gpt-5.6", "breakpoints max_effort none_effort reasons xhigh", 0},
		{form.Responses, "gpt-6", "breakpoints max_effort none_effort reasons xhigh", 0},
		{form.Chat, "ft:gpt-4o-mini-2024-07-18:org::id", "", 0},
		{form.Chat, "openai/gpt-5.1", "none_effort reasons", 0},
		{form.Chat, "codex-mini-latest", "reasons", 0},
		// Servers that copy chat completions take sampling, stop and max_tokens of models of their own, and some refuse
		// max_completion_tokens: https://api-docs.deepseek.com/api/create-chat-completion,
		// https://docs.mistral.ai/api/#tag/chat.
		{form.Chat, "deepseek-chat", "imitator", 0},
		{form.Chat, "mistral-large-latest", "imitator", 0},
		{form.Chat, "openrouter-x", "imitator", 0},
		{form.Chat, "gpt-oss-120b", "imitator", 0},
	} {
		traits := traitsOf(vendorOf(tc.dialect), providers.Channel{}, tc.model)
		if got := words(traits); got != tc.want || traits.Anthropic.MaxOutput != tc.most {
			t.Errorf("%s: got %q, %d tokens, want %q, %d", tc.model, got, traits.Anthropic.MaxOutput, tc.want, tc.most)
		}
	}
}

func TestOverruledTraits(t *testing.T) {
	t.Parallel()
	channel := providers.Channel{ModelFacts: providers.ModelFacts{Traits: map[string][]string{
		"claude-": {"sampling"}, "claude-haiku": {"budget", "max_output=777"}, "bare": {}, "deepseek-reasoner": {"reasons", "xhigh"},
	}}}
	for _, tc := range []struct {
		dialect form.Dialect
		model   string
		want    string
		most    int64
	}{
		{form.Messages, "claude-opus-4-6", "sampling", 128_000},
		{form.Messages, "claude-haiku-4-5", "budget", 777},
		{form.Messages, "bare", "", 32_000},
		{form.Chat, "deepseek-reasoner", "reasons xhigh xhigh", 0},
		{form.Chat, "deepseek-chat", "imitator", 0},
	} {
		traits := traitsOf(vendorOf(tc.dialect), channel, tc.model)
		if got := words(traits); got != tc.want || traits.Anthropic.MaxOutput != tc.most {
			t.Errorf("%s: got %q, %d tokens, want %q, %d", tc.model, got, traits.Anthropic.MaxOutput, tc.want, tc.most)
		}
	}
	for word, good := range map[string]bool{
		"sampling": true, "max_output=5": true, "max_output=0": false, "max_output": false,
		"reason": false, "": false,
	} {
		if err := CheckTrait(word); (err == nil) != good {
			t.Errorf("%q: got %v", word, err)
		}
	}
}
