package relay_test

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/health"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
)

const (
	document = `{"id":"chatcmpl-1","object":"chat.completion","choices":[{"index":0,"message":{"role":"assistant","content":"Hello \"usage\":{\"prompt_tokens\":999}"}}],` +
		`"usage":{"prompt_tokens":1200,"completion_tokens":34,"total_tokens":1234,"prompt_tokens_details":{"cached_tokens":1000,"audio_tokens":0}}}`
	chunk1   = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"Hel"}}],"usage":null}` + "\n\n"
	chunk2   = `data: {"id":"c","object":"chat.completion.chunk","choices":[{"index":0,"delta":{"content":"lo"}}],"usage":null}` + "\n\n"
	counts   = `data: {"id":"c","object":"chat.completion.chunk","choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"total_tokens":9}}` + "\n\n"
	lastWord = "data: [DONE]\n\n"
)

func chatCall(change ...func(*providers.Call)) *providers.Call {
	call := &providers.Call{
		Endpoint: providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}, Model: "m",
		Content: providers.Content{
			ContentType: "application/json",
			Body:        []byte(`{"model":"m","messages":[{"role":"user","content":"my private prompt"}]}`),
		},
	}
	for _, f := range change {
		f(call)
	}
	return call
}

func streamed(c *providers.Call) { c.Stream = true }

func hidden(c *providers.Call) { c.HideUsage = true }

// bench is a relay over fake upstreams.
type bench struct {
	*relay.Relay
	router *router.Router
	log    *syncBuffer
}

type syncBuffer struct {
	mu sync.Mutex
	bytes.Buffer
}

func (b *syncBuffer) Write(p []byte) (int, error) {
	b.mu.Lock()
	defer b.mu.Unlock()
	return b.Buffer.Write(p)
}

// lines decodes the log.
func (b *syncBuffer) lines(t *testing.T) []map[string]any {
	t.Helper()
	b.mu.Lock()
	defer b.mu.Unlock()
	var lines []map[string]any
	for line := range strings.Lines(b.String()) {
		var attrs map[string]any
		if err := json.Unmarshal([]byte(line), &attrs); err != nil {
			t.Fatal(err)
		}
		lines = append(lines, attrs)
	}
	return lines
}

// newBench makes channels of one upstream each, the first of the highest priority.
func newBench(tb testing.TB, opts *relay.Options, upstreams ...http.HandlerFunc) bench {
	tb.Helper()
	var channels []providers.Channel
	for i, upstream := range upstreams {
		base := "http://127.0.0.1:0"
		if upstream != nil {
			server := httptest.NewServer(upstream)
			tb.Cleanup(server.Close)
			base = server.URL
		}
		name := string(rune('a' + i))
		channels = append(channels, providers.Channel{
			Name: name, Vendor: "openai", BaseURL: base, Keys: []providers.Secret{providers.Secret("hush-" + name)},
			Models: map[string]string{"m": ""}, Groups: []string{"default"}, Priority: -i,
		})
	}
	return benchOf(tb, opts, channels)
}

func benchOf(tb testing.TB, opts *relay.Options, channels []providers.Channel) bench {
	tb.Helper()
	client := upstream.NewClient(nil)
	tb.Cleanup(client.CloseIdleConnections)
	vendors := vendors.New(client)
	router := router.New(vendors, channels, nil)
	log := new(syncBuffer)
	if opts == nil {
		opts = new(relay.Options)
	}
	opts.Log = slog.New(slog.NewJSONHandler(log, &slog.HandlerOptions{Level: slog.LevelDebug}))
	return bench{relay.New(router, vendors, opts), router, log}
}

// fault makes a call that must fail, and returns its fault.
func (b bench) fault(ctx context.Context, t *testing.T, call *providers.Call) *providers.Fault {
	t.Helper()
	answer, err := b.Do(ctx, "default", call)
	if err == nil {
		answer.Body.Close()
		t.Fatalf("got an answer from %s, want a fault", answer.Channel)
	}
	var fault *providers.Fault
	if !errors.As(err, &fault) {
		t.Fatalf("got error %v, want a *Fault", err)
	}
	return fault
}

// coolsDown reports whether the channel, its model or its key cools down.
func (b bench) coolsDown(channel string) bool { return coolsDown(b.router, channel) }

func coolsDown(routes *router.Router, channel string) bool {
	for _, state := range routes.Health.States() {
		if state.Name == channel {
			key := state.Keys[0]
			return state.State != health.StateClosed || len(state.Models) > 0 || key.State != health.StateClosed || len(key.Models) > 0
		}
	}
	return false
}

// failures is the number of failures that opens a circuit.
const failures = health.DefaultCooldownFailures

func answers(body string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("Set-Cookie", "a=b")
		w.Header().Set("X-Ratelimit-Limit-Requests", "60")
		_, _ = io.WriteString(w, body)
	}
}

// streams sends each part and flushes it.
func streams(parts ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream; charset=utf-8")
		for _, part := range parts {
			_, _ = io.WriteString(w, part)
			_ = http.NewResponseController(w).Flush()
		}
	}
}

func status(code int, header ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		for i := 0; i < len(header); i += 2 {
			w.Header().Set(header[i], header[i+1])
		}
		w.Header().Set("Content-Type", "application/json")
		w.WriteHeader(code)
		_, _ = io.WriteString(w, `{"error":{"message":"upstream words about hush-a","type":"t","code":"c"}}`)
	}
}
