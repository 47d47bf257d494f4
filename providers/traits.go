package providers

import "strings"

// Traits are what a model of a vendor takes in chats, by its name. Calls in the vendor's format are written by those of the vendor.
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
	// Level: the third generation, whose thinking has levels, whose signatures must come back, which takes tools with JSON
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

// ModelVersion is the generation in the name of a model, such as 4.5.
type ModelVersion struct{ Major, Minor int }

// newest comes after every generation: a model whose name has none is taken for the latest of its family.
const newest = 1 << 20

// AtLeast reports whether the generation is that one or a later one.
func (v ModelVersion) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// leastDate is the least number in a name that is a date, such as 20250514, and no generation.
const leastDate = 1000

// ModelVersionOf reads the first number of a name and the one after it.
func ModelVersionOf(name string) ModelVersion {
	at := strings.IndexAny(name, "0123456789")
	if at < 0 {
		return ModelVersion{Major: newest}
	}
	major, rest := numberOf(name[at:])
	minor, _ := numberOf(rest)
	return ModelVersion{major, minor}
}

// numberOf is the number up to the next separator, and what follows that. A date, and a part that is not a number, is 0.
func numberOf(name string) (number int, rest string) {
	part := name
	if end := strings.IndexAny(name, "-.@:"); end >= 0 {
		part, rest = name[:end], name[end+1:]
	}
	for _, c := range []byte(part) {
		if c < '0' || c > '9' || number >= leastDate {
			return 0, rest
		}
		number = number*10 + int(c-'0')
	}
	if number >= leastDate {
		return 0, rest
	}
	return number, rest
}
