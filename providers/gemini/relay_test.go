package gemini_test

import (
	"errors"
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

// TestAddress: the model and how the answer shall come stand in the address.
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
		resp, err := gemini.NewRelayer(client).Relay(t.Context(), to, providers.Call{
			Endpoint: tc.endpoint, Stream: tc.stream, Model: tc.model, Body: []byte(`{}`),
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

func send(t *testing.T, base string, call providers.Call) (*http.Response, error) {
	t.Helper()
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	to := providers.Target{Channel: providers.Channel{Name: "a", BaseURL: base}, Key: "k", Model: "m"}
	return gemini.NewRelayer(client).Relay(t.Context(), to, call)
}

// TestRelayErrors: the words of google.rpc.Status that say more than the HTTP status.
func TestRelayErrors(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, body string
		status     int
		kind       providers.Kind
		blame      providers.Blame
		key        providers.KeyTrouble
		code       string
		wait       time.Duration
	}{
		{
			name: "wrong key", status: 400, body: `{"error":{"code":400,"message":"API key not valid. Please pass a valid API key.","status":"INVALID_ARGUMENT","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"API_KEY_INVALID","domain":"googleapis.com"}]}}`,
			kind: providers.Upstream, blame: providers.BlameKey, key: providers.KeyRefused, code: "API_KEY_INVALID",
		},
		{
			name: "wrong key of a stream", status: 400, body: `[{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}]`,
			kind: providers.Upstream, blame: providers.BlameKey, key: providers.KeyRefused, code: "API_KEY_INVALID",
		},
		{
			name: "country", status: 400, body: `{"error":{"code":400,"message":"User location is not supported for the API use.","status":"FAILED_PRECONDITION"}}`,
			kind: providers.Upstream, blame: providers.BlameKey, key: providers.KeyRefused, code: "FAILED_PRECONDITION",
		},
		{
			name: "rate", status: 429, body: `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"34s"}]}}`,
			kind: providers.RateLimited, blame: providers.BlameKey, code: "RESOURCE_EXHAUSTED", wait: 34 * time.Second,
		},
		{
			// github.com/google-gemini/gemini-cli/issues/8437, shortened
			name: "minute's quota", status: 429, body: `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaMetric":"generativelanguage.googleapis.com/generate_content_free_tier_requests","quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier","quotaDimensions":{"location":"global","model":"gemini-2.5-flash"}}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12s"}]}}`,
			kind: providers.RateLimited, blame: providers.BlameKey, code: "RESOURCE_EXHAUSTED", wait: 12 * time.Second,
		},
		{
			name: "day's quota", status: 429, body: `{"error":{"code":429,"message":"You exceeded your current quota","status":"RESOURCE_EXHAUSTED","details":[{"@type":"type.googleapis.com/google.rpc.QuotaFailure","violations":[{"quotaId":"GenerateRequestsPerMinutePerProjectPerModel-FreeTier"},{"quotaId":"GenerateRequestsPerDayPerProjectPerModel-FreeTier"}]},{"@type":"type.googleapis.com/google.rpc.RetryInfo","retryDelay":"12s"}]}}`,
			kind: providers.RateLimited, blame: providers.BlameKey, key: providers.KeyExhausted, code: "RESOURCE_EXHAUSTED", wait: 12 * time.Second,
		},
		{
			name: "rights", status: 403, body: `{"error":{"code":403,"message":"Your API key doesn't have the required permissions.","status":"PERMISSION_DENIED"}}`,
			kind: providers.Upstream, blame: providers.BlameKey, key: providers.KeyForbidden, code: "PERMISSION_DENIED",
		},
		{
			// The reason is of google.api.ErrorReason.
			name: "no billing", status: 403, body: `{"error":{"code":403,"message":"no","status":"PERMISSION_DENIED","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"BILLING_DISABLED","domain":"googleapis.com"}]}}`,
			kind: providers.Upstream, blame: providers.BlameKey, key: providers.KeyExhausted, code: "BILLING_DISABLED",
		},
		{
			name: "model", status: 404, body: `{"error":{"code":404,"message":"models/x is not found for API version v1beta","status":"NOT_FOUND"}}`,
			kind: providers.ModelNotFound, code: "NOT_FOUND",
		},
		{
			name: "cached content", status: 404, body: `{"error":{"code":404,"message":"CachedContent not found","status":"NOT_FOUND"}}`,
			kind: providers.NotFound, code: "NOT_FOUND",
		},
		{
			name: "field", status: 400, body: `{"error":{"code":400,"message":"Invalid JSON payload received.","status":"INVALID_ARGUMENT"}}`,
			kind: providers.Invalid, code: "INVALID_ARGUMENT",
		},
		{
			name: "overloaded", status: 503, body: `{"error":{"code":503,"message":"The model is overloaded.","status":"UNAVAILABLE"}}`,
			kind: providers.Overloaded, blame: providers.BlameChannel, code: "UNAVAILABLE",
		},
		{name: "an empty array", status: 400, body: `[]`, kind: providers.Invalid},
		{name: "another shape", status: 400, body: `{"error":"no"}`, kind: providers.Invalid},
		{name: "no JSON", status: 502, body: `<html>`, kind: providers.Upstream, blame: providers.BlameChannel},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			t.Cleanup(server.Close)
			resp, err := send(t, server.URL, providers.Call{Endpoint: generate, Model: "m", Body: []byte(`{}`)})
			if err == nil {
				resp.Body.Close()
			}
			var fault *providers.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v, want a fault", err)
			}
			if fault.Kind != tc.kind || fault.Blame != tc.blame || fault.Key != tc.key || fault.Code != tc.code || fault.RetryAfter != tc.wait {
				t.Errorf("got %s, blame %d, key %d, code %q, wait %s", fault.Kind, fault.Blame, fault.Key, fault.Code, fault.RetryAfter)
			}
			if string(fault.Upstream.Body) != tc.body || fault.Upstream.Format != providers.Gemini {
				t.Errorf("got reply %+v", fault.Upstream)
			}
		})
	}
}

func TestRelayUnserved(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []providers.Endpoint{
		{Format: providers.Gemini, Operation: "no such"}, {Format: providers.OpenAI, Operation: providers.GenerateContent},
	} {
		resp, err := send(t, "http://upstream.invalid", providers.Call{Endpoint: endpoint})
		if err == nil {
			resp.Body.Close()
		}
		if fault := providers.AsFault(err); fault == nil || fault.Kind != providers.Internal {
			t.Errorf("%s: got %v, want an internal fault", endpoint, err)
		}
	}
	resp, err := send(t, "http://bad address\x7f", providers.Call{Endpoint: generate})
	if err == nil {
		resp.Body.Close()
	}
	if fault := providers.AsFault(err); fault == nil || fault.Blame != providers.BlameChannel || fault.Accepted != providers.NotAccepted {
		t.Errorf("bad address: got %v, want a fault of the channel", err)
	}
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
			Name: "a", Vendor: "gemini", BaseURL: server.URL, Keys: []providers.Secret{"k"}, Models: map[string]string{"m": ""}, Groups: []string{"g"},
		}}, nil)
		got, err := relay.New(router, catalog, nil).Do(t.Context(), "g", providers.Call{
			Endpoint: endpoint, Model: "m", Stream: contentType == "text/event-stream", Body: []byte(`{}`),
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
		"https://api.example.test": true, "https://example.test/gemini/": true, "https://api.example.test/v1beta/": false, "https://api.example.test/v1": false,
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
