package form

// Traits are what the name of an upstream's model says of it. Each dialect's writer reads those of its own vendor.
type Traits struct {
	Anthropic AnthropicTraits
	Gemini    GeminiTraits
	OpenAI    OpenAITraits
}

// AnthropicTraits are those of Claude models.
type AnthropicTraits struct {
	// Sampling: temperature, top_p and top_k are taken. OneSampler: not temperature and top_p at once.
	Sampling, OneSampler bool
	// Budget: thinking by a number of tokens is taken. Adaptive: so is thinking as the model sees fit. AlwaysThinks: thinking
	// cannot be turned off, nor a tool be forced.
	Budget, Adaptive, AlwaysThinks bool
	// Effort: words for the effort are taken; XHigh: xhigh and max among them.
	Effort, XHigh bool
	// Schema: an answer's JSON Schema and strict tools are taken.
	Schema bool
	// Prefill: a last turn of the assistant is gone on with. InlineSystem: instructions may stand between turns.
	Prefill, InlineSystem bool
	// MaxOutput is the most tokens of an answer.
	MaxOutput int64
}

// GeminiTraits are those of Gemini models.
type GeminiTraits struct {
	// Level: the third generation, whose thinking has levels, whose signatures must come back, which takes tools beside JSON
	// output and media in the results of functions.
	Level bool
	// Pro: thinking cannot be turned off.
	Pro bool
	// Thinks: the model can think at all.
	Thinks bool
	// URLs: media by https addresses are taken.
	URLs bool
}

// OpenAITraits are those of OpenAI's models and of their imitators'.
type OpenAITraits struct {
	// Reasons: the answer's length is bounded by max_completion_tokens, and sampling and stop texts are refused.
	Reasons bool
	// NoneEffort: thinking can be turned off; MinimalEffort: it can be made minimal; XHigh: xhigh is known; MaxEffort: max is.
	NoneEffort, MinimalEffort, XHigh, MaxEffort bool
	// Breakpoints: cache breakpoints are taken.
	Breakpoints bool
	// Imitator: the model is another vendor's behind OpenAI's dialect. It takes back what it thought, and Google's signatures,
	// which OpenAI refuses as unknown parameters.
	Imitator bool
}
