package calls

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/relay"
	"modelrelay/storage/limits"
)

// What is reserved of a budget before anybody knows what a call costs. The reservation becomes the cost at its end.
const (
	// maxInputEstimate is in tokens. It is more than maxTokenEstimate, since money is lost where a long prompt is
	// underrated, and bounded, since inline media make a body long without costing what its length says.
	maxInputEstimate = 32 << 10
	// defaultOutput is in tokens, for calls that do not bound their output: most answers are shorter.
	defaultOutput = 4 << 10
	// soundPerSecond is in bytes: sound at 32 kbit/s, the least that is usual for speech. It is used where a file does not say how
	// long it lasts. mostPerSecond is sound on two channels at 48 kHz and 16 bits: a file that claims to be shorter than its size
	// allows at that rate is not believed.
	soundPerSecond, mostPerSecond = 4 << 10, 192_000
	// heardPerSecond and spokenPerSecond are tokens of sound, as OpenAI counts them: one for 100 ms of a user's sound, one for 50 ms
	// of an assistant's.
	heardPerSecond, spokenPerSecond = 10, 20
	// spokenBytes is about how many bytes of text are spoken in a second, in Latin and in Chinese script.
	spokenBytes = 15
	// streamBytesPerToken is what one token takes of a stream: 200 and more where each is an event, 20 to 60 where an
	// event holds several. It is used for answers that broke off before they said what they used.
	streamBytesPerToken = 100
)

// charge is what one call may cost, and what it came to in the end. It is settled once.
type charge struct {
	request *edge.Request
	price   pricing.Price
	// operation, length, output and n say what the call may cost; see Call.
	operation providers.Operation
	length    int64 // of the request's body
	sound     time.Duration
	output, n int64
	// background: see Call. stops: the upstream stops when it is left.
	background, stops bool

	left    bool  // the client did not wait for an answer that an upstream was asked for
	unsent  int64 // bytes of the answer that had come when its client was not there any more
	settled bool
	// outputCounted is what the answer has counted so far, and countedAt how many of its bytes had been sent before that count.
	outputCounted, countedAt int64
	// reservation is what the ledger's entry of a settled call names.
	reservation string
}

// mayCost is what the call may come to at most, as far as it can be told from its request.
func (ch *charge) mayCost() pricing.Measure {
	n, output := max(1, ch.n), cmp.Or(ch.output, defaultOutput)
	m := pricing.Measure{Requests: 1, Usage: providers.Usage{Input: guessInput(ch.length), Output: output * n}}
	switch ch.operation {
	case providers.CountTokens:
		return pricing.Measure{}
	case providers.Embeddings, providers.BatchEmbeddings, providers.Rerank, providers.Moderations:
		m.Usage = ch.reads()
	case providers.Speech:
		m.Usage = ch.speaks()
	case providers.ImageGeneration, providers.ImageEdit, providers.GenerateContent, providers.StreamContent:
		m.Usage.Images = n
	case providers.Transcriptions, providers.Translations:
		m.Usage.Audio = ch.heard()
	}
	return m
}

// reads is what a call uses that is of text alone and makes none.
func (ch *charge) reads() providers.Usage {
	return providers.Usage{Input: ch.length / edge.BytesPerToken}
}

// speaks is about what a call uses whose text is spoken.
func (ch *charge) speaks() providers.Usage {
	return providers.Usage{
		Input: ch.length / edge.BytesPerToken, Output: ch.length * spokenPerSecond / spokenBytes,
		Audio: time.Duration(ch.length) * time.Second / spokenBytes,
	}
}

// heard is how long the sound of a request lasts.
func (ch *charge) heard() time.Duration {
	if ch.sound == 0 {
		return time.Duration(ch.length) * time.Second / soundPerSecond
	}
	return max(ch.sound, time.Duration(ch.length)*time.Second/mostPerSecond)
}

func guessInput(length int64) int64 { return min(length/edge.BytesPerToken, maxInputEstimate) }

// answersText tells the operations whose answers' length says how many tokens they took.
func answersText(operation providers.Operation) bool {
	switch operation {
	case providers.Chat, providers.Completions, providers.Responses, providers.CompactResponse, providers.Messages,
		providers.GenerateContent, providers.StreamContent, providers.Interactions:
		return true
	default:
		return false
	}
}

// afford looks up what a model costs and, where the caller has a budget, reserves it.
func (c *Calls) afford(x *edge.Request, r *http.Request, model string, may pricing.Measure) (price pricing.Price, err error) {
	price, x.Outcome.Priced = c.options.Prices.Of(model)
	if x.Caller.Budget <= 0 {
		return price, nil
	}
	cost := limits.Cost{Model: model}
	if x.Outcome.Priced {
		cost.Money = int64(price.Cost(may))
	}
	return price, x.Reserve(r.Context(), cost)
}

// lengthIsInput tells the operations whose requests' length says how many tokens they have: the others upload media.
func lengthIsInput(operation providers.Operation) bool {
	switch operation {
	case providers.CountTokens, providers.Transcriptions, providers.Translations, providers.ImageEdit:
		return false
	default:
		return true
	}
}

// stops tells whether an upstream stops its work when its connection ends. One that writes its answer as it makes it does,
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
func unsaid(operation providers.Operation) int {
	if operation == providers.CountTokens {
		return 0 // counting makes no tokens
	}
	return edge.TokensUnknown
}

// leave settles a call whose client left before the first byte of its answer, once an upstream had all of it: that will
// have read it, and will want to be paid for that at least, and for the whole answer where nothing stops it.
func (ch *charge) leave(r *http.Request, err error) {
	gone := (*relay.Left)(nil)
	if !errors.As(err, &gone) || !edge.Left(r.Context()) {
		return
	}
	x := ch.request
	x.Outcome.Channel, x.Outcome.Attempts, x.Outcome.Provider = gone.Channel, gone.Attempts, gone.Provider
	ch.left, x.Admission.Spent = true, unsaid(ch.operation)
	ch.settle(new(relay.Answer), 0, true)
}

// settle ends the call's hold on the caller's limits once its answer is over, but for the last bytes: what it used and
// cost is known. Where the upstream did not come to say it, it is estimated from the bytes that passed.
func (ch *charge) settle(answer *relay.Answer, last int, broken bool) {
	if ch.settled {
		return
	}
	ch.settled = true
	x, o := ch.request, &ch.request.Outcome
	usage, counted := answer.Usage()
	if o.Usage = usage; counted {
		x.Admission.Spent = int(usage.Input + usage.Output)
	}
	served := last > 0 || x.Status() != 0 || ch.left // else the client is answered a fault, for which nobody pays
	counts := ch.operation == providers.CountTokens
	length := x.Sent() + int64(last) + ch.unsent
	switch {
	case !served || counts:
	case answersText(ch.operation):
		if !counted || broken && (answer.Stream || ch.operation == providers.StreamContent) { // else it counts once, at its end
			ch.estimate(counted, answer.Stream, length-ch.countedAt)
		}
	default:
		ch.estimateOthers(counted, length)
	}
	if served && !counted && (ch.background || ch.left && !ch.stops) && !counts {
		ch.finish()
	}
	if served && o.Priced && !counts {
		o.Cost = ch.price.Cost(pricing.Measure{Requests: 1, Usage: o.Usage})
	}
	ch.reservation = x.Admission.Settle(int64(o.Cost))
}

// finish makes up for an answer that nobody will see the end of, though its upstream makes it and wants to be paid: it costs
// what was reserved for it, but for no more than most answers have.
func (ch *charge) finish() {
	o := &ch.request.Outcome
	n := max(1, ch.n)
	may := ch.mayCost().Usage
	o.Estimated = true
	o.Usage.Output = max(o.Usage.Output, min(may.Output, defaultOutput*n))
	o.Usage.Images = max(o.Usage.Images, may.Images)
	o.Usage.Audio = max(o.Usage.Audio, may.Audio)
}

// passes notes, before bytes that were read are sent, what the answer has counted.
func (ch *charge) passes(answer *relay.Answer) {
	if usage, _ := answer.Usage(); usage.Output > ch.outputCounted {
		ch.outputCounted, ch.countedAt = usage.Output, ch.request.Sent()
	}
}

// estimate adds what an answer of text did not count: the output in the length bytes since its last count and, where it counted
// nothing, its input.
func (ch *charge) estimate(counted, stream bool, length int64) {
	per := int64(edge.BytesPerToken)
	if stream {
		per = streamBytesPerToken
	}
	o := &ch.request.Outcome
	if !counted {
		o.Usage.Input = guessInput(ch.length)
	}
	more := min(max(0, length)/per, maxInputEstimate)
	o.Usage.Output += more
	o.Estimated = o.Estimated || !counted || more > 0
}

// estimateOthers estimates what an answer that is not a model's text did not count; length is its size. Sound is charged by its
// length or by its tokens, whichever the operator prices.
func (ch *charge) estimateOthers(counted bool, length int64) {
	o := &ch.request.Outcome
	var guess providers.Usage
	switch ch.operation {
	case providers.Embeddings, providers.BatchEmbeddings, providers.Rerank, providers.Moderations:
		guess = ch.reads()
	case providers.Speech:
		if guess = ch.speaks(); length == 0 { // its client left before the sound
			guess.Output, guess.Audio = 0, 0
		}
	case providers.Transcriptions, providers.Translations:
		guess = providers.Usage{
			Input: int64(ch.heard().Seconds() * heardPerSecond), Output: length / edge.BytesPerToken, Audio: ch.heard(),
		}
	default: // images are counted as they come; what is left is the text of a call that its client left
		if ch.left && lengthIsInput(ch.operation) {
			guess.Input = guessInput(ch.length)
		}
	}
	bySecond := guess.Audio > 0 && (ch.price.AudioSecond != nil || ch.price.Input == nil && ch.price.Output == nil)
	switch {
	case bySecond && o.Usage.Audio == 0:
		o.Usage.Audio, o.Estimated = guess.Audio, true
	case !bySecond && !counted && guess != (providers.Usage{}):
		o.Usage.Input, o.Usage.Output, o.Estimated = guess.Input, guess.Output, true
	}
}
