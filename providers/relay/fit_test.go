package relay_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/translate"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
)

// heard is an upstream that records the bodies it receives.
type heard struct {
	mu     sync.Mutex
	bodies []string
}

func (h *heard) take(r *http.Request) string {
	raw, _ := io.ReadAll(r.Body)
	h.mu.Lock()
	defer h.mu.Unlock()
	h.bodies = append(h.bodies, string(raw))
	return string(raw)
}

// TestReasoningModels: a chat for a model that reasons goes out with the fields that the model takes, and the answer names what was
// changed.
func TestReasoningModels(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct{ model, body, want, changed string }{
		"length": {"gpt-5", `{"max_tokens":9,"messages":[]}`, `{"max_completion_tokens":9,"messages":[]}`, "max_tokens"},
		"both":   {"gpt-5", `{"max_tokens":9,"max_completion_tokens":8}`, `{"max_tokens":null,"max_completion_tokens":8}`, "max_tokens"},
		"sampling": {
			"o3", `{"temperature":0.2,"top_p": 0.9,"logit_bias":{"1":2},"presence_penalty":0}`,
			`{"temperature":null,"top_p": null,"logit_bias":null,"presence_penalty":0}`, "temperature, top_p, logit_bias",
		},
		"as it is": {
			"gpt-5", `{"temperature":1,"logprobs":false,"messages":[{"content":"\"max_tokens\""}]}`,
			`{"temperature":1,"logprobs":false,"messages":[{"content":"\"max_tokens\""}]}`, "",
		},
		"no reasoner": {"gpt-4o", `{"max_tokens":9,"temperature":0.2}`, `{"max_tokens":9,"temperature":0.2}`, ""},
		"imitator":    {"deepseek-r1", `{"max_tokens":9,"temperature":0.2}`, `{"max_tokens":9,"temperature":0.2}`, ""},
		"by trait":    {"my-deployment", `{"max_tokens":9}`, `{"max_completion_tokens":9}`, "max_tokens"},
	} {
		var got heard
		channel := providers.Channel{
			Name: "a", Vendor: "openai", BaseURL: serveBodies(t, &got), Keys: []providers.Secret{"k"}, Models: map[string]string{"m": tc.model},
			Groups:     []string{"default"},
			ModelFacts: providers.ModelFacts{Traits: map[string][]string{"my-": {"reasons"}}},
		}
		r := benchOf(t, nil, []providers.Channel{channel})
		answer, err := r.Do(t.Context(), "default", chatCall(func(c *providers.Call) { c.Body = []byte(tc.body) }))
		if err != nil {
			t.Fatal(err)
		}
		_ = answer.Body.Close()
		if got.bodies[0] != tc.want || strings.Join(answer.Header["X-Relay-Changed"], "") != tc.changed {
			t.Errorf("%s: sent %s, changed %v", name, got.bodies[0], answer.Header["X-Relay-Changed"])
		}
	}
}

func serveBodies(t *testing.T, to *heard) string {
	t.Helper()
	return serveWith(t, func(w http.ResponseWriter, r *http.Request) {
		to.take(r)
		w.Header().Set("Content-Type", "application/json")
		_, _ = io.WriteString(w, document)
	})
}

// TestRefusedUsageField: an upstream that refuses the field which asks for the counts of a stream is asked once more without it, and from
// then on is not sent the field. A client that sent the field itself gets the refusal.
func TestRefusedUsageField(t *testing.T) {
	t.Parallel()
	var got heard
	address := serveWith(t, func(w http.ResponseWriter, r *http.Request) {
		if strings.Contains(got.take(r), "stream_options") {
			w.WriteHeader(http.StatusBadRequest)
			_, _ = io.WriteString(w, `{"error":{"message":"Extra inputs are not permitted: stream_options","type":"invalid_request_error"}}`)
			return
		}
		w.Header().Set("Content-Type", "text/event-stream")
		_, _ = io.WriteString(w, chunk1+lastWord)
	})
	channel := providers.Channel{
		Name: "a", Vendor: "openai", BaseURL: address, Keys: []providers.Secret{"k"}, Models: map[string]string{"m": ""},
		Groups: []string{"default"}, Dialect: "chat",
	}
	channel.MaxCalls = 1
	r := relayTo(t, channel)
	do := func(call *providers.Call) error {
		answer, err := r.Do(t.Context(), "default", call)
		if err != nil {
			return err
		}
		defer func() { _ = answer.Body.Close() }()
		if text, err := io.ReadAll(answer.Body); err != nil || !strings.Contains(string(text), "Hel") {
			t.Errorf("got %s, %v", text, err)
		}
		return nil
	}
	asked := chatCall(streamed, func(c *providers.Call) { c.Body = []byte(`{"stream_options":{"include_usage":true},"model":"m"}`) })
	if fault := providers.AsFault(do(asked)); fault.Kind != providers.Invalid {
		t.Errorf("a client's own field: %+v", fault)
	}
	added := chatCall(streamed, hidden, func(c *providers.Call) {
		c.Body = []byte(`{"model":"m"}`)
		c.UsageEdit = providers.Edit{At: providers.Span{From: 1, To: 1}, Text: []byte(`"stream_options":{"include_usage":true},`)}
		c.Edits = []providers.Edit{c.UsageEdit}
	})
	translated := chatCall(streamed, func(c *providers.Call) {
		c.Endpoint, c.Body = messagesEndpoint, []byte(`{"model":"m","max_tokens":9,"stream":true,"messages":[{"role":"user","content":"x"}]}`)
	})
	for i, call := range []*providers.Call{added, added, translated} {
		if err := do(call); err != nil {
			t.Errorf("call %d: %v", i, err)
		}
	}
	if len(got.bodies) != 5 || got.bodies[2] != `{"model":"m"}` || got.bodies[3] != `{"model":"m"}` ||
		strings.Contains(got.bodies[4], "stream_options") {
		t.Errorf("sent %q", got.bodies)
	}
	// A translated call may be the first.
	got.bodies = nil
	channel.Name = "b"
	r = relayTo(t, channel)
	if err := do(translated); err != nil || len(got.bodies) != 2 || !strings.Contains(got.bodies[0], "stream_options") {
		t.Errorf("translated first: %v, sent %q", err, got.bodies)
	}
	channel.NoStreamUsage = true
	r, got.bodies = relayTo(t, channel), nil
	if err := do(added); err != nil || len(got.bodies) != 1 {
		t.Errorf("turned off: %v, sent %q", err, got.bodies)
	}
}

func serveWith(t *testing.T, handler http.HandlerFunc) string {
	t.Helper()
	server := httptest.NewServer(handler)
	t.Cleanup(server.Close)
	return server.URL
}

// relayTo is a relay with one channel, which translates.
func relayTo(t *testing.T, channel providers.Channel) *relay.Relay {
	t.Helper()
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	vendors := vendors.New(client)
	return relay.New(router.New(vendors, []providers.Channel{channel}, &router.Options{Reaches: translate.Reaches}), vendors, nil)
}
