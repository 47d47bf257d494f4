package gemini_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"os"
	"path/filepath"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/gemini"
	"modelrelay/providers/providertest"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
)

var (
	generate    = providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent}
	stream      = providers.Endpoint{Format: providers.Gemini, Operation: providers.StreamContent}
	countTokens = providers.Endpoint{Format: providers.Gemini, Operation: providers.CountTokens}
	embed       = providers.Endpoint{Format: providers.Gemini, Operation: providers.Embeddings}
	interact    = providers.Endpoint{Format: providers.Gemini, Operation: providers.Interactions}
	batchEmbed  = providers.Endpoint{Format: providers.Gemini, Operation: providers.BatchEmbeddings}
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
	const contents = `{"contents":[{"role":"user","parts":[{"text":"hi"}]}],"generationConfig":{"temperature":1.0}}`
	const content = `{"content":{"parts":[{"text":"hi"}]},"outputDimensionality":2}`
	providertest.TestRelayer(t, providertest.RelaySubject{
		New:     func(client *http.Client) providers.Relayer { return gemini.NewRelayer(client) },
		Channel: providers.Channel{Vendor: "gemini"},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			return req.Header.Get("X-Goog-Api-Key") == key.Reveal() && !req.URL.Query().Has("key")
		},
		Cases: []providertest.RelayCase{{
			Endpoint: generate, Path: "/v1beta/models/up:generateContent", Body: contents,
			AnswerType: "application/json", Answer: fixture(t, "generate.json"),
		}, {
			Endpoint: stream, Path: "/v1beta/models/up:streamGenerateContent", Body: contents,
			AnswerType: "application/json", Answer: fixture(t, "stream.json"), Stream: fixture(t, "stream.sse"),
		}, {
			Endpoint: countTokens, Path: "/v1beta/models/up:countTokens", Body: contents,
			AnswerType: "application/json", Answer: fixture(t, "count_tokens.json"),
		}, {
			Endpoint: embed, Path: "/v1beta/models/up:embedContent", Body: content,
			AnswerType: "application/json", Answer: fixture(t, "embed.json"),
		}, {
			Endpoint: batchEmbed, Path: "/v1beta/models/up:batchEmbedContents", Body: `{"requests":[` + content + `]}`,
			AnswerType: "application/json", Answer: fixture(t, "batch_embed.json"),
		}, {
			Endpoint: interact, Path: "/v1beta/interactions", Body: `{"model":"up","input":"hi"}`,
			AnswerType: "application/json", Answer: fixture(t, "interaction.json"), Stream: fixture(t, "interaction.sse"),
		}},
	})
}

// TestAddress: the path contains the model and the method. A stream has the query alt=sse.
func TestAddress(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		model    string
		endpoint providers.Endpoint
		stream   bool
		want     string // "" for a model that no upstream has
	}{
		{"m", generate, false, "/v1beta/models/m:generateContent"},
		{"models/m", generate, false, "/v1beta/models/m:generateContent"},
		{"tunedModels/m", generate, false, "/v1beta/tunedModels/m:generateContent"},
		{"org/m:70b", countTokens, false, "/v1beta/models/org/m:70b:countTokens"},
		{"m?key=x#y z%", embed, false, "/v1beta/models/m%3Fkey=x%23y%20z%25:embedContent"},
		{"m", stream, false, "/v1beta/models/m:streamGenerateContent"},
		{"m", stream, true, "/v1beta/models/m:streamGenerateContent?alt=sse"},
		{"m/../n", interact, true, "/v1beta/interactions"},
		{"../m", generate, false, ""},
		{"a/./m", generate, false, ""},
		{"a//m", generate, false, ""},
		{"", generate, false, ""},
	} {
		var got string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			got = r.RequestURI
			w.WriteHeader(http.StatusTeapot)
		}))
		client := upstream.NewClient(nil)
		to := providers.Target{Channel: providers.Channel{Name: "a", BaseURL: server.URL}, Key: "k", Model: tc.model}
		resp, err := gemini.NewRelayer(client).Relay(t.Context(), to, &providers.Call{
			Endpoint: tc.endpoint, Stream: tc.stream, Model: tc.model, Content: providers.Content{Body: []byte(`{}`)},
		})
		if err == nil {
			resp.Body.Close()
		}
		fault := providers.AsFault(err)
		if got != tc.want || tc.want == "" && fault.Kind != providers.ModelNotFound {
			t.Errorf("%q: got address %q and %v, want %q", tc.model, got, err, tc.want)
		}
		client.CloseIdleConnections()
		server.Close()
	}
}

// TestRelayErrors: the words of google.rpc.Status that say more than the HTTP status.
func TestRelayErrors(t *testing.T) {
	t.Parallel()
	providertest.TestRefusals(t, providertest.RefusingVendor{
		New:      func(client *http.Client) providers.Relayer { return gemini.NewRelayer(client) },
		Endpoint: generate,
		Unserved: []providers.Endpoint{
			{Format: providers.Gemini, Operation: "no such"}, {Format: providers.OpenAI, Operation: providers.GenerateContent},
		},
		Refusals: []providertest.RelayRefusal{
			{
				Name: "wrong key", Status: 400, Body: `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`,
				Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused, Code: "API_KEY_INVALID",
			},
			{
				Name: "wrong key of a stream", Status: 400,
				Body: `[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`,
				Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused, Code: "API_KEY_INVALID",
			},
			{
				Name: "country", Status: 400, Body: `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`,
				Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyRefused, Code: "FAILED_PRECONDITION",
			},
			{
				Name: "rate", Status: 429, Body: `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}`,
				Kind: providers.RateLimited, Blame: providers.BlameKey, Code: "RESOURCE_EXHAUSTED", Wait: 34 * time.Second,
			},
			{
				// github.com/google-gemini/gemini-cli/issues/8437, shortened
				Name: "minute's quota", Status: 429, Body: `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaDimensions":{"location":"global","model":"gemini-2.5-flash"}}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12s"}]}}`,
				Kind: providers.RateLimited, Blame: providers.BlameKey, Code: "RESOURCE_EXHAUSTED", Wait: 12 * time.Second,
			},
			{
				Name: "day's quota", Status: 429, Body: `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"},{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12s"}]}}`,
				Kind: providers.RateLimited, Blame: providers.BlameKey, Key: providers.KeyExhausted, Code: "RESOURCE_EXHAUSTED", Wait: 12 * time.Second,
			},
			{
				Name: "rights", Status: 403, Body: `{"error":{"code":403,"message":"Your API key doesn't have the required permissions.","status":"PERMISSION_DENIED"}}`,
				Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyForbidden, Code: "PERMISSION_DENIED",
			},
			{
				// The reason is of google.api.ErrorReason.
				Name: "no billing", Status: 403, Body: `{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"BILLING_DISABLED","domain":"googleapis.com"}]}}`,
				Kind: providers.Upstream, Blame: providers.BlameKey, Key: providers.KeyExhausted, Code: "BILLING_DISABLED",
			},
			{
				Name: "model", Status: 404, Body: `{"error":{"code":404,"message":"models/x is not found for API version v1beta","status":"NOT_FOUND"}}`,
				Kind: providers.ModelNotFound, Code: "NOT_FOUND",
			},
			{
				Name: "cached content", Status: 404, Body: `{"error":{"code":404,"message":"CachedContent not found","status":"NOT_FOUND"}}`,
				Kind: providers.NotFound, Code: "NOT_FOUND",
			},
			{
				Name: "field", Status: 400, Body: `{"error":{"code":400,"message":"Invalid JSON payload received.","status":"INVALID_ARGUMENT"}}`,
				Kind: providers.Invalid, Code: "INVALID_ARGUMENT",
			},
			{
				Name: "overloaded", Status: 503, Body: `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`,
				Kind: providers.Overloaded, Blame: providers.BlameChannel, Code: "UNAVAILABLE",
			},
			{Name: "an empty array", Status: 400, Body: `[]`, Kind: providers.Invalid},
			{Name: "another shape", Status: 400, Body: `{"error":"no"}`, Kind: providers.Invalid},
			{Name: "no JSON", Status: 502, Body: `<html>`, Kind: providers.Upstream, Blame: providers.BlameChannel},
		},
	})
}

// TestUsage: what the answers of the vendor count, streamed or not, comes to the same.
func TestUsage(t *testing.T) {
	t.Parallel()
	want := providers.Usage{Input: 2111, Cached: 2000, Output: 22}
	for name, contentType := range map[string]string{
		"generate.json": "application/json", "stream.json": "application/json", "stream.sse": "text/event-stream",
	} {
		answer, endpoint := fixture(t, name), stream
		if name == "generate.json" {
			endpoint = generate
		}
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Content-Type", contentType)
			_, _ = io.WriteString(w, answer)
		}))
		t.Cleanup(server.Close)
		client := upstream.NewClient(nil)
		t.Cleanup(client.CloseIdleConnections)
		catalog := providers.Catalog{"gemini": {
			Name: "gemini", Relay: gemini.NewRelayer(client), Endpoints: gemini.Endpoints(), Usage: gemini.Usage(),
		}}
		router := router.New(catalog, []providers.Channel{{
			Name: "a", Vendor: "gemini", BaseURL: server.URL, Keys: []providers.Secret{"k"}, Models: map[string]string{"m": ""},
			Groups: []string{"g"},
		}}, nil)
		got, err := relay.New(router, catalog, nil).Do(t.Context(), "g", &providers.Call{
			Endpoint: endpoint, Model: "m", Stream: contentType == "text/event-stream", Content: providers.Content{Body: []byte(`{}`)},
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
		"https://api.example.test": true, "https://example.test/gemini/": true, "https://api.example.test/v1beta/": false,
		"https://api.example.test/v1":  false,
		"https://api.example.test/v1/": false, "https://api.example.test/v1beta/models": false,
	} {
		base, err := url.Parse(address)
		if err != nil {
			t.Fatal(err)
		}
		if err := gemini.CheckBaseURL(base); (err == nil) != good {
			t.Errorf("%s: got %v, want good %v", address, err, good)
		}
	}
}
