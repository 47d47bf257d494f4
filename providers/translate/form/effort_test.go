package form_test

import (
	"slices"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
)

func TestEffort(t *testing.T) {
	t.Parallel()
	// OpenAI's page of reasoning models: gpt-5 has minimal and no none, gpt-5.1 none and no minimal, gpt-5.2 also xhigh.
	// https://platform.openai.com/docs/guides/reasoning
	var (
		gpt4  = providers.OpenAITraits{}
		o3    = providers.OpenAITraits{Reasons: true}
		gpt5  = providers.OpenAITraits{Reasons: true, MinimalEffort: true}
		gpt51 = providers.OpenAITraits{Reasons: true, NoneEffort: true}
		gpt52 = providers.OpenAITraits{Reasons: true, NoneEffort: true, XHigh: true}
		gpt56 = providers.OpenAITraits{Reasons: true, NoneEffort: true, XHigh: true, MaxEffort: true}
		marks = providers.OpenAITraits{Reasons: true, XHigh: true, Breakpoints: true}
	)
	effort := func(word string) form.Thinking { return form.Thinking{Mode: form.ThinkingEffort, Effort: word} }
	budget := func(n int64) form.Thinking { return form.Thinking{Mode: form.ThinkingBudget, Budget: n} }
	off := form.Thinking{Mode: form.ThinkingOff}
	for _, test := range []struct {
		thinking         form.Thinking
		traits           providers.OpenAITraits
		want             string
		dropped, changed bool
	}{
		{form.Thinking{}, gpt5, "", false, false},
		{form.Thinking{}, gpt4, "", false, false},
		{form.Thinking{Show: true}, gpt4, "", true, false},
		{form.Thinking{Show: true}, gpt5, "", false, false},
		{effort("low"), gpt4, "", true, false},
		{off, gpt4, "", false, false},
		{off, gpt51, "none", false, false},
		{off, gpt5, "minimal", false, true},
		{off, o3, "", true, false},
		{effort("minimal"), gpt5, "minimal", false, false},
		{effort("minimal"), gpt51, "low", false, true},
		{effort("low"), o3, "low", false, false},
		{effort("medium"), o3, "medium", false, false},
		{effort("high"), o3, "high", false, false},
		{effort("xhigh"), gpt51, "high", false, true},
		{effort("max"), gpt51, "high", false, true},
		{effort("xhigh"), gpt52, "xhigh", false, false},
		// The words of gpt-5.2 end with xhigh: https://community.openai.com/t/request-for-compatibility-matrix/1371738
		{effort("max"), gpt52, "xhigh", false, true},
		{effort("max"), gpt56, "max", false, false},
		{effort("max"), providers.OpenAITraits{Reasons: true, MaxEffort: true}, "max", false, false},
		{effort("max"), marks, "xhigh", false, true},
		{budget(-1), o3, "", false, false},
		{budget(1024), o3, "low", false, false},
		{budget(4095), o3, "low", false, false},
		{budget(4096), o3, "medium", false, false},
		{budget(16383), o3, "medium", false, false},
		{budget(16384), o3, "high", false, false},
		{form.Thinking{Mode: form.ThinkingAdaptive}, o3, "", false, false},
		{form.Thinking{Mode: form.ThinkingAdaptive, Effort: "high"}, o3, "high", false, false},
	} {
		p := &form.Prompt{Thinking: test.thinking}
		p.Fields[form.FieldThinking] = "thinking"
		var loss form.Loss
		if got := p.Effort(test.traits, &loss); got != test.want {
			t.Errorf("%+v at %+v: got %q, want %q", test.thinking, test.traits, got, test.want)
		}
		if slices.Contains(loss.Dropped, "thinking") != test.dropped || slices.Contains(loss.Changed, "thinking") != test.changed {
			t.Errorf("%+v at %+v: named %+v", test.thinking, test.traits, loss)
		}
	}
}
