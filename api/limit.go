package api

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/providers"
	"modelrelay/storage"
)

// Limits holds each token to its limits.
type Limits interface {
	// Admit says by the grant whether the call may go on; an allowed call's is released when it is over. The error is
	// the caller's own cancellation.
	Admit(ctx context.Context, caller *storage.Token, cost storage.Cost) (storage.Grant, error)
}

// A call's tokens are guessed before its body is read, from the length alone. Inline media make a body long without
// costing what its length says, so the guess is bounded; the true count is settled at the release.
const (
	bytesPerToken    = 4
	maxTokenEstimate = 4096
)

func estimateTokens(contentLength int64) int {
	return int(min(max(contentLength, 0)/bytesPerToken, maxTokenEstimate))
}

// limit is the middleware of operations that cost something: calls and creates. Reads of tasks, of which a task's client
// makes a hundred, have a limit of their own.
func (s *Server) limit(ctx huma.Context, next func(huma.Context)) {
	r, x := unwrap(ctx)
	err := s.limited(x, r, func(*exchange, *http.Request) error {
		next(ctx)
		return nil
	})
	if err != nil {
		s.fail(x, err)
	}
}

// limited runs a handler that costs something within the caller's limits. They hold before the body is read; what the
// call may cost of a budget is known, and reserved, only after.
func (s *Server) limited(x *exchange, r *http.Request, h handler) error {
	defer func() {
		x.grant.Release(x.spent)
		x.money.Release(0)
	}()
	if err := s.admit(x, r); err != nil {
		return err
	}
	return h(x, r)
}

// admit holds what comes to the caller's limits.
func (s *Server) admit(x *exchange, r *http.Request) error {
	grant, err := s.limits.Admit(r.Context(), x.caller.Counted(), storage.Cost{Requests: 1, Tokens: estimateTokens(r.ContentLength)})
	if err != nil {
		return err
	}
	setLimitHeaders(x.Header(), x.format, grant)
	if !grant.Allowed {
		fault := &providers.Fault{Kind: providers.RateLimited, RetryAfter: grant.RetryAfter}
		x.refused, fault.Message = refusal(grant)
		return fault
	}
	x.grant = grant
	return nil
}

// reserve holds what a call may cost of the caller's budget.
func (s *Server) reserve(x *exchange, r *http.Request, cost storage.Cost) error {
	money, err := s.limits.Admit(r.Context(), x.caller.Charged(), cost)
	if err != nil {
		return err
	}
	if !money.Allowed {
		x.refused = LimitBudget
		return &providers.Fault{
			Kind: providers.Quota, RetryAfter: money.RetryAfter,
			Message: "The budget of this API key does not cover what the call may cost.",
		}
	}
	x.money = money
	return nil
}

// refusal names the limit that was reached, and tells it to the client.
func refusal(grant storage.Grant) (limit Limit, message string) {
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

// setLimitHeaders shows the windows of the limits the token has.
func setLimitHeaders(header http.Header, format providers.Format, grant storage.Grant) {
	for _, w := range [...]struct {
		name   string
		window storage.Window
	}{{"requests", grant.Requests}, {"tokens", grant.Tokens}} {
		if w.window.Limit <= 0 {
			continue
		}
		limit, remaining := strconv.Itoa(w.window.Limit), strconv.Itoa(w.window.Remaining)
		if format == providers.Anthropic {
			prefix := "anthropic-ratelimit-" + w.name
			header.Set(prefix+"-limit", limit)
			header.Set(prefix+"-remaining", remaining)
			// The format has whole seconds: the next one, since who comes back in the one before is early.
			header.Set(prefix+"-reset", time.Now().Add(w.window.Reset+time.Second-1).UTC().Format(time.RFC3339))
			continue
		}
		header.Set("x-ratelimit-limit-"+w.name, limit)
		header.Set("x-ratelimit-remaining-"+w.name, remaining)
		header.Set("x-ratelimit-reset-"+w.name, resetText(w.window.Reset))
	}
}

// resetText is a duration as the vendors write it: "120ms", "1s", "6m0s".
func resetText(d time.Duration) string {
	if d > time.Second {
		return (d + time.Second - 1).Truncate(time.Second).String()
	}
	return (d + time.Millisecond - 1).Truncate(time.Millisecond).String()
}
