package openai_test

import (
	"net/http"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/providertest"
)

func TestRelayer(t *testing.T) {
	t.Parallel()
	providertest.TestRelayer(t, providertest.RelaySubject{
		New:     func(client *http.Client) providers.Relayer { return openai.NewRelayer(client) },
		Channel: providers.Channel{Vendor: "openai"},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			return req.Header.Get("Authorization") == "Bearer "+key.Reveal()
		},
		Cases: relayCases(),
	})
}

// TestRelayErrorCodes: the codes of OpenAI's "Error codes" guide that say more than their status.
func TestRelayErrorCodes(t *testing.T) {
	t.Parallel()
	refusals := []providertest.RelayRefusal{
		{
			Name: "quota", Status: 429, Body: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
			Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, Code: "insufficient_quota",
		},
		{
			// github.com/BerriAI/litellm/issues/2743
			Name: "not active", Status: 429, Body: `{"error":{"message":"Your account is not active, please check your billing details on our website.","type":"billing_not_active","param":null,"code":"billing_not_active"}}`,
			Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, Code: "billing_not_active",
		},
		{
			Name: "hard limit", Status: 400, Body: `{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","param":null,"code":"billing_hard_limit_reached"}}`,
			Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, Code: "billing_hard_limit_reached",
		},
		{
			Name: "wrong key", Status: 401, Body: `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`,
			Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused, Code: "invalid_api_key",
		},
		{
			Name: "deactivated", Status: 401, Body: `{"error":{"message":"The account has been deactivated","type":"invalid_request_error","param":null,"code":"account_deactivated"}}`,
			Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused, Code: "account_deactivated",
		},
		{
			Name: "no money at an imitator", Status: 402,
			Body: `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`,
			Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, Code: "invalid_request_error",
		},
		{
			Name: "rate", Status: 429, Body: `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`,
			Kind: providers.RateLimited, Blame: providers.BlameKey, Code: "rate_limit_exceeded",
		},
		{
			Name: "model", Status: 404, Body: `{"error":{"message":"The model does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}`,
			Kind: providers.ModelNotFound, Code: "model_not_found",
		},
		{
			Name: "field", Status: 400, Body: `{"error":{"message":"too many tokens","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			Kind: providers.Invalid, Code: "context_length_exceeded", Param: "messages",
		},
		{
			Name: "an imitator's number", Status: 400, Body: `{"error":{"message":"no","type":"BadRequestError","param":null,"code":400}}`,
			Kind: providers.Invalid, Code: "BadRequestError",
		},
		{Name: "another shape", Status: 400, Body: `{"error":"no"}`, Kind: providers.Invalid},
		{Name: "no JSON", Status: 500, Body: `<html>`, Kind: providers.Upstream, Blame: providers.BlameChannel},
	}
	for i := range refusals {
		refusals[i].Wait = 1500 * time.Millisecond
	}
	providertest.TestRefusals(t, providertest.RefusingVendor{
		New:      func(client *http.Client) providers.Relayer { return openai.NewRelayer(client) },
		Endpoint: providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat},
		Unserved: []providers.Endpoint{
			{Format: providers.OpenAI, Operation: "no such"}, {Format: providers.Anthropic, Operation: providers.Chat},
		},
		Header:   http.Header{"Retry-After-Ms": {"1500"}},
		Refusals: refusals,
	})
}
