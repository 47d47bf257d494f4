package calls

import (
	"cmp"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
)

// What is reserved of a budget before anybody knows what a call costs. The reservation becomes the cost at its end.
const (
	// bytesPerToken is about what a token takes of a text.
	bytesPerToken = 4
	// maxTokenEstimate bounds what the limits count of a call before its body is read. It is guessed from the length alone: inline media
	// make a body long without costing what its length says. The true count is settled at the end.
	maxTokenEstimate = 4096
	// tokensUnknown leaves that estimate as what the call spent.
	tokensUnknown = -1
	// maxInputEstimate is in tokens. It is more than maxTokenEstimate, since money is lost where a long prompt is
	// underrated, and bounded, since inline media make a body long without costing what its length says.
	maxInputEstimate = 32 << 10
	// defaultOutput is in tokens, for calls that do not bound their output: most answers are shorter.
	defaultOutput = 4 << 10
	// soundPerSecond is in bytes: sound at 32 kbit/s, the least that is usual for speech. It is used where a file does not say how
	// long it lasts. mostPerSecond is sound on two channels at 48 kHz and 16 bits: a file that claims to be shorter than its size
	// allows at that rate is not believed.
	soundPerSecond, mostPerSecond = 4 << 10, 192_000
	// heardPerSecond and spokenPerSecond are tokens of sound: one for 100 ms of a user's sound, one for 50 ms
	// of an assistant's.
	heardPerSecond, spokenPerSecond = 10, 20
	// imageTokens is what OpenAI counts for a square image of medium quality.
	imageTokens = 1056
	// spokenBytes is about how many bytes of text are spoken in a second, in Latin and in Chinese script.
	spokenBytes = 15
	// streamBytesPerToken is what one token takes of a stream: 200 and more where each is an event, 20 to 60 where an
	// event holds several. It is used for answers that broke off before they said what they used.
	streamBytesPerToken = 100
)

// size is what a call's request says of what it will use; see Call.
type size struct {
	operation providers.Operation
	length    int64 // of the request's body, in bytes
	sound     time.Duration
	output, n int64
	// background: see Call. stops: the upstream stops when its connection ends.
	background, stops bool
}

func sizeOf(call Call) size {
	return size{
		operation: call.Endpoint.Operation, length: int64(len(call.Body)), sound: call.Sound, output: call.Output, n: call.N,
		background: call.Background, stops: stops(call.Call, call.Background),
	}
}

// mayUse is what the call may come to at most, as far as its request says.
func (s size) mayUse() pricing.Measure {
	n, output := max(1, s.n), cmp.Or(s.output, defaultOutput)
	m := pricing.Measure{Requests: 1, Usage: providers.Usage{Input: guessInput(s.length), Output: output * n}}
	switch s.operation {
	case providers.CountTokens:
		return pricing.Measure{}
	case providers.Embeddings, providers.BatchEmbeddings, providers.Rerank, providers.Moderations:
		m.Usage = s.reads()
	case providers.Speech:
		m.Usage = s.speaks()
	case providers.ImageGeneration, providers.ImageEdit, providers.GenerateContent, providers.StreamContent:
		m.Usage.Images = n
	case providers.Transcriptions, providers.Translations:
		m.Usage.Audio = s.heard()
	}
	return m
}

// reads is what a call uses that is of text alone and makes none.
func (s size) reads() providers.Usage {
	return providers.Usage{Input: s.length / bytesPerToken}
}

// speaks is about what a call uses whose text is spoken.
func (s size) speaks() providers.Usage {
	return providers.Usage{
		Input: s.length / bytesPerToken, Output: s.length * spokenPerSecond / spokenBytes,
		Audio: time.Duration(s.length) * time.Second / spokenBytes,
	}
}

// heard is how long the sound of a request lasts.
func (s size) heard() time.Duration {
	if s.sound == 0 {
		return time.Duration(s.length) * time.Second / soundPerSecond
	}
	return max(s.sound, time.Duration(s.length)*time.Second/mostPerSecond)
}

func guessInput(length int64) int64 { return min(length/bytesPerToken, maxInputEstimate) }

// answersText reports whether the length of an operation's answers says how many tokens they took.
func answersText(operation providers.Operation) bool {
	switch operation {
	case providers.Chat, providers.Completions, providers.Responses, providers.CompactResponse, providers.Messages,
		providers.GenerateContent, providers.StreamContent, providers.Interactions:
		return true
	default:
		return false
	}
}

// lengthIsInput reports whether the length of an operation's requests says how many tokens they have. The others upload media.
func lengthIsInput(operation providers.Operation) bool {
	switch operation {
	case providers.CountTokens, providers.Transcriptions, providers.Translations, providers.ImageEdit:
		return false
	default:
		return true
	}
}

// stops reports whether an upstream stops its work when its connection ends. One that writes its answer as it makes it does,
// and wants to be paid for what it has read and written; one that answers in one piece makes the whole of it first, and
// pictures are made to their end however they are sent. A response in the background has nothing to do with a connection.
func stops(call providers.Call, background bool) bool {
	switch call.Endpoint.Operation {
	case providers.ImageGeneration, providers.ImageEdit:
		return false
	case providers.StreamContent, providers.Speech:
		return true
	default:
		return call.Stream && !background
	}
}

// unsaid is what the limits count of an answer that does not say it.
func (s size) unsaid() int {
	if s.operation == providers.CountTokens {
		return 0 // counting makes no tokens
	}
	return tokensUnknown
}

// uses is about what an answer of length bytes that is not a model's text used and did not count; left: its client did not wait for it.
// images is how many images the answer has that are priced by their tokens.
func (s size) uses(length, images int64, left bool) (guess providers.Usage) {
	switch s.operation {
	case providers.Embeddings, providers.BatchEmbeddings, providers.Rerank, providers.Moderations:
		return s.reads()
	case providers.Speech:
		if guess = s.speaks(); length == 0 { // its client left before the sound
			guess.Output, guess.Audio = 0, 0
		}
	case providers.Transcriptions, providers.Translations:
		guess = providers.Usage{
			Input: int64(s.heard().Seconds() * heardPerSecond), Output: length / bytesPerToken, Audio: s.heard(),
		}
	default:
		guess.Output = images * imageTokens
		if (left || images > 0) && lengthIsInput(s.operation) {
			guess.Input = guessInput(s.length)
		}
	}
	return guess
}

// oneTurn is what a conversation has reserved as long as it lasts, so that it may begin at all: about one turn. What its
// turns cost counts as they end, and the one that exceeds the budget is the last.
func oneTurn() pricing.Measure {
	return pricing.Measure{Requests: 1, Usage: providers.Usage{Input: defaultOutput, Output: defaultOutput}}
}
