package calls

import (
	"cmp"
	"slices"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/pricing"
)

// The estimates of a call's usage. A budget reserves them before the call, and they become its cost if the upstream reports no usage.
const (
	// bytesPerToken is the approximate number of bytes of text for one token.
	bytesPerToken = 4
	// maxTokenEstimate bounds the tokens that the limits count before the body is read. The estimate uses only the length, and inline media
	// make a body long for few tokens. At the end of the call the reported number replaces it.
	maxTokenEstimate = 4096
	// tokensUnknown retains that estimate at the end of the call.
	tokensUnknown = -1
	// maxInputEstimate bounds the estimated input, in tokens. It is larger than maxTokenEstimate, because an underestimated prompt costs
	// money, and bounded, because inline media make a body long for few tokens.
	maxInputEstimate = 32 << 10
	// defaultOutput is the output in tokens of calls that do not bound it: most answers are shorter.
	defaultOutput = 4 << 10
	// soundPerSecond is the number of bytes for a second of sound of unknown length: 32 kbit/s, the lowest usual rate of speech. mostPerSecond
	// is that of two channels at 48 kHz and 16 bits. A file that claims to be shorter than its size allows at that rate is not trusted.
	soundPerSecond, mostPerSecond = 4 << 10, 192_000
	// heardPerSecond and spokenPerSecond are the tokens for a second of sound: one for 100 ms of a user's, one for 50 ms of an assistant's.
	heardPerSecond, spokenPerSecond = 10, 20
	// imageTokens is OpenAI's number of tokens for a square image of medium quality.
	imageTokens = 1056
	// spokenBytes is the approximate number of bytes of text that are spoken in a second, in Latin and in Chinese script.
	spokenBytes = 15
	// streamBytesPerToken is the number of bytes of a stream for one token: 200 and more if each token is an event, 20 to 60 if an event
	// has several. It is used for answers that broke off before they reported their usage.
	streamBytesPerToken = 100
)

// size is the part of a call's request that determines its usage; see Call.
type size struct {
	operation providers.Operation
	length    int64 // of the request's body, in bytes
	sound     time.Duration
	output, n int64
	// background: see Call. stops: the upstream stops its work when its connection ends.
	background, stops bool
}

func sizeOf(call *Call) size {
	return size{
		operation: call.Endpoint.Operation, length: int64(len(call.Body)), sound: call.Sound, output: call.Output, n: call.N,
		background: call.Background, stops: stops(&call.Call, call.Background),
	}
}

// mayUse returns the most that the call may use, as far as its request specifies it.
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

// reads returns the usage of a call with text as input and no text as output.
func (s size) reads() providers.Usage {
	return providers.Usage{Input: s.length / bytesPerToken}
}

// speaks returns the approximate usage of a call for speech.
func (s size) speaks() providers.Usage {
	return providers.Usage{
		Input: s.length / bytesPerToken, Output: s.length * spokenPerSecond / spokenBytes,
		Audio: time.Duration(s.length) * time.Second / spokenBytes,
	}
}

// heard returns the length of the sound in a request.
func (s size) heard() time.Duration {
	if s.sound == 0 {
		return time.Duration(s.length) * time.Second / soundPerSecond
	}
	return max(s.sound, time.Duration(s.length)*time.Second/mostPerSecond)
}

func guessInput(length int64) int64 { return min(length/bytesPerToken, maxInputEstimate) }

// answersText reports whether the length of an operation's answer determines the number of its tokens.
func answersText(operation providers.Operation) bool {
	return slices.Contains([]providers.Operation{
		providers.Chat, providers.Completions, providers.Responses, providers.CompactResponse, providers.Messages,
		providers.GenerateContent, providers.StreamContent, providers.Interactions,
	}, operation)
}

// lengthIsInput reports whether the length of a request determines the number of its tokens. Other operations upload media.
func lengthIsInput(operation providers.Operation) bool {
	return !slices.Contains([]providers.Operation{
		providers.CountTokens, providers.Transcriptions, providers.Translations, providers.ImageEdit,
	}, operation)
}

// stops reports whether an upstream stops its work, and bills only what it has done, when its connection ends. An upstream that streams its
// answer does, but images are always completed, and a response in the background does not depend on a connection.
func stops(call *providers.Call, background bool) bool {
	switch call.Endpoint.Operation {
	case providers.ImageGeneration, providers.ImageEdit:
		return false
	case providers.StreamContent, providers.Speech:
		return true
	default:
		return call.Stream && !background
	}
}

// unreported returns the tokens that the limits count for an answer without reported usage.
func (s size) unreported() int {
	if s.operation == providers.CountTokens {
		return 0 // the operation generates no tokens
	}
	return tokensUnknown
}

// uses returns the approximate usage of an answer of length bytes that is not text and does not report it. images is the number of images
// that are charged by tokens. left: the client left before the end.
func (s size) uses(length, images int64, left bool) (guess providers.Usage) {
	switch s.operation {
	case providers.Embeddings, providers.BatchEmbeddings, providers.Rerank, providers.Moderations:
		return s.reads()
	case providers.Speech:
		if guess = s.speaks(); length == 0 { // the client left before any sound
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

// oneTurn returns the usage that a conversation reserves: about one turn. Each is charged at its end; one above the budget is the last.
func oneTurn() pricing.Measure {
	return pricing.Measure{Requests: 1, Usage: providers.Usage{Input: defaultOutput, Output: defaultOutput}}
}
