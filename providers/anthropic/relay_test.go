package anthropic_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/anthropic"
	"modelrelay/providers/providertest"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
)

var (
	messages    = providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}
	countTokens = providers.Endpoint{Format: providers.Anthropic, Operation: providers.CountTokens}
)

func fixture(t *testing.T, name string) string {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return string(raw)
}

func TestRelayer(t *testing.T) {
	t.Parallel()
	const body = `{"max_tokens":1024, "model": "pub","messages":[{"role":"user","content":"hi"}],"temperature":1.0}`
	providertest.TestRelayer(t, providertest.RelaySubject{
		New:     func(client *http.Client) providers.Relayer { return anthropic.NewRelayer(client) },
		Channel: providers.Channel{Vendor: "anthropic"},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			return req.Header.Get("X-Api-Key") == key.Reveal() && req.Header.Get("Anthropic-Version") != ""
		},
		Cases: []providertest.RelayCase{{
			Endpoint: messages, Path: "/v1/messages", Body: body,
			Header:     http.Header{"Anthropic-Version": {"2099-01-01"}, "Anthropic-Beta": {"files-api-2025-04-14,context-1m-2025-08-07"}},
			AnswerType: "application/json", Answer: fixture(t, "messages.json"), Stream: fixture(t, "messages.sse"),
		}, {
			Endpoint: countTokens, Path: "/v1/messages/count_tokens", Body: body, Header: http.Header{"Anthropic-Beta": {"b"}},
			AnswerType: "application/json", Answer: fixture(t, "count_tokens.json"),
		}},
	})
}

// TestDefaultVersion: a call that names no version, as one translated from another format, gets the SDKs'.
func TestDefaultVersion(t *testing.T) {
	t.Parallel()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if got := r.Header.Get("Anthropic-Version"); got != "2023-06-01" || len(r.Header["Anthropic-Beta"]) != 0 {
			t.Errorf("got version %q, beta %q", got, r.Header["Anthropic-Beta"])
		}
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, `{}`)
	}))
	t.Cleanup(server.Close)
	resp, err := send(t, server.URL, &providers.Call{Endpoint: messages, Model: "m", Content: providers.Content{Body: []byte(`{}`)}})
	if err != nil {
		t.Fatal(err)
	}
	resp.Body.Close()
}

func send(t *testing.T, base string, call *providers.Call) (*http.Response, error) {
	t.Helper()
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	to := providers.Target{Channel: providers.Channel{Name: "a", BaseURL: base}, Key: "k", Model: "m"}
	return anthropic.NewRelayer(client).Relay(t.Context(), to, call)
}

// TestRelayErrorTypes: the types of the vendor's page "Errors" that say more than their status.
func TestRelayErrorTypes(t *testing.T) {
	t.Parallel()
	providertest.TestRefusals(t, providertest.RefusingVendor{
		New:      func(client *http.Client) providers.Relayer { return anthropic.NewRelayer(client) },
		Endpoint: messages,
		Unserved: []providers.Endpoint{
			{Format: providers.Anthropic, Operation: "no such"}, {Format: providers.OpenAI, Operation: providers.Messages},
		},
		Refusals: []providertest.RelayRefusal{
			{
				Name: "overloaded", Status: 529, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"},"request_id":"req_1"}`,
				Kind: providers.Overloaded, Blame: providers.BlameChannel, Code: "overloaded_error",
			},
			{
				Name: "overloaded in another dress", Status: 500, Body: `{"type":"error","error":{"type":"overloaded_error","message":"Overloaded"}}`,
				Kind: providers.Overloaded, Blame: providers.BlameChannel, Code: "overloaded_error",
			},
			{
				Name: "rate", Status: 429, Body: `{"type":"error","error":{"type":"rate_limit_error","message":"slow down"}}`,
				Kind: providers.RateLimited, Blame: providers.BlameKey, Code: "rate_limit_error",
			},
			{
				Name: "no money", Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"Your credit balance is too low to access the Anthropic API. Please go to Plans & Billing to upgrade or purchase credits."}}`,
				Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, Code: "invalid_request_error",
			},
			{
				// As users of the API report it. The vendor's page "Rate limits" describes the spend limit.
				Name: "spend limit", Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"You have reached your specified API usage limits. You will regain access on 2026-12-01 at 00:00 UTC."}}`,
				Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, Code: "invalid_request_error",
			},
			{
				// github.com/anthropics/claude-code/issues/9384
				Name: "disabled", Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"This organization has been disabled."}}`,
				Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused, Code: "invalid_request_error",
			},
			{
				Name: "wrong key", Status: 401, Body: `{"type":"error","error":{"type":"authentication_error","message":"invalid x-api-key"}}`,
				Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused, Code: "authentication_error",
			},
			{
				Name: "rights", Status: 403, Body: `{"type":"error","error":{"type":"permission_error","message":"no"}}`,
				Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyForbidden, Code: "permission_error",
			},
			{
				Name: "billing", Status: 402, Body: `{"type":"error","error":{"type":"billing_error","message":"pay"}}`,
				Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, Code: "billing_error",
			},
			{
				Name: "model", Status: 404, Body: `{"type":"error","error":{"type":"not_found_error","message":"model: claude-9"}}`,
				Kind: providers.ModelNotFound, Code: "not_found_error",
			},
			{
				Name: "file", Status: 404, Body: `{"type":"error","error":{"type":"not_found_error","message":"File not found"}}`,
				Kind: providers.NotFound, Code: "not_found_error",
			},
			{
				Name: "field", Status: 400, Body: `{"type":"error","error":{"type":"invalid_request_error","message":"max_tokens: Field required"}}`,
				Kind: providers.Invalid, Code: "invalid_request_error",
			},
			{Name: "another shape", Status: 400, Body: `{"error":"no"}`, Kind: providers.Invalid},
			{Name: "no JSON", Status: 502, Body: `<html>`, Kind: providers.Upstream, Blame: providers.BlameChannel},
		},
	})
}

// TestUsage: what the answers of the vendor count, streamed or not, comes to the same.
func TestUsage(t *testing.T) {
	t.Parallel()
	want := providers.Usage{Input: 2111, Cached: 2000, Output: 5}
	for name, contentType := range map[string]string{"messages.json": "application/json", "messages.sse": "text/event-stream"} {
		answer := fixture(t, name)
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, answer)
		}))
		t.Cleanup(server.Close)
		client := upstream.NewClient(nil)
		t.Cleanup(client.CloseIdleConnections)
		catalog := providers.Catalog{"anthropic": {
			Name: "anthropic", Relay: anthropic.NewRelayer(client), Endpoints: anthropic.Endpoints(), Usage: anthropic.Usage(),
		}}
		router := router.New(catalog, []providers.Channel{{
			Name: "a", Vendor: "anthropic", BaseURL: server.URL, Keys: []providers.Secret{"k"}, Models: map[string]string{"m": ""},
			Groups: []string{"g"},
		}}, nil)
		got, err := relay.New(router, catalog, nil).Do(t.Context(), "g", &providers.Call{
			Endpoint: messages, Model: "m", Stream: contentType == "text/event-stream", Content: providers.Content{Body: []byte(`{}`)},
		})
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(got.Body)
		got.Body.Close()
		if usage, counted := got.Usage(); err != nil || string(body) != answer || !counted || usage != want {
			t.Errorf("%s: got usage %+v, %v, want %+v", name, usage, err, want)
		}
	}
}

func TestCheckBaseURL(t *testing.T) {
	t.Parallel()
	for address, good := range map[string]bool{
		"https://api.example.test": true, "https://example.test/anthropic/": true, "https://api.example.test/v1": false,
		"https://api.example.test/v1/": false, "https://api.example.test/v1/messages": false,
	} {
		base, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := anthropic.CheckBaseURL(base); (err == nil) != good {
			t.Errorf("%s: got %v, want good %v", address, err, good)
		}
	}
}
