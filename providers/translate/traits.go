package translate

import (
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"

	"modelrelay/providers"
)

// traitsOf returns the traits of an upstream model: those of the channel, otherwise those that the vendor derives from the name.
func traitsOf(vendor providers.Vendor, channel providers.Channel, model string) (traits providers.Traits) {
	if vendor.Traits != nil {
		traits = vendor.Traits(model)
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

// given returns the traits of words, with the maximum of output tokens that the vendor derives from the name.
func given(words []string, maxOutput int64) providers.Traits {
	traits := providers.Traits{Anthropic: providers.AnthropicTraits{MaxOutput: maxOutput}}
	for _, word := range words {
		_ = setTrait(&traits, word) // the configuration was checked
	}
	return traits
}

// maxOutputWord is the prefix of the only trait with a number.
const maxOutputWord = "max_output="

// errTrait lists the words of traits.
var errTrait = errors.New("is not a trait; the traits are " + strings.Join(TraitWords(), ", "))

// TraitWords returns the words that ModelFacts.Traits may contain.
func TraitWords() []string {
	words := make([]string, 0, len(traitFields(new(providers.Traits)))+1)
	for word := range traitFields(new(providers.Traits)) {
		words = append(words, word)
	}
	words = append(words, maxOutputWord+"N")
	slices.Sort(words)
	return words
}

// CheckTrait returns an error for a word that is not a trait.
func CheckTrait(word string) error { return setTrait(new(providers.Traits), word) }

func setTrait(traits *providers.Traits, word string) error {
	if number, is := strings.CutPrefix(word, maxOutputWord); is {
		n, err := strconv.ParseInt(number, 10, 64)
		if err != nil || n < 1 {
			return fmt.Errorf("%q requires a number of tokens above 0", word)
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

// traitFields maps the names of traits to their fields. Only the traits of a channel's vendor are read.
func traitFields(t *providers.Traits) map[string][]*bool {
	return map[string][]*bool{
		"sampling": {&t.Anthropic.Sampling}, "one_sampler": {&t.Anthropic.OneSampler}, "budget": {&t.Anthropic.Budget},
		"adaptive": {&t.Anthropic.Adaptive}, "always_thinks": {&t.Anthropic.AlwaysThinks}, "effort": {&t.Anthropic.Effort},
		"xhigh": {&t.Anthropic.XHigh, &t.OpenAI.XHigh}, "schema": {&t.Anthropic.Schema}, "prefill": {&t.Anthropic.Prefill},
		"inline_system": {&t.Anthropic.InlineSystem},
		"level":         {&t.Gemini.Level}, "pro": {&t.Gemini.Pro}, "thinks": {&t.Gemini.Thinks}, "urls": {&t.Gemini.URLs},
		"reasons": {&t.OpenAI.Reasons}, "none_effort": {&t.OpenAI.NoneEffort}, "minimal_effort": {&t.OpenAI.MinimalEffort},
		"max_effort":  {&t.OpenAI.MaxEffort},
		"breakpoints": {&t.OpenAI.Breakpoints}, "imitator": {&t.OpenAI.OtherVendor},
	}
}
