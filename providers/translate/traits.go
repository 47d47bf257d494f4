package translate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
)

// version is the generation that a model's name tells, such as 4.5; newest is that of a name that tells none.
type version struct{ major, minor int }

// newest comes behind every generation: what is not known yet is taken for the latest of its family.
const newest = 1 << 20

func (v version) atLeast(major, minor int) bool {
	return v.major > major || v.major == major && v.minor >= minor
}

// leastDate tells the date in a name, such as 20250514, from the number of a generation.
const leastDate = 1000

// versionOf reads the first number of a name and the one behind it.
func versionOf(name string) version {
	at := strings.IndexAny(name, "0123456789")
	if at < 0 {
		return version{major: newest}
	}
	major, rest := numberOf(name[at:])
	minor, _ := numberOf(rest)
	return version{major, minor}
}

// numberOf is the number up to the next separator, and what follows that. A date, and a part that is no number, is 0.
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

// traitsOf is what the name of an upstream model says of it, or the channel in its place.
func traitsOf(channel providers.Channel, model string, dialect form.Dialect) form.Traits {
	var traits form.Traits
	switch dialect {
	case form.Messages:
		traits.Anthropic = anthropicTraits(model)
	case form.Gemini:
		traits.Gemini = geminiTraits(model)
	case form.Chat, form.Responses:
		traits.OpenAI = openAITraits(model)
	}
	longest, overruled := "", false
	for name := range channel.Traits {
		if strings.HasPrefix(model, name) && (!overruled || len(name) > len(longest)) {
			longest, overruled = name, true
		}
	}
	if !overruled {
		return traits
	}
	return given(channel.Traits[longest], traits.Anthropic.MaxOutput)
}

// given are the traits of words, with the most tokens of an answer that the model has by its name.
func given(words []string, maxOutput int64) form.Traits {
	traits := form.Traits{Anthropic: form.AnthropicTraits{MaxOutput: maxOutput}}
	for _, word := range words {
		_ = setTrait(&traits, word) // the configuration was checked
	}
	return traits
}

// anthropicTraits are those that Anthropic's model overview and its pages on thinking, effort and structured outputs give.
func anthropicTraits(model string) form.AnthropicTraits {
	_, name, is := strings.Cut(strings.ToLower(model), "claude-")
	if !is { // an imitator's model
		return form.AnthropicTraits{Sampling: true, Budget: true, Prefill: true, MaxOutput: 32_000}
	}
	v := versionOf(name)
	opus := strings.Contains(name, "opus")
	later := v.atLeast(4, 6)
	always := strings.Contains(name, "fable") || strings.Contains(name, "mythos") || v.major == 5 && v.minor == 5 && (opus || strings.Contains(name, "sonnet"))
	traits := form.AnthropicTraits{
		Sampling: !v.atLeast(4, 7), OneSampler: v.atLeast(4, 1),
		Budget: v.atLeast(3, 7) && !v.atLeast(4, 7), Adaptive: later, AlwaysThinks: always,
		Effort: later || opus && v.atLeast(4, 5), XHigh: v.atLeast(4, 7),
		Schema:  v.atLeast(4, 5) || opus && v.atLeast(4, 1),
		Prefill: !later, InlineSystem: v.atLeast(4, 8),
	}
	switch {
	case later:
		traits.MaxOutput = 128_000
	case v.atLeast(4, 2), v.atLeast(4, 0) && !opus, v.atLeast(3, 7) && !v.atLeast(4, 0):
		traits.MaxOutput = 64_000
	case v.atLeast(4, 0):
		traits.MaxOutput = 32_000
	case v.atLeast(3, 5):
		traits.MaxOutput = 8192
	default:
		traits.MaxOutput = 4096
	}
	return traits
}

// geminiTraits are those that Google's pages on thinking and on file input give.
func geminiTraits(model string) form.GeminiTraits {
	_, name, is := strings.Cut(strings.ToLower(model), "gemini-")
	if !is {
		return form.GeminiTraits{}
	}
	v := versionOf(name)
	return form.GeminiTraits{
		Level: v.atLeast(3, 0), Pro: strings.Contains(name, "pro"), Thinks: v.atLeast(2, 5), URLs: v.atLeast(2, 1),
	}
}

// openAITraits are those that OpenAI's pages on reasoning and on prompt caching give. A name of no family of OpenAI's is an
// imitator's, which takes what chat completions have always taken.
func openAITraits(model string) form.OpenAITraits {
	name := strings.TrimPrefix(strings.ToLower(model), "ft:")
	if at := strings.LastIndexByte(name, '/'); at >= 0 {
		name = name[at+1:]
	}
	if rest, is := strings.CutPrefix(name, "o"); is && rest != "" && rest[0] >= '1' && rest[0] <= '9' {
		return form.OpenAITraits{Reasons: true}
	}
	rest, is := strings.CutPrefix(name, "gpt-")
	switch {
	case strings.HasPrefix(name, "codex-"):
		return form.OpenAITraits{Reasons: true}
	case strings.HasPrefix(name, "chatgpt-"):
		return form.OpenAITraits{}
	case !is, strings.HasPrefix(rest, "oss"):
		return form.OpenAITraits{Imitator: true}
	}
	v := versionOf(rest)
	if strings.HasPrefix(rest, "4") || !v.atLeast(5, 0) || strings.Contains(rest, "-chat") {
		return form.OpenAITraits{}
	}
	return form.OpenAITraits{
		Reasons: true, NoneEffort: v.atLeast(5, 1), MinimalEffort: !v.atLeast(5, 1),
		XHigh: v.atLeast(5, 2) || strings.Contains(rest, "codex-max"), MaxEffort: v.atLeast(5, 6), Breakpoints: v.atLeast(5, 6),
	}
}

// maxOutputWord begins the one word of a trait that is a number.
const maxOutputWord = "max_output="

// errTrait lists the words of traits.
var errTrait = errors.New("is no trait; known are " + strings.Join(TraitWords(), ", "))

// TraitWords are the words that Channel.Traits may hold.
func TraitWords() []string {
	words := make([]string, 0, len(traitFields(new(form.Traits)))+1)
	for word := range traitFields(new(form.Traits)) {
		words = append(words, word)
	}
	words = append(words, maxOutputWord+"N")
	slices.Sort(words)
	return words
}

// CheckTrait tells whether a word is one of a trait.
func CheckTrait(word string) error { return setTrait(new(form.Traits), word) }

func setTrait(traits *form.Traits, word string) error {
	if number, is := strings.CutPrefix(word, maxOutputWord); is {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("%q wants a number of tokens above 0", word)
		}
		traits.Anthropic.MaxOutput = n
		return nil
	}
	fields, known := traitFields(traits)[word]
	if !known {
		return fmt.Errorf("%q %w", word, errTrait)
	}
	for _, field := range fields {
		*field = true
	}
	return nil
}

// traitFields are the traits by their words. Of one channel only those of its vendor are looked at.
func traitFields(t *form.Traits) map[string][]*bool {
	return map[string][]*bool{
		"sampling": {&t.Anthropic.Sampling}, "one_sampler": {&t.Anthropic.OneSampler}, "budget": {&t.Anthropic.Budget},
		"adaptive": {&t.Anthropic.Adaptive}, "always_thinks": {&t.Anthropic.AlwaysThinks}, "effort": {&t.Anthropic.Effort},
		"xhigh": {&t.Anthropic.XHigh, &t.OpenAI.XHigh}, "schema": {&t.Anthropic.Schema}, "prefill": {&t.Anthropic.Prefill},
		"inline_system": {&t.Anthropic.InlineSystem},
		"level":         {&t.Gemini.Level}, "pro": {&t.Gemini.Pro}, "thinks": {&t.Gemini.Thinks}, "urls": {&t.Gemini.URLs},
		"reasons": {&t.OpenAI.Reasons}, "none_effort": {&t.OpenAI.NoneEffort}, "minimal_effort": {&t.OpenAI.MinimalEffort},
		"max_effort":  {&t.OpenAI.MaxEffort},
		"breakpoints": {&t.OpenAI.Breakpoints}, "imitator": {&t.OpenAI.Imitator},
	}
}
