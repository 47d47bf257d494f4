package translate

import (
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/translate/form"
)

// dialectOf returns the dialect of a chat endpoint. It reports false for another endpoint.
func dialectOf(e providers.Endpoint) (form.Dialect, bool) {
	switch e {
	case providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}:
		return form.Chat, true
	case providers.Endpoint{Format: providers.OpenAI, Operation: providers.Responses},
		providers.Endpoint{Format: providers.OpenAI, Operation: providers.CompactResponse}:
		return form.Responses, true
	case providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}:
		return form.Messages, true
	case providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent},
		providers.Endpoint{Format: providers.Gemini, Operation: providers.StreamContent}:
		return form.Gemini, true
	}
	return 0, false
}

// counts reports whether an endpoint counts the input tokens of a chat.
func counts(e providers.Endpoint) bool {
	return e.Operation == providers.CountTokens || e.Operation == providers.InputTokens
}

func embeds(e providers.Endpoint) bool {
	return e.Operation == providers.Embeddings || e.Operation == providers.BatchEmbeddings
}

// Reaches reports whether a call of one endpoint can be translated to another. Equal endpoints need none.
func Reaches(from, to providers.Endpoint) bool {
	source, chats := dialectOf(from)
	target, answers := dialectOf(to)
	switch {
	case chats && answers:
		return source != target
	case from.Operation == providers.CountTokens:
		return to.Format != from.Format && (counts(to) || to.Operation == providers.Chat) // for Chat the gateway estimates the input
	case embeds(from):
		return embeds(to) && to.Format != from.Format
	}
	return false
}

// targets returns the endpoints of a channel to which a call can be translated, best first.
func (t *Translation) targets() []providers.Endpoint {
	return slices.DeleteFunc(slices.Clone(t.vendor.Takes), func(to providers.Endpoint) bool {
		if !t.target.Channel.Speaks(to) || !Reaches(t.from, to) {
			return true
		}
		switch to.Operation { // the call itself decides between Gemini's two operations
		case providers.GenerateContent:
			return t.streams
		case providers.StreamContent:
			return !t.streams
		}
		return false
	})
}
