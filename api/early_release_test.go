package api_test

import (
	"context"
	"io"
	"net/http"
	"net/http/httptest"
	"strconv"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/openai"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/storage/limits"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
)

// redisLimits are the real limits over a Redis of the test's own.
func redisLimits(t *testing.T) *limits.Limiter {
	t.Helper()
	limiter := limits.New(storagetest.Redis(t), nil)
	t.Cleanup(func() { _ = limiter.Close(context.WithoutCancel(t.Context())) })
	return limiter
}

// TestNextCallFindsItsPlaceFree: a client with one call at a time may send the next after the last byte of an answer,
// of a stream after its [DONE], and never gets a refusal for too many in flight.
func TestNextCallFindsItsPlaceFree(t *testing.T) {
	t.Parallel()
	// Longer than what the server keeps back until the handler has returned.
	answer := `{"text":"` + strings.Repeat("word ", 4<<10) + `","usage":{"prompt_tokens":1,"completion_tokens":1}}`
	limiter := redisLimits(t)
	g := newGateway(t, func(_ context.Context, _ providers.Target, call *providers.Call) (*http.Response, error) {
		if call.Stream {
			read, write := io.Pipe() // it stays open for a while after [DONE]
			go func() {
				_, _ = io.WriteString(write, chunk+done)
				<-t.Context().Done()
				_ = write.Close()
			}()
			resp := upstreamAnswer("text/event-stream", "")
			resp.Body = read
			return resp, nil
		}
		resp := upstreamAnswer("application/json", answer)
		if !strings.Contains(string(call.Body), "chunked") {
			resp.Header.Set("Content-Length", strconv.Itoa(len(answer)))
		}
		return resp, nil
	}, func(g *gateway, o *api.Options) {
		g.tokens[goodKey] = &tokens.Token{ID: "one", Name: "one", Group: "default", Limits: tokens.Limits{Concurrency: 1}}
		o.Limits = limiter
	})
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	for _, body := range []string{
		`{"model":"gpt-4o","messages":[]}`, `{"model":"gpt-4o","messages":[],"user":"chunked"}`, `{"model":"gpt-4o","messages":[],"stream":true}`,
	} {
		for range 50 {
			req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/chat/completions", strings.NewReader(body))
			if err != nil {
				t.Fatal(err)
			}
			req.Header.Set("Authorization", "Bearer "+goodKey)
			resp, err := server.Client().Do(req)
			if err != nil {
				t.Fatal(err)
			}
			last := answer
			if strings.Contains(body, "stream") {
				last = chunk + done
			}
			raw, err := io.ReadAll(io.LimitReader(resp.Body, int64(len(last)))) // exactly to the last byte
			if err != nil || resp.StatusCode != 200 || string(raw) != last {
				t.Fatalf("%s: got %d %s, %v", body, resp.StatusCode, raw, err)
			}
			if strings.Contains(body, "chunked") {
				_, _ = io.Copy(io.Discard, resp.Body) // the end shows this client that it was the last
			}
			t.Cleanup(func() { _ = resp.Body.Close() })
		}
	}
}

// TestNextResponseFindsItsPlaceFree: the stream of a response has no [DONE]; the event that holds all of it is the last.
func TestNextResponseFindsItsPlaceFree(t *testing.T) {
	t.Parallel()
	const events = "event: response.created\ndata: {\"response\":{\"usage\":null}}\n\n" +
		"event: response.completed\ndata: {\"response\":{\"usage\":{\"input_tokens\":1,\"output_tokens\":2}}}\n\n"
	limiter := redisLimits(t)
	vendors := providers.Catalog{"openai": {
		Name: "openai", Endpoints: openai.Endpoints(), Usage: openai.Usage(),
		Relay: relayer(func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
			read, write := io.Pipe() // it stays open after the last event
			go func() {
				_, _ = io.WriteString(write, events)
				<-t.Context().Done()
				_ = write.Close()
			}()
			resp := upstreamAnswer("text/event-stream", "")
			resp.Body = read
			return resp, nil
		}),
	}}
	router := router.New(vendors, []providers.Channel{{
		Name: "main", Vendor: "openai", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"up-key"},
		Models: map[string]string{providers.AnyModel: ""}, Groups: []string{"default"},
	}}, nil)
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		g.tokens[goodKey] = &tokens.Token{ID: "one", Name: "one", Group: "default", Limits: tokens.Limits{Concurrency: 1}}
		o.Limits, o.Router, o.Relay = limiter, router, relay.New(router, vendors, nil)
	})
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	for range 20 {
		req, err := http.NewRequestWithContext(t.Context(), "POST", server.URL+"/v1/responses", strings.NewReader(`{"model":"m","stream":true}`))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+goodKey)
		resp, err := server.Client().Do(req)
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(func() { _ = resp.Body.Close() })
		raw, err := io.ReadAll(io.LimitReader(resp.Body, int64(len(events))))
		if err != nil || resp.StatusCode != 200 || string(raw) != events {
			t.Fatalf("got %d %s, %v", resp.StatusCode, raw, err)
		}
	}
}
