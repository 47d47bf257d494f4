package api_test

import (
	"net/http"
	"net/http/httptest"
	"reflect"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/api/console/words"
	"modelrelay/storage/limits"
	"modelrelay/storage/tokens"
)

// limitProbes find out whether a limit is enforced, by its name: they take of the limit of 1 until nothing is left, and return the status
// of what goes beyond.
func limitProbes() map[string]func(t *testing.T, g *gateway, limiter *limits.Limiter, token *tokens.Token) int {
	call := func(t *testing.T, g *gateway) int {
		t.Helper()
		return g.do(t, request("POST", "/v1/chat/completions", smallChat)).Code
	}
	hold := func(t *testing.T, limiter *limits.Limiter, sockets bool, token *tokens.Token) {
		t.Helper()
		of := token.Counted()
		if sockets {
			of = token.Sockets()
		}
		if grant, err := limiter.Admit(t.Context(), of, limits.Cost{}); err != nil || !grant.Allowed {
			t.Fatalf("the first: %+v, %v", grant, err)
		}
	}
	twice := func(t *testing.T, g *gateway, _ *limits.Limiter, _ *tokens.Token) int {
		t.Helper()
		call(t, g)
		return call(t, g)
	}
	return map[string]func(t *testing.T, g *gateway, limiter *limits.Limiter, token *tokens.Token) int{
		"requests_per_minute": twice,
		"tokens_per_minute":   twice,
		"concurrency": func(t *testing.T, g *gateway, limiter *limits.Limiter, token *tokens.Token) int {
			t.Helper()
			hold(t, limiter, false, token)
			return call(t, g)
		},
		"max_tasks": func(t *testing.T, g *gateway, _ *limits.Limiter, _ *tokens.Token) int {
			t.Helper()
			g.do(t, request("POST", "/v1/videos", `{"model":"sora-2","prompt":"a boat"}`))
			if len(g.tasks.creates) != 1 || g.tasks.creates[0].MaxTasks != 1 { // package tasks counts them
				return 0
			}
			return http.StatusTooManyRequests
		},
		"reads_per_minute": func(t *testing.T, g *gateway, _ *limits.Limiter, _ *tokens.Token) int {
			t.Helper()
			g.do(t, request("GET", "/v1/models", ""))
			return g.do(t, request("GET", "/v1/models", "")).Code
		},
		"max_watchers": func(t *testing.T, g *gateway, _ *limits.Limiter, _ *tokens.Token) int {
			t.Helper()
			g.tasks.put(running(10))
			server := httptest.NewServer(g.Handler())
			t.Cleanup(server.Close)
			_, events := follow(t.Context(), t, server.URL+"/v1/videos/video_1/events")
			next(t, events)
			return g.do(t, request("GET", "/v1/videos/video_1/events", "")).Code
		},
		"max_sockets": func(t *testing.T, g *gateway, limiter *limits.Limiter, token *tokens.Token) int {
			t.Helper()
			hold(t, limiter, true, token)
			return g.do(t, request("GET", "/v1/realtime?model=gpt-4o", "", "Connection", "Upgrade", "Upgrade", "websocket",
				"Sec-WebSocket-Version", "13", "Sec-WebSocket-Key", "dGhlIHNhbXBsZSBub25jZQ==")).Code
		},
	}
}

// TestEachLimitOfAToken: each limit is in the document with a description, has a label in the console in every language, and is enforced.
// The command line has a test of its own: TestLimitFlags.
func TestEachLimitOfAToken(t *testing.T) {
	t.Parallel()
	type schema struct {
		Properties map[string]struct{ Description string }
	}
	var document struct {
		Components struct{ Schemas map[string]schema }
	}
	decode(t, newGateway(t, nil, nil).do(t, request("GET", "/openapi.json", "")).Body.Bytes(), &document)
	texts, probes := words.Load(), limitProbes()
	for field := range reflect.TypeFor[tokens.Limits]().Fields() {
		key, _, _ := strings.Cut(field.Tag.Get("json"), ",")
		t.Run(key, func(t *testing.T) {
			t.Parallel()
			for _, name := range []string{"AdminToken", "AdminTokenCreate", "AdminTokenUpdate"} {
				if document.Components.Schemas[name].Properties[key].Description == "" {
					t.Errorf("the schema %s has no description of the limit", name)
				}
			}
			if !texts.Has("limit." + key) { // both languages have the same keys
				t.Error("the form of the console has no label")
			}
			probe, ok := probes[key]
			if !ok {
				t.Fatal("there is no probe that the limit is enforced")
			}
			limiter, token := redisLimits(t), &tokens.Token{ID: "good", Name: "good", Group: "default"}
			reflect.ValueOf(&token.Limits).Elem().FieldByIndex(field.Index).SetInt(1)
			g := newGateway(t, nil, func(g *gateway, o *api.Options) { g.tokens[goodKey], o.Limits = token, limiter })
			if got := probe(t, g, limiter, token); got != http.StatusTooManyRequests {
				t.Errorf("beyond the limit: got %d, want 429", got)
			}
		})
	}
}
