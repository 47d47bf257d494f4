package providers

import "strings"

// Traits are what a model accepts in chats, derived from its name. A translation into a vendor's format uses the traits of that vendor.
type Traits struct {
	Anthropic AnthropicTraits
	Gemini    GeminiTraits
	OpenAI    OpenAITraits
}

// AnthropicTraits are those of Claude models.
type AnthropicTraits struct {
	// Sampling: temperature, top_p and top_k are accepted. OneSampler: temperature and top_p exclude each other.
	Sampling, OneSampler bool
	// Budget: thinking by a number of tokens is accepted. Adaptive: adaptive thinking is accepted. AlwaysThinks: thinking cannot be
	// turned off, and a tool cannot be forced.
	Budget, Adaptive, AlwaysThinks bool
	// Effort: words for the effort are accepted; XHigh: also xhigh and max.
	Effort, XHigh bool
	// Schema: an answer's JSON Schema and strict tools are accepted.
	Schema bool
	// Prefill: the model continues a last turn of the assistant. InlineSystem: instructions are accepted between turns.
	Prefill, InlineSystem bool
	// MaxOutput is the most tokens of an answer.
	MaxOutput int64
}

// GeminiTraits are those of Gemini models.
type GeminiTraits struct {
	// Level: the third generation. Its thinking has levels. It requires its signatures in later calls. It accepts tools with JSON
	// output, and media in the results of functions.
	Level bool
	// Pro: thinking cannot be turned off.
	Pro bool
	// Thinks: the model can think at all.
	Thinks bool
	// URLs: media by https addresses are accepted.
	URLs bool
}

// OpenAITraits are those of OpenAI's models, and of other vendors' models that are served in OpenAI's format.
type OpenAITraits struct {
	// Reasons: the answer's length is bounded by max_completion_tokens, and sampling and stop texts are refused.
	Reasons bool
	// NoneEffort: thinking can be turned off. MinimalEffort, XHigh and MaxEffort: minimal, xhigh and max are accepted.
	NoneEffort, MinimalEffort, XHigh, MaxEffort bool
	// Breakpoints: cache breakpoints are accepted.
	Breakpoints bool
	// OtherVendor: another vendor's model is served in OpenAI's format. Unlike OpenAI, it accepts its earlier reasoning and Google's
	// signatures.
	OtherVendor bool
}

// ModelVersion is the generation in the name of a model, such as 4.5.
type ModelVersion struct{ Major, Minor int }

// newest is after every generation: a model whose name has none counts as the latest of its family.
const newest = 1 << 20

// AtLeast reports whether the generation is at least major.minor.
func (v ModelVersion) AtLeast(major, minor int) bool {
	return v.Major > major || v.Major == major && v.Minor >= minor
}

// leastDate is the least number in a name that is a date, such as 20250514, and not a generation.
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

// numberOf returns the number up to the next separator, and the rest after it. A date, and a part that is not a number, is 0.
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
