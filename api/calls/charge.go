package calls

import (
	"context"
	"errors"
	"net/http"
	"strconv"

	"modelrelay/activities"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/relay"
	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
)

// Limits enforces the limits of tokens.
type Limits interface {
	// Admit returns a grant, which reports whether the call may continue, and is released at its end. An error is that of ctx.
	Admit(ctx context.Context, caller storage.Allowance, cost limits.Cost) (limits.Grant, error)
	// Resume returns the grant of a call that was admitted before, with an estimate of so many tokens.
	Resume(caller storage.Allowance, tokens int) limits.Grant
}

// Charge handles the limits and the money of a call, in the order of this file: Admit, Reserve, settle, release, on one goroutine.
type Charge struct {
	calls   *Calls
	request *edge.Request
	size
	price pricing.Price
	// run is the background call that the request serves. Its task holds the money and counts as a concurrent call; nil for a client's
	// request.
	run *activities.CallRun

	// tokens is the estimate that the limits count before the body is read.
	tokens   int
	admitted bool
	// concurrent is the grant of the concurrent call, and money that of the reservation in the budget: zero without a budget, and equal to
	// concurrent if one round trip granted both.
	concurrent, money limits.Grant

	left   bool  // the client left before the end of the answer, after an upstream had received the call
	unsent int64 // bytes of the answer that were received and not sent, because the client had left
	// outputCounted is the output tokens that the answer has reported so far, and countedAt the number of bytes sent before that report.
	outputCounted, countedAt int64

	settled bool
	// spent is the number of tokens that the limits count for the call.
	spent int
	// reservation is the reservation in the ledger's entry of a settled call.
	reservation string
}

// Charged returns the handler of an operation that is a call or creates a task. h receives an admitted charge, or one that Reserve admits.
// A request counts as a call even if it is refused. Charged releases the grants at its end.
func (c *Calls) Charged(h func(x *edge.Request, r *http.Request, ch *Charge) error) edge.Handler {
	return func(x *edge.Request, r *http.Request) error {
		x.Recorded = true
		ch := &Charge{
			calls: c, request: x, run: activities.CallRunOf(r.Context()),
			tokens: int(min(max(r.ContentLength, 0)/bytesPerToken, maxTokenEstimate)),
		}
		if ch.run != nil {
			x.Outcome.Task = ch.run.TaskID
			ch.admitted, ch.concurrent = true, c.options.Limits.Resume(x.Caller.Counted(), ch.tokens)
		}
		defer ch.release()
		if !x.Access.Reserves || x.Caller.Budget <= 0 || !x.IsShort(r) {
			if err := ch.Admit(r.Context()); err != nil {
				return err
			}
		}
		err := h(x, r, ch)
		if err == nil {
			return nil
		}
		if refused := ch.Admit(context.WithoutCancel(r.Context())); refused != nil { // the client may have left
			return refused
		}
		return err
	}
}

// InBackground reports whether a worker sent the request to serve a background call.
func (ch *Charge) InBackground() bool { return ch.run != nil }

// Admit applies the caller's limits of calls. Further calls of Admit do nothing.
func (ch *Charge) Admit(ctx context.Context) error {
	if ch.admitted {
		return nil
	}
	grant, err := ch.calls.options.Limits.Admit(ctx, ch.request.Caller.Counted(), limits.Cost{Requests: 1, Tokens: ch.tokens})
	if err != nil {
		return err
	}
	return ch.take(grant)
}

// take stores the grant and adds the state of the limits to the answer. It returns the fault if the grant is refused.
func (ch *Charge) take(grant limits.Grant) error {
	x := ch.request
	ch.admitted = true
	x.ShowLimits(grant.Requests, grant.Tokens)
	if !grant.Allowed {
		fault := &providers.Fault{Kind: providers.RateLimited, RetryAfter: grant.RetryAfter}
		x.Outcome.Refused, fault.Message = refusal(grant)
		return fault
	}
	ch.concurrent = grant
	return nil
}

// refusal returns the limit that was reached, and the message for the client.
func refusal(grant limits.Grant) (limit edge.Limit, message string) {
	switch {
	case grant.Busy:
	case grant.Requests.Limit > 0 && grant.Requests.Remaining == 0:
		return edge.LimitRequests, "Rate limit reached: " + strconv.Itoa(grant.Requests.Limit) + " requests per minute."
	case grant.Tokens.Limit > 0 && grant.Tokens.Remaining < maxTokenEstimate:
		return edge.LimitTokens, "Rate limit reached: " + strconv.Itoa(grant.Tokens.Limit) + " tokens per minute."
	}
	return edge.LimitConcurrency, "Rate limit reached: too many calls in flight."
}

// Reserve looks up the price of the model, reserves the cost of most in the caller's budget, and admits a call that is not admitted yet.
func (ch *Charge) Reserve(ctx context.Context, model string, most pricing.Measure) error {
	o := &ch.request.Outcome
	ch.price, o.Priced = ch.calls.options.Prices.Of(model)
	cost := limits.Cost{Model: model}
	if o.Priced {
		cost.Money = int64(ch.price.Cost(most))
	}
	return ch.reserve(ctx, cost)
}

// CheckBudget is Reserve for a create of a task, whose start makes its own reservation: it only requires that the budget is not used up.
func (ch *Charge) CheckBudget(ctx context.Context) error { return ch.reserve(ctx, limits.Cost{}) }

func (ch *Charge) reserve(ctx context.Context, cost limits.Cost) error {
	caller, all := ch.request.Caller, ch.calls.options.Limits
	if caller.Budget <= 0 {
		return ch.Admit(ctx)
	}
	if !ch.admitted {
		both := cost
		both.Requests, both.Tokens = 1, ch.tokens
		grant, err := all.Admit(ctx, caller.Admitted(), both)
		if err != nil {
			return err
		}
		if !grant.Spent {
			ch.money = grant
			return ch.take(grant)
		}
		if err := ch.Admit(ctx); err != nil { // a call that only its budget refuses still counts as a call
			return err
		}
	}
	money, err := all.Admit(ctx, caller.Charged(), cost)
	if err != nil {
		return err
	}
	if !money.Allowed {
		ch.request.Outcome.Refused = edge.LimitBudget
		return &providers.Fault{
			Kind: providers.Quota, RetryAfter: money.RetryAfter,
			Message: "The budget of this API key does not cover what the call may cost.",
		}
	}
	ch.money = money
	return nil
}

// passes records the usage that the answer has reported, before the bytes that were read are sent.
func (ch *Charge) passes(answer *relay.Answer) {
	if usage, _ := answer.Usage(); usage.Output > ch.outputCounted {
		ch.outputCounted, ch.countedAt = usage.Output, ch.request.Sent()
	}
}

// settle determines the usage and cost of the call and releases its grants, when all but the last bytes of the answer were sent: a client
// may send its next call after the last byte. If the upstream did not report the usage, settle estimates it from the number of bytes. last
// is the number of bytes that are still to be sent.
func (ch *Charge) settle(answer *relay.Answer, last int, broken bool) {
	if ch.settled {
		return
	}
	ch.settled = true
	x, o := ch.request, &ch.request.Outcome
	usage, counted := answer.Usage()
	if o.Usage = usage; counted {
		ch.spent = int(usage.Input + usage.Output)
	}
	served := last > 0 || x.Status() != 0 || ch.left // otherwise the client gets a fault, which costs nothing
	if served && ch.operation != providers.CountTokens {
		length := x.Sent() + int64(last) + ch.unsent
		switch {
		case !answersText(ch.operation):
			ch.estimateOthers(counted, length)
		// other answers report their usage once, at their end
		case !counted || broken && (answer.Stream || ch.operation == providers.StreamContent):
			ch.estimate(counted, answer.Stream, length-ch.countedAt)
		}
		if !counted && (ch.background || ch.left && !ch.stops) {
			ch.finish()
		}
		if o.Priced {
			o.Cost = ch.price.Cost(pricing.Measure{Requests: 1, Usage: o.Usage})
		}
	}
	if ch.run != nil {
		ch.concurrent.Spend(ch.spent - ch.tokens) // counts in the present minute, not in that of the create
	}
	ch.money.Settle(ch.spent, int64(o.Cost)) // first, because it may be the same grant as concurrent
	ch.concurrent.Release(ch.spent)
	ch.reservation = ch.money.Reservation()
}

// leave settles a call that its client or this process ended before the first byte of the answer, if an upstream had received the whole
// call. The upstream bills at least the input, and the whole answer if it does not stop.
func (ch *Charge) leave(r *http.Request, err error) {
	left := (*relay.AbandonedError)(nil)
	if !errors.As(err, &left) || r.Context().Err() == nil {
		return
	}
	o := &ch.request.Outcome
	o.Channel, o.Attempts, o.Provider = left.Channel, left.Attempts, left.Provider
	ch.left, ch.spent = true, ch.unreported()
	ch.settle(new(relay.Answer), 0, true)
}

// estimate adds the unreported usage of an answer of text: the output in length bytes since the last report, and without any its input.
func (ch *Charge) estimate(counted, stream bool, length int64) {
	per := int64(bytesPerToken)
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

// estimateOthers estimates the unreported usage of another answer of length bytes. The price decides between seconds and tokens of sound.
func (ch *Charge) estimateOthers(counted bool, length int64) {
	o, images := &ch.request.Outcome, int64(0)
	if ch.price.Image == nil && (ch.price.Input != nil || ch.price.Output != nil) {
		images = ch.request.Outcome.Usage.Images
	}
	guess := ch.uses(length, images, ch.left)
	bySecond := guess.Audio > 0 && (ch.price.AudioSecond != nil || ch.price.Input == nil && ch.price.Output == nil)
	switch {
	case bySecond && o.Usage.Audio == 0:
		o.Usage.Audio, o.Estimated = guess.Audio, true
	case !bySecond && !counted && guess != (providers.Usage{}):
		o.Usage.Input, o.Usage.Output, o.Estimated = guess.Input, guess.Output, true
	}
}

// finish estimates an answer that the upstream completes and bills although the gateway does not receive its end. Such an answer costs what
// was reserved, with at most defaultOutput tokens for each answer.
func (ch *Charge) finish() {
	o, most := &ch.request.Outcome, ch.mayUse().Usage
	o.Estimated = true
	o.Usage.Output = max(o.Usage.Output, min(most.Output, defaultOutput*max(1, ch.n)))
	o.Usage.Images = max(o.Usage.Images, most.Images)
	o.Usage.Audio = max(o.Usage.Audio, most.Audio)
}

func (ch *Charge) record(failed bool) {
	o := &ch.request.Outcome
	ch.enter(ledger.Entry{Requests: 1, Failed: failed, Reservation: ch.reservation}, o.Usage, o.Cost)
}

// enter adds an entry with a usage and its cost to the ledger.
func (ch *Charge) enter(e ledger.Entry, usage providers.Usage, cost pricing.Money) {
	o := &ch.request.Outcome
	e.Token, e.Model, e.Channel, e.Cost = ch.request.Caller.ID, o.Model, o.Channel, int64(cost)
	e.InputTokens, e.CachedTokens, e.OutputTokens, e.Images, e.Audio = usage.Input, usage.Cached, usage.Output, usage.Images, usage.Audio
	ch.calls.options.Ledger.Record(e)
}

// recordTurn adds the usage in one event of a conversation to the ledger and the caller's limits at once, because a conversation may last
// an hour. It reports whether the budget is used up: other calls of the token use it too.
func (ch *Charge) recordTurn(ctx context.Context, usage providers.Usage) (overdrawn bool) {
	o := &ch.request.Outcome
	o.Usage.Input += usage.Input
	o.Usage.Cached += usage.Cached
	o.Usage.Output += usage.Output
	o.Usage.Audio += usage.Audio
	tokens := int(usage.Input + usage.Output)
	ch.spent += tokens
	ch.concurrent.Spend(tokens)
	cost := ch.price.Cost(pricing.Measure{Usage: usage})
	o.Cost += cost
	ch.enter(ledger.Entry{}, usage, cost)
	return ch.request.Caller.Budget > 0 && (int64(o.Cost) > ch.money.Left || ch.money.Overdrawn(ctx))
}

// recordConversation adds the conversation itself to the ledger as one request. It has a cost if an upstream accepted it.
func (ch *Charge) recordConversation(failed bool) {
	o := &ch.request.Outcome
	var cost pricing.Money
	if o.Channel != "" {
		cost = ch.price.Cost(pricing.Measure{Requests: 1})
	}
	o.Cost += cost
	ch.enter(ledger.Entry{Requests: 1, Failed: failed}, providers.Usage{}, cost)
}

// keepEstimate is what the limits count of a create: the estimate that they have admitted. The worker counts what the call uses beyond it.
const keepEstimate = -1

func (ch *Charge) release() {
	ch.money.Release(ch.spent)
	ch.concurrent.Release(ch.spent)
}
