package api

import (
	"cmp"
	"errors"
	"net/http"
	"time"

	"modelrelay/api/body"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/relay"
	"modelrelay/storage"
)

// What is reserved of a budget before anybody knows what a call costs. The reservation becomes the cost at its end.
const (
	// maxInputEstimate is in tokens. It is more than maxTokenEstimate, since money is lost where a long prompt is
	// underrated, and bounded, since inline media make a body long without costing what its length says.
	maxInputEstimate = 32 << 10
	// defaultOutput is in tokens, for calls that do not bound their output: most answers are shorter.
	defaultOutput = 4 << 10
	// soundPerSecond is in bytes: sound at 32 kbit/s, the least that is usual for speech.
	soundPerSecond = 4 << 10
	// streamBytesPerToken is what one token takes of a stream: 200 and more where each is an event, 20 to 60 where an
	// event holds several. It is used for answers that broke off before they said what they used.
	streamBytesPerToken = 100
)

// asked is what a call says about the size of its answer; 0: nothing.
type asked struct {
	output int64 // most tokens of one answer
	n      int64 // answers, or images
}

// sizeNames are the fields beyond the contract's with which a body of the OpenAI format may say how much it wants: what an
// upstream reads of them nobody knows, so each counts wherever it stands.
func sizeNames() []string {
	return []string{"max_completion_tokens", "max_output_tokens", "max_tokens", "n", "best_of"}
}

// askedOf reads what a JSON body says about its answer: the most that any of its fields says.
func askedOf(b *body.JSON) asked {
	var a asked
	for _, name := range [...]string{"max_completion_tokens", "max_output_tokens", "max_tokens"} {
		a.output = max(a.output, body.Whole(b.Value(name)))
	}
	for _, name := range [...]string{"n", "best_of"} { // the best of so many are made, and paid for
		a.n = max(a.n, body.Whole(b.Value(name)))
	}
	a.n = min(body.MaxWhole, max(1, a.n)*prompts(b.Value("prompt")))
	// The contract's own images say it in their parameters, format A of thinking, and format B in its configuration.
	a.n = max(a.n, body.WholeMember(b.Value("parameters"), "n"))
	a.output = max(a.output, body.WholeMember(b.Value("thinking"), "budget_tokens"))
	if config := b.Value("generationConfig"); config != nil {
		thinking := config
		if at := body.Member(config, "thinkingConfig", "thinking_config"); at != (providers.Span{}) {
			thinking = config[at.From:at.To]
		}
		a.output = max(a.output, body.WholeMember(config, "maxOutputTokens", "max_output_tokens"), body.WholeMember(thinking, "thinkingBudget", "thinking_budget"))
		a.n = max(a.n, body.WholeMember(config, "candidateCount", "candidate_count"))
	}
	return a
}

// prompts is how many texts a completion is to go on from, each of which has answers of its own: the elements of an array,
// but for one that is the tokens of a single text.
func prompts(raw []byte) int64 {
	var n int64
	for at := range body.Items(raw) {
		if c := raw[at.From]; n == 0 && (c == '-' || '0' <= c && c <= '9') {
			return 1
		}
		n++
	}
	return max(1, n)
}

// mayCost is what the call may come to at most, as far as it can be told from its request.
func (x *exchange) mayCost() pricing.Measure {
	n, output := max(1, x.asked.n), cmp.Or(x.asked.output, defaultOutput)
	m := pricing.Measure{Requests: 1, Usage: providers.Usage{Input: guessInput(x.length), Output: output * n}}
	switch x.endpoint.Operation {
	case providers.CountTokens:
		return pricing.Measure{}
	case providers.Embeddings, providers.BatchEmbeddings, providers.Rerank, providers.Moderations:
		m.Usage.Output = 0
	case providers.ImageGeneration, providers.ImageEdit, providers.GenerateContent, providers.StreamContent:
		m.Usage.Images = n
	case providers.Transcriptions, providers.Translations:
		m.Usage.Audio = time.Duration(x.length) * time.Second / soundPerSecond
	}
	return m
}

func guessInput(length int64) int64 { return min(length/bytesPerToken, maxInputEstimate) }

// answersText tells the operations whose answers' length says how many tokens they took.
func answersText(operation providers.Operation) bool {
	switch operation {
	case providers.Chat, providers.Completions, providers.Responses, providers.CompactResponse, providers.Messages,
		providers.GenerateContent, providers.StreamContent:
		return true
	default:
		return false
	}
}

// afford looks up what the call's model costs and, where the caller has a budget, reserves it.
func (s *Server) afford(x *exchange, r *http.Request, model string, may pricing.Measure) error {
	x.price, x.priced = s.prices.Of(model)
	if x.caller.Budget <= 0 {
		return nil
	}
	cost := storage.Cost{Model: model}
	if x.priced {
		cost.Money = int64(x.price.Cost(may))
	}
	return s.reserve(x, r, cost)
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
	return tokensUnknown
}

// leave settles a call whose client left before the first byte of its answer, once an upstream had all of it: that will
// have read it, and will want to be paid for that at least, and for the whole answer where nothing stops it.
func (x *exchange) leave(r *http.Request, err error) {
	gone := (*relay.Left)(nil)
	if !errors.As(err, &gone) || !left(r.Context()) {
		return
	}
	x.channel, x.attempts, x.provider = gone.Channel, gone.Attempts, gone.Provider
	x.left, x.spent = true, unsaid(x.endpoint.Operation)
	x.settle(new(relay.Answer), 0, true)
}

// settle ends the call's hold on the caller's limits once its answer is over, but for the last bytes: what it used and
// cost is known. Where the upstream did not come to say it, it is estimated from the bytes that passed.
func (x *exchange) settle(answer *relay.Answer, last int, broken bool) {
	if x.settled {
		return
	}
	x.settled = true
	usage, counted := answer.Usage()
	if x.usage = usage; counted {
		x.spent = int(usage.Input + usage.Output)
	}
	served := last > 0 || x.status != 0 || x.left // else the client is answered a fault, for which nobody pays
	switch {
	case !served:
	case answersText(x.endpoint.Operation) && (!counted || broken && x.endpoint.Format == providers.Anthropic):
		x.estimate(counted, answer.Stream, x.bytes+int64(last)+x.unsent)
	case x.left && !counted && x.endpoint.Operation != providers.CountTokens:
		x.estimated = true
		if lengthIsInput(x.endpoint.Operation) {
			x.usage.Input = guessInput(x.length)
		}
	}
	if served && !counted && (x.background || x.left && !x.stops) && x.endpoint.Operation != providers.CountTokens {
		x.finish()
	}
	if served && x.priced && x.endpoint.Operation != providers.CountTokens {
		x.cost = x.price.Cost(pricing.Measure{Requests: 1, Usage: x.usage})
	}
	x.grant.Release(x.spent)
	x.money.Settle(0, int64(x.cost))
}

// finish makes up for an answer that nobody will see the end of, though its upstream makes it and wants to be paid: it costs
// what was reserved for it, but for no more than most answers have.
func (x *exchange) finish() {
	n := max(1, x.asked.n)
	may := x.mayCost().Usage
	x.estimated = true
	x.usage.Output = max(x.usage.Output, min(may.Output, defaultOutput*n))
	x.usage.Images = max(x.usage.Images, may.Images)
	x.usage.Audio = max(x.usage.Audio, may.Audio)
}

// estimate makes up for what an answer did not count: its output, and, where it counted nothing, its input. A stream of
// vendor A counts its input at once and its output at the end.
func (x *exchange) estimate(counted, stream bool, length int64) {
	per := int64(bytesPerToken)
	if stream {
		per = streamBytesPerToken
	}
	if x.estimated = true; !counted {
		x.usage.Input = guessInput(x.length)
	}
	x.usage.Output = max(x.usage.Output, min(length/per, maxInputEstimate))
}
