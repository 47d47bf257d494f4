package api_test

import (
	"context"
	"io"
	"log/slog"
	"math"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"
	"time"

	sdktrace "go.opentelemetry.io/otel/sdk/trace"
	"go.opentelemetry.io/otel/sdk/trace/tracetest"
	"go.opentelemetry.io/otel/trace"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/testwait"
)

func TestChatPassesThrough(t *testing.T) {
	t.Parallel()
	const answer = `{"id":"x","n":1.50,"usage":{"prompt_tokens":11,"completion_tokens":7}}`
	var seen providers.Call
	var payload string
	g := newGateway(t, func(_ context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
		seen, payload = *call, sent(t, to, call)
		resp := upstreamAnswer("application/json", answer)
		resp.Header.Set("Content-Length", strconv.Itoa(len(answer)))
		resp.Header.Set("Openai-Organization", "the operator's")
		return resp, nil
	}, nil)
	const body = "{ \"x\": 1.00, \"model\" : \"fast\", \"messages\":[ ], \"temperature\": 1e-1, \"unknown\": {\"a\":[1, 2]}}"
	rec := g.do(t, request("POST", "/v1/chat/completions", body, "Accept", "application/json", "OpenAI-Beta", "b", "Cookie", "c",
		"X-Request-Id", "my-id"))
	if rec.Code != 200 || rec.Body.String() != answer {
		t.Errorf("got %d %s, want the upstream's bytes", rec.Code, rec.Body)
	}
	if want := strings.Replace(body, `"fast"`, `"gpt-4o-mini"`, 1); payload != want {
		t.Errorf("sent %s, want %s", payload, want)
	}
	if seen.RequestID == "" || seen.RequestID == "my-id" || rec.Header().Get("X-Request-Id") != "my-id" || seen.Model != "fast" ||
		seen.Stream || seen.ContentType != "application/json" || seen.Endpoint != chat {
		t.Errorf("got call %+v", seen)
	}
	if len(seen.Header) != 1 || seen.Header.Get("OpenAI-Beta") != "b" {
		t.Errorf("got header %v, want what may travel", seen.Header)
	}
	for name, want := range map[string]string{
		"Content-Type": "application/json", "Content-Length": strconv.Itoa(len(answer)), "Set-Cookie": "", "Openai-Organization": "",
	} {
		if got := rec.Header().Get(name); got != want {
			t.Errorf("%s: got %q, want %q", name, got, want)
		}
	}
	want := ledger.Entry{Token: "good", Model: "fast", Channel: "main", Requests: 1, InputTokens: 11, OutputTokens: 7}
	if len(g.ledger.entries) != 1 || g.ledger.entries[0] != want {
		t.Errorf("got ledger %+v, want %+v", g.ledger.entries, want)
	}
}

func TestChatFaults(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(_ context.Context, _ providers.Target, call *providers.Call) (*http.Response, error) {
		fault := &providers.Fault{Kind: providers.Upstream, Message: "The upstream failed."}
		if strings.Contains(string(call.Body), "their 400") {
			fault = &providers.Fault{Kind: providers.Invalid, Message: "ours", Upstream: &providers.Reply{
				Status: 400, Format: providers.OpenAI,
				Body: []byte(`{"error":{"message":"theirs","type":"t","param":null,"code":"c"}}`),
			}}
		}
		return nil, fault
	}, nil)
	for _, test := range []struct {
		name, key, body string
		status          int
		code, param     string
	}{
		{"bad field", goodKey, `{"model":"gpt-4o","messages":[],"n":"2"}`, 400, "invalid_request", "n"},
		{"bad enum", goodKey, `{"model":"gpt-4o","messages":[],"reasoning_effort":"x"}`, 400, "invalid_request", "reasoning_effort"},
		{"bad enum of an unknown model", goodKey, `{"model":"gpt-9","messages":[],"reasoning_effort":"x"}`, 404, "model_not_found", "model"},
		{"bad JSON", goodKey, `{`, 400, "invalid_request", ""},
		{"empty model", goodKey, `{"model":"","messages":[]}`, 400, "invalid_request", "model"},
		{"long model", goodKey, `{"model":"` + strings.Repeat("m", 257) + `","messages":[]}`, 400, "invalid_request", "model"},
		{"unknown model", goodKey, `{"model":"gpt-9","messages":[]}`, 404, "model_not_found", "model"},
		{"model the token may not see", "sk-few", `{"model":"fast","messages":[]}`, 404, "model_not_found", "model"},
		{"upstream failed", goodKey, smallChat, 502, "upstream_error", ""},
		{"upstream's own 400", goodKey, `{"model":"sora-2","messages":[],"user":"their 400"}`, 400, "c", ""},
	} {
		// After a failure the channel cools down, so each case has its own.
		rec := g.do(t, request("POST", "/v1/chat/completions", test.body, "Authorization", "Bearer "+test.key))
		code, param := fault(t, rec)
		if rec.Code != test.status || code != test.code || param != test.param {
			t.Errorf("%s: got %d %q %q (%s), want %d %q %q", test.name, rec.Code, code, param, rec.Body, test.status, test.code, test.param)
		}
	}
	for _, entry := range g.ledger.entries {
		if !entry.Failed || entry.Requests != 1 || entry.Model == "gpt-9" {
			t.Errorf("got ledger entry %+v, want failed calls of models there are", entry)
		}
	}
	if len(g.ledger.entries) != 2 {
		t.Errorf("got %d ledger entries, want those of the upstream's two refusals", len(g.ledger.entries))
	}
}

// TestOpenValues: an enum value that the contract does not list reaches a channel with open_values.
func TestOpenValues(t *testing.T) {
	t.Parallel()
	var seen providers.Call
	g := newGateway(t, func(_ context.Context, _ providers.Target, call *providers.Call) (*http.Response, error) {
		seen = *call
		return upstreamAnswer("application/json", `{}`), nil
	}, nil)
	rec := g.do(t, request("POST", "/v1/chat/completions", `{"model":"open","messages":[],"reasoning_effort":"extreme"}`))
	if rec.Code != 200 || !seen.OpenValues {
		t.Errorf("got %d %s, open values %v", rec.Code, rec.Body, seen.OpenValues)
	}
}

// TestStreamAsksForUsage: the gateway always asks, by the smallest edit, and the client sees the report only where it
// asked itself.
func TestStreamAsksForUsage(t *testing.T) {
	t.Parallel()
	type asked struct {
		payload string
		hide    bool
	}
	for body, want := range map[string]asked{
		`{"model":"gpt-4o","messages":[]}`:                {`{"model":"gpt-4o","messages":[]}`, false},
		`{"model":"gpt-4o","messages":[],"stream":false}`: {`{"model":"gpt-4o","messages":[],"stream":false}`, false},
		` { "model":"gpt-4o","messages":[],"stream":true}`: {
			` {"stream_options":{"include_usage":true}, "model":"gpt-4o","messages":[],"stream":true}`, true,
		},
		`{"model":"fast","messages":[],"stream":true,"stream_options":null}`: {
			`{"model":"gpt-4o-mini","messages":[],"stream":true,"stream_options":{"include_usage":true}}`, true,
		},
		`{"model":"gpt-4o","messages":[],"stream":true,"stream_options":{}}`: {
			`{"model":"gpt-4o","messages":[],"stream":true,"stream_options":{"include_usage":true}}`, true,
		},
		`{"stream_options": { "x" : {"include_usage":true} },"model":"gpt-4o","messages":[],"stream":true}`: {
			`{"stream_options": {"include_usage":true, "x" : {"include_usage":true} },"model":"gpt-4o","messages":[],"stream":true}`, true,
		},
		`{"model":"gpt-4o","messages":[],"stream":true,"stream_options":{"include_usage": false,"y":1}}`: {
			`{"model":"gpt-4o","messages":[],"stream":true,"stream_options":{"include_usage": true,"y":1}}`, true,
		},
		`{"model":"gpt-4o","messages":[],"stream":true,"stream_options":{"include_usage":null}}`: {
			`{"model":"gpt-4o","messages":[],"stream":true,"stream_options":{"include_usage":true}}`, true,
		},
		`{"model":"gpt-4o","messages":[],"stream":true,"stream_options":{"include_usage":true}}`: {
			`{"model":"gpt-4o","messages":[],"stream":true,"stream_options":{"include_usage":true}}`, false,
		},
	} {
		var got asked
		g := newGateway(t, func(_ context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
			got = asked{sent(t, to, call), call.HideUsage}
			return upstreamAnswer("text/event-stream", "data: [DONE]\n\n"), nil
		}, nil)
		if rec := g.do(t, request("POST", "/v1/chat/completions", body)); rec.Code != 200 {
			t.Fatalf("%s: got %d %s", body, rec.Code, rec.Body)
		}
		if got != want {
			t.Errorf("%s: got %v, want %v", body, got, want)
		}
	}
}

const (
	streamBody = `{"model":"gpt-4o","messages":[],"stream":true}`
	chunk      = "data: {\"choices\":[{\"delta\":{\"content\":\"a\"}}]}\n\n"
	usageChunk = "data: {\"choices\":[],\"usage\":{\"prompt_tokens\":5,\"completion_tokens\":2}}\n\n"
	done       = "data: [DONE]\n\n"
)

// TestStreamComesAsItCame: each event reaches the client before the upstream sends the next.
func TestStreamComesAsItCame(t *testing.T) {
	t.Parallel()
	read, write := io.Pipe()
	g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		resp := upstreamAnswer("text/event-stream", "")
		resp.Body = read
		return resp, nil
	}, nil)
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	written := make(chan struct{})
	go func() {
		defer close(written)
		_, _ = io.WriteString(write, chunk)
	}()
	req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/chat/completions", strings.NewReader(streamBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodKey)
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	<-written
	for range 3 {
		got := make([]byte, len(chunk))
		if _, err := io.ReadFull(resp.Body, got); err != nil || string(got) != chunk {
			t.Fatalf("got %q, %v, want the event before the next is sent", got, err)
		}
		if _, err := io.WriteString(write, chunk); err != nil {
			t.Fatal(err)
		}
	}
	go func() {
		_, _ = io.WriteString(write, usageChunk+done)
		_ = write.Close()
	}()
	rest, err := io.ReadAll(resp.Body)
	if err != nil || string(rest) != chunk+done {
		t.Errorf("got %q, %v, want no usage that was not asked for", rest, err)
	}
	if got := resp.Header.Get("Content-Type"); got != "text/event-stream" {
		t.Errorf("got Content-Type %q", got)
	}
	testwait.Eventually(t, "the ledger has it", patience, func() bool {
		g.ledger.mu.Lock()
		defer g.ledger.mu.Unlock()
		return len(g.ledger.entries) == 1 && g.ledger.entries[0].InputTokens == 5 && g.ledger.entries[0].OutputTokens == 2
	})
}

// TestClientGone: the upstream's request ends when the client leaves.
func TestClientGone(t *testing.T) {
	t.Parallel()
	upstreamEnded := make(chan struct{})
	g := newGateway(t, func(ctx context.Context, _ providers.Target, _ *providers.Call) (*http.Response, error) {
		read, write := io.Pipe()
		go func() {
			_, _ = io.WriteString(write, chunk)
			<-ctx.Done()
			close(upstreamEnded)
			_ = write.CloseWithError(ctx.Err())
		}()
		resp := upstreamAnswer("text/event-stream", "")
		resp.Body = read
		return resp, nil
	}, nil)
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	ctx, cancel := context.WithCancel(t.Context())
	req, err := http.NewRequestWithContext(ctx, "POST", server.URL+"/v1/chat/completions", strings.NewReader(streamBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodKey)
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	if _, err := io.ReadFull(resp.Body, make([]byte, len(chunk))); err != nil {
		t.Fatal(err)
	}
	cancel()
	testwait.Eventually(t, "the upstream's call ends", patience, func() bool { return closed(upstreamEnded) })
	testwait.Eventually(t, "the log has the request", patience, func() bool { return strings.Contains(g.log.String(), `"status":499`) })
}

// TestSlowClient: if a client stops reading, the upstream's connection is closed after the write timeout.
func TestSlowClient(t *testing.T) {
	t.Parallel()
	upstreamEnded := make(chan struct{})
	g := newGateway(t, func(ctx context.Context, _ providers.Target, _ *providers.Call) (*http.Response, error) {
		context.AfterFunc(ctx, func() { close(upstreamEnded) })
		resp := upstreamAnswer("text/event-stream", "")
		resp.Body = io.NopCloser(endless{})
		return resp, nil
	}, func(_ *gateway, o *api.Options) { o.WriteTimeout = 200 * time.Millisecond })
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/chat/completions", strings.NewReader(streamBody))
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodKey)
	resp, err := server.Client().Do(req)
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	testwait.Eventually(t, "the upstream's call ends", patience, func() bool { return closed(upstreamEnded) })
}

type endless struct{}

func (endless) Read(p []byte) (int, error) {
	for i := range p {
		p[i] = '\n'
	}
	return len(p), nil
}

// TestWriteDeadlines: a write deadline that an answer leaves behind is lifted before the connection's next request.
func TestWriteDeadlines(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	w := &deadlines{ResponseRecorder: httptest.NewRecorder()}
	g.Handler().ServeHTTP(w, request("POST", "/v1/chat/completions", smallChat).WithContext(t.Context()))
	if w.Code != 200 || len(w.set) < 2 || !w.set[0].IsZero() || w.set[1].IsZero() {
		t.Errorf("got %d and deadlines %v, want none and then one", w.Code, w.set)
	}
}

type deadlines struct {
	*httptest.ResponseRecorder
	set []time.Time
}

func (d *deadlines) SetWriteDeadline(deadline time.Time) error {
	d.set = append(d.set, deadline)
	return nil
}

func closed(done <-chan struct{}) bool {
	select {
	case <-done:
		return true
	default:
		return false
	}
}

func BenchmarkChat(b *testing.B) {
	for name, size := range map[string]int{"1KB": 180 * 5, "20MB": 20 << 20} {
		b.Run(name, func(b *testing.B) { benchmarkChat(b, size, nil) })
	}
	b.Run("1KB traced", func(b *testing.B) {
		provider := sdktrace.NewTracerProvider(sdktrace.WithBatcher(tracetest.NewNoopExporter()))
		b.Cleanup(func() { _ = provider.Shutdown(context.WithoutCancel(b.Context())) })
		benchmarkChat(b, 180*5, provider.Tracer("test"))
	})
}

// chatAllocations bounds the allocations of one short chat, including those of the test's own request and answer.
const chatAllocations = 64

// TestChatAllocates: a short chat allocates no more than the committed bound.
func TestChatAllocates(t *testing.T) { //nolint:paralleltest // it counts what the process allocates
	if raceDetector {
		t.Skip("the race detector lets pools forget")
	}
	chat, got := oneChat(t, 180*5, nil), math.Inf(1)
	for range 10 { // the least: a garbage collection empties the pools, and other goroutines allocate too
		got = min(got, testing.AllocsPerRun(50, chat))
	}
	if got > chatAllocations {
		t.Errorf("got %v allocations of a chat, want at most %d", got, chatAllocations)
	}
}

func benchmarkChat(b *testing.B, size int, tracer trace.Tracer) {
	b.Helper()
	chat := oneChat(b, size, tracer)
	b.ReportAllocs()
	for b.Loop() {
		chat()
	}
}

// oneChat makes what does a chat of so many bytes.
func oneChat(tb testing.TB, size int, tracer trace.Tracer) func() {
	tb.Helper()
	answer := `{"id":"x","choices":[{"message":{"content":"` + strings.Repeat("word ", 180) +
		`"}}],"usage":{"prompt_tokens":11,"completion_tokens":7}}`
	length := strconv.Itoa(len(answer))
	g := newGateway(tb, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		resp := upstreamAnswer("application/json", answer)
		resp.Header.Set("Content-Length", length)
		return resp, nil
	}, func(_ *gateway, o *api.Options) {
		o.Ledger, o.Limits, o.Log = nothing{}, nothing{}, slog.New(slog.NewJSONHandler(nothing{}, nil))
		o.Tracer = tracer
	})
	body := `{"model":"fast","messages":[{"role":"user","content":"` + strings.Repeat("word ", size/5) + `"}]}`
	return func() {
		req := request("POST", "/v1/chat/completions", body)
		rec := &discard{header: make(http.Header, 8)}
		g.Handler().ServeHTTP(rec, req)
		if rec.status != 200 || rec.n != len(answer) {
			tb.Fatal(rec.status, rec.n)
		}
	}
}

// nothing takes every call and keeps none.
type nothing struct{}

func (nothing) Resume(storage.Allowance, int) limits.Grant { return limits.Grant{Allowed: true} }

func (nothing) Record(ledger.Entry) {}

func (nothing) Write(p []byte) (int, error) { return len(p), nil }

func (nothing) Admit(context.Context, storage.Allowance, limits.Cost) (limits.Grant, error) {
	return limits.Grant{Allowed: true}, nil
}

type discard struct {
	header http.Header
	status int
	n      int
}

func (d *discard) Header() http.Header    { return d.header }
func (d *discard) WriteHeader(status int) { d.status = status }

func (*discard) Flush()                           {}
func (*discard) SetReadDeadline(time.Time) error  { return nil }
func (*discard) SetWriteDeadline(time.Time) error { return nil }
func (d *discard) Write(p []byte) (int, error)    { d.n += len(p); return len(p), nil }
