package api_test

import (
	"net/http"
	"strings"
	"testing"
	"time"

	"modelrelay/storage/limits"
	"modelrelay/storage/tokens"
)

// TestRefusalNamesTheLimit: a refusal names the limit that was reached, to the client and to metrics and log.
func TestRefusalNamesTheLimit(t *testing.T) {
	t.Parallel()
	limiter := redisLimits(t)
	for word, token := range map[string]*tokens.Token{
		"calls in flight":     {ID: "busy", Limits: tokens.Limits{RequestsPerMinute: 2, TokensPerMinute: 3000, Concurrency: 1}},
		"requests per minute": {ID: "often", Limits: tokens.Limits{RequestsPerMinute: 2, TokensPerMinute: 3000}},
		"tokens per minute":   {ID: "much", Limits: tokens.Limits{RequestsPerMinute: 100, TokensPerMinute: 2}},
	} {
		token.Name, token.Group = token.ID, "default"
		cost := limits.Cost{Requests: 1, Tokens: 2}
		grant, err := limiter.Admit(t.Context(), token.Counted(), cost)
		if err != nil || !grant.Allowed {
			t.Fatalf("%s: %+v, %v", word, grant, err)
		}
		if word == "requests per minute" {
			if _, err := limiter.Admit(t.Context(), token.Counted(), cost); err != nil {
				t.Fatal(err)
			}
		}
		g := newGateway(t, nil, nil)
		g.tokens[goodKey] = token
		refused, err := limiter.Admit(t.Context(), token.Counted(), cost)
		if err != nil {
			t.Fatal(err)
		}
		g.limits.grant = refused
		rec := g.do(t, request("POST", "/v1/chat/completions", smallChat))
		if rec.Code != http.StatusTooManyRequests || !strings.Contains(rec.Body.String(), word) {
			t.Errorf("got %d %s, want 429 that names the %s", rec.Code, rec.Body, word)
		}
		grant.Release(-1)
	}
}

// TestResetOfFormatAIsNotEarly: a client that waits until the time that an answer names finds the window reset.
func TestResetOfFormatAIsNotEarly(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for _, reset := range []time.Duration{1, time.Second / 3, 5*time.Second + time.Second/2, time.Minute - 1} {
		g.limits.grant = limits.Grant{RetryAfter: reset, Requests: limits.Window{Limit: 2, Reset: reset}}
		before := time.Now()
		rec := g.do(t, request("POST", "/v1/messages", `{"model":"claude","max_tokens":1,"messages":[]}`, "anthropic-version", "2023-06-01"))
		after := time.Now()
		at, err := time.Parse(time.RFC3339, rec.Header().Get("anthropic-ratelimit-requests-reset"))
		if err != nil || at.Before(before.Add(reset)) || at.After(after.Add(reset+time.Second)) {
			t.Errorf("asked at %v, reset in %v: got %v, %v", before, reset, at, err)
		}
	}
}
