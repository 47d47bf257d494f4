package openai_test

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
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
	for _, tc := range []struct {
		name, body string
		status     int
		kind       providers.Kind
		blame      providers.Blame
		key        providers.KeyTrouble
		code       string
		param      string
	}{
		{
			name: "quota", status: 429, body: `{"error":{"message":"You exceeded your current quota","type":"insufficient_quota","param":null,"code":"insufficient_quota"}}`,
			kind: providers.Upstream, blame: providers.BlameKey, key: providers.KeyExhausted, code: "insufficient_quota",
		},
		{
			// github.com/BerriAI/litellm/issues/2743
			name: "not active", status: 429, body: `{"error":{"message":"Your account is not active, please check your billing details on our website.","type":"billing_not_active","param":null,"code":"billing_not_active"}}`,
			kind: providers.Upstream, blame: providers.BlameKey, key: providers.KeyExhausted, code: "billing_not_active",
		},
		{
			name: "hard limit", status: 400, body: `{"error":{"message":"Billing hard limit has been reached","type":"invalid_request_error","param":null,"code":"billing_hard_limit_reached"}}`,
			kind: providers.Upstream, blame: providers.BlameKey, key: providers.KeyExhausted, code: "billing_hard_limit_reached",
		},
		{
			name: "wrong key", status: 401, body: `{"error":{"message":"Incorrect API key provided","type":"invalid_request_error","param":null,"code":"invalid_api_key"}}`,
			kind: providers.Upstream, blame: providers.BlameKey, key: providers.KeyRefused, code: "invalid_api_key",
		},
		{
			name: "deactivated", status: 401, body: `{"error":{"message":"The account has been deactivated","type":"invalid_request_error","param":null,"code":"account_deactivated"}}`,
			kind: providers.Upstream, blame: providers.BlameKey, key: providers.KeyRefused, code: "account_deactivated",
		},
		{
			name: "no money at an imitator", status: 402, body: `{"error":{"message":"Insufficient Balance","type":"unknown_error","param":null,"code":"invalid_request_error"}}`,
			kind: providers.Upstream, blame: providers.BlameKey, key: providers.KeyExhausted, code: "invalid_request_error",
		},
		{
			name: "rate", status: 429, body: `{"error":{"message":"Rate limit reached","type":"requests","param":null,"code":"rate_limit_exceeded"}}`,
			kind: providers.RateLimited, blame: providers.BlameKey, code: "rate_limit_exceeded",
		},
		{
			name: "model", status: 404, body: `{"error":{"message":"The model does not exist","type":"invalid_request_error","param":null,"code":"model_not_found"}}`,
			kind: providers.ModelNotFound, code: "model_not_found",
		},
		{
			name: "field", status: 400, body: `{"error":{"message":"too many tokens","type":"invalid_request_error","param":"messages","code":"context_length_exceeded"}}`,
			kind: providers.Invalid, code: "context_length_exceeded", param: "messages",
		},
		{
			name: "an imitator's number", status: 400, body: `{"error":{"message":"no","type":"BadRequestError","param":null,"code":400}}`,
			kind: providers.Invalid, code: "BadRequestError",
		},
		{name: "another shape", status: 400, body: `{"error":"no"}`, kind: providers.Invalid},
		{name: "no JSON", status: 500, body: `<html>`, kind: providers.Upstream, blame: providers.BlameChannel},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Retry-After-Ms", "1500")
				w.WriteHeader(tc.status)
				_, _ = io.WriteString(w, tc.body)
			}))
			t.Cleanup(server.Close)
			client := upstream.NewClient(nil)
			t.Cleanup(client.CloseIdleConnections)
			to := providers.Target{Channel: providers.Channel{Name: "a", BaseURL: server.URL}, Key: "k", Model: "m"}
			resp, err := openai.NewRelayer(client).Relay(t.Context(), to, providers.Call{
				Endpoint: providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}, Model: "m", Body: []byte(`{}`),
			})
			if err == nil {
				resp.Body.Close()
			}
			var fault *providers.Fault
			if !errors.As(err, &fault) {
				t.Fatalf("got %v, want a fault", err)
			}
			if fault.Kind != tc.kind || fault.Blame != tc.blame || fault.Key != tc.key || fault.Code != tc.code || fault.Param != tc.param {
				t.Errorf("got %s, blame %d, key %d, code %q, param %q", fault.Kind, fault.Blame, fault.Key, fault.Code, fault.Param)
			}
			if fault.RetryAfter != 1500*time.Millisecond || string(fault.Upstream.Body) != tc.body || fault.Upstream.Format != providers.OpenAI {
				t.Errorf("got RetryAfter %s, reply %+v", fault.RetryAfter, fault.Upstream)
			}
		})
	}
}

func TestRelayUnservedOperation(t *testing.T) {
	t.Parallel()
	for _, endpoint := range []providers.Endpoint{
		{Format: providers.OpenAI, Operation: "no such"}, {Format: providers.Anthropic, Operation: providers.Chat},
	} {
		resp, err := openai.NewRelayer(http.DefaultClient).Relay(t.Context(), providers.Target{}, providers.Call{Endpoint: endpoint})
		if err == nil {
			resp.Body.Close()
		}
		if fault := providers.AsFault(err); fault == nil || fault.Kind != providers.Internal {
			t.Errorf("%s: got %v, want an internal fault", endpoint, err)
		}
	}
}

func TestRelayBadAddress(t *testing.T) {
	t.Parallel()
	to := providers.Target{Channel: providers.Channel{BaseURL: "http://bad address\x7f"}, Key: "k"}
	resp, err := openai.NewRelayer(http.DefaultClient).Relay(t.Context(), to, providers.Call{
		Endpoint: providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat},
	})
	if err == nil {
		resp.Body.Close()
	}
	if fault := providers.AsFault(err); fault == nil || fault.Blame != providers.BlameChannel || fault.Accepted != providers.NotAccepted {
		t.Errorf("got %v, want a fault of the channel", err)
	}
}
