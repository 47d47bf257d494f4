package edge

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/limits"
)

// Limits holds each token to its limits.
type Limits interface {
	// Admit says by the grant whether the call may go on; an allowed call's is released when it is over. The error is
	// the caller's own cancellation.
	Admit(ctx context.Context, caller storage.Allowance, cost limits.Cost) (limits.Grant, error)
}

// A call's tokens are guessed before its body is read, from the length alone. Inline media make a body long without
// costing what its length says, so the guess is bounded; the true count is settled at the release.
const (
	BytesPerToken    = 4
	maxTokenEstimate = 4096
)

func estimateTokens(contentLength int64) int {
	return int(min(max(contentLength, 0)/BytesPerToken, maxTokenEstimate))
}

// Admission is what a request holds of its caller's limits, from before its body is read until its answer is over: a place
// among the calls, and then, once it is known what the call may cost, so much of the budget. The zero value holds nothing.
type Admission struct {
	// Spent is what the limits count of the call: 0 for one that cost nothing, TokensUnknown for an answer without counts.
	Spent int

	calls limits.Grant
	// money is reserved of the budget; it holds nothing where there is none, and is calls where both were granted at once.
	money limits.Grant
	// due: the request is still to be admitted, by Reserve or before that.
	due bool
}

// TokensUnknown leaves the estimate of a call as what it spent.
const TokensUnknown = -1

// Admit holds a request to its caller's limits of calls. What is granted is given back when the request is over.
func (x *Request) Admit(r *http.Request) error {
	x.recorded, x.Admission.due = true, false
	grant, err := x.edge.options.Limits.Admit(r.Context(), x.Caller.Counted(), limits.Cost{Requests: 1, Tokens: estimateTokens(r.ContentLength)})
	if err != nil {
		return err
	}
	return x.granted(grant)
}

// admitDue is Admit of a request that still is to be admitted. One whose client has left counts as well.
func (x *Request) admitDue(ctx context.Context) error {
	if !x.Admission.due {
		return nil
	}
	return x.Admit(x.http.WithContext(context.WithoutCancel(ctx)))
}

// granted shows what the limits say of a call, and refuses it where they do.
func (x *Request) granted(grant limits.Grant) error {
	x.Format.showLimit(x.Header(), "requests", grant.Requests)
	x.Format.showLimit(x.Header(), "tokens", grant.Tokens)
	if !grant.Allowed {
		fault := &providers.Fault{Kind: providers.RateLimited, RetryAfter: grant.RetryAfter}
		x.Outcome.Refused, fault.Message = refusal(grant)
		return fault
	}
	x.Admission.calls = grant
	return nil
}

// Reserve holds what the request may cost of its caller's budget, and admits one that still is to be admitted. A caller without
// a budget has nothing to reserve.
func (x *Request) Reserve(ctx context.Context, cost limits.Cost) error {
	if x.Caller.Budget <= 0 {
		return x.admitDue(ctx)
	}
	if x.Admission.due {
		both := cost
		both.Requests, both.Tokens = 1, estimateTokens(x.http.ContentLength)
		grant, err := x.edge.options.Limits.Admit(ctx, x.Caller.Admitted(), both)
		if err != nil {
			return err
		}
		if !grant.Spent {
			x.Admission.due = false
			x.Admission.money = grant
			return x.granted(grant)
		}
		if err := x.admitDue(ctx); err != nil { // a call that only its budget refuses has counted as one
			return err
		}
	}
	money, err := x.edge.options.Limits.Admit(ctx, x.Caller.Charged(), cost)
	if err != nil {
		return err
	}
	if !money.Allowed {
		x.Outcome.Refused = LimitBudget
		return &providers.Fault{
			Kind: providers.Quota, RetryAfter: money.RetryAfter,
			Message: "The budget of this API key does not cover what the call may cost.",
		}
	}
	x.Admission.money = money
	return nil
}

// AdmitSocket takes a place among the caller's open conversations until leave is called.
func (x *Request) AdmitSocket(ctx context.Context) (leave func(), err error) {
	place, err := x.edge.options.Limits.Admit(ctx, x.Caller.Sockets(), limits.Cost{})
	if err != nil {
		return nil, err
	}
	if !place.Allowed {
		x.Outcome.Refused = LimitSockets
		return nil, &providers.Fault{
			Kind: providers.RateLimited, RetryAfter: place.RetryAfter,
			Message: "Rate limit reached: too many open realtime connections.",
		}
	}
	return func() { place.Release(0) }, nil
}

// Settle ends the admission of a call that goes into the ledger: what it spent and cost takes the place of what was
// reserved. The entry names the reservation that is returned. It comes before the last byte of an answer, since its client
// may send its next call after that one.
func (a *Admission) Settle(cost int64) (reservation string) {
	a.money.Settle(a.Spent, cost) // first: it may be calls as well
	a.calls.Release(a.Spent)
	return a.money.Reservation()
}

// release gives back what Settle did not.
func (a *Admission) release() {
	a.money.Release(a.Spent)
	a.calls.Release(a.Spent)
}

// Spend counts tokens of a conversation in the minute in which they are used.
func (a *Admission) Spend(tokens int) {
	a.Spent += tokens
	a.calls.Spend(tokens)
}

// Overdrawn tells of a conversation that has cost so much, of a caller with a budget, whether that is used up. Others spend
// of the same budget meanwhile, conversations that began beside this one among them.
func (a *Admission) Overdrawn(ctx context.Context, cost int64) bool {
	return cost > a.money.Left || a.money.Overdrawn(ctx)
}

// refusal names the limit that was reached, and tells it to the client.
func refusal(grant limits.Grant) (limit Limit, message string) {
	switch {
	case grant.Busy:
		return LimitConcurrency, "Rate limit reached: too many calls in flight."
	case grant.Requests.Limit > 0 && grant.Requests.Remaining == 0:
		return LimitRequests, "Rate limit reached: " + strconv.Itoa(grant.Requests.Limit) + " requests per minute."
	case grant.Tokens.Limit > 0 && grant.Tokens.Remaining < maxTokenEstimate:
		return LimitTokens, "Rate limit reached: " + strconv.Itoa(grant.Tokens.Limit) + " tokens per minute."
	default:
		return LimitConcurrency, "Rate limit reached: too many calls in flight."
	}
}

// showLimit shows the state of a limit that the token has.
func (f *Format) showLimit(header http.Header, name string, window limits.Window) {
	switch {
	case window.Limit <= 0:
	case f.Limit != nil:
		f.Limit(header, name, window)
	default:
		names := limitHeaders(name)
		values := []string{strconv.Itoa(window.Limit), strconv.Itoa(window.Remaining), resetText(window.Reset)}
		for i, name := range names {
			header[name] = values[i : i+1 : i+1]
		}
	}
}

// limitHeaders are the names of the headers of a limit: what it is, what is left of it, and when it is whole again.
func limitHeaders(name string) [3]string {
	if name == "tokens" {
		return [3]string{"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens"}
	}
	return [3]string{"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests"}
}

// resetText is a duration as the vendors write it: "120ms", "1s", "6m0s".
func resetText(d time.Duration) string {
	if d > time.Second {
		return (d + time.Second - 1).Truncate(time.Second).String()
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond).String()
}
