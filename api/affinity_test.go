package api_test

import (
	"cmp"
	"context"
	"net/http"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
)

// TestAffinity: which calls share an upstream's cache, and which answer they go on from.
func TestAffinity(t *testing.T) {
	t.Parallel()
	calls := make(chan providers.Call, 1)
	catcher := relayer(func(_ context.Context, _ providers.Target, call *providers.Call) (*http.Response, error) {
		calls <- *call
		return upstreamAnswer("application/json", `{"ok":true}`), nil
	})
	endpoints := []providers.Endpoint{
		chat, {Format: providers.OpenAI, Operation: providers.Responses}, {Format: providers.Anthropic, Operation: providers.Messages},
	}
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) {
		catalog := providers.Catalog{"openai": {Name: "openai", Relay: catcher, Endpoints: endpoints}}
		router := router.New(catalog, []providers.Channel{{
			Name: "main", Vendor: "openai", Keys: []providers.Secret{"k"}, Models: map[string]string{"*": ""}, Groups: []string{"default"},
		}}, nil)
		o.Router, o.Relay = router, relay.New(router, catalog, nil)
	})
	send := func(path, body, key string) providers.Call {
		t.Helper()
		rec := g.do(t, request(http.MethodPost, path, body, "anthropic-version", "2023-06-01", "Authorization", "Bearer "+key))
		if rec.Code != http.StatusOK {
			t.Fatalf("%s: answered %d: %s", body, rec.Code, rec.Body)
		}
		call := <-calls
		if string(call.Body) != body {
			t.Errorf("the body %s went on as %s", body, call.Body)
		}
		return call
	}
	const (
		chats, messages, responses = "/v1/chat/completions", "/v1/messages", "/v1/responses"
		turns                      = `"messages":[{"role":"user","content":"hi"}]`
		more                       = `"messages":[{"role":"user","content":"hi"},{"role":"assistant","content":"ho"},{"role":"user","content":"hu"}]`
		system                     = `"system":[{"type":"text","text":"be kind","cache_control":{"type":"ephemeral"}}]`
	)
	for _, tc := range []struct {
		name         string
		path         string
		first, other string // bodies
		otherKey     string // "": the same token
		same, some   bool   // whether they share an affinity, and whether there is one at all
	}{
		{name: "no key", path: chats, first: `{"model":"m",` + turns + `}`, other: `{"model":"m",` + turns + `}`, same: true},
		{
			name: "one key", path: chats, first: `{"model":"m","prompt_cache_key":"u1",` + turns + `}`,
			other: `{"model":"m",` + more + `,"prompt_cache_key":"u1"}`, same: true, some: true,
		},
		{
			name: "another key", path: chats, first: `{"model":"m","prompt_cache_key":"u1",` + turns + `}`,
			other: `{"model":"m","prompt_cache_key":"u2",` + turns + `}`, some: true,
		},
		{
			name: "another model", path: chats, first: `{"model":"m","prompt_cache_key":"u1",` + turns + `}`,
			other: `{"model":"n","prompt_cache_key":"u1",` + turns + `}`, some: true,
		},
		{
			name: "another caller", path: chats, first: `{"model":"m","prompt_cache_key":"u1",` + turns + `}`,
			other: `{"model":"m","prompt_cache_key":"u1",` + turns + `}`, otherKey: otherKey, some: true,
		},
		{
			name: "a key that is none", path: chats, first: `{"model":"m","prompt_cache_key":{"a":[1]},` + turns + `}`,
			other: `{"model":"m","prompt_cache_key":{"a":[1]},` + turns + `}`, same: true, some: true,
		},
		{
			name: "null", path: chats, first: `{"model":"m","prompt_cache_key":null,` + turns + `}`, other: `{"model":"m",` + turns + `}`,
			same: true,
		},
		{
			name: "responses", path: responses, first: `{"model":"m","prompt_cache_key":"u1","input":"a"}`,
			other: `{"model":"m","prompt_cache_key":"u1","input":"b"}`, same: true, some: true,
		},
		{
			name: "a message", path: messages, first: `{"model":"m","max_tokens":1,` + turns + `}`,
			other: `{"model":"m","max_tokens":1,` + turns + `}`, same: true,
		},
		{
			name: "a marked system", path: messages, first: `{"model":"m","max_tokens":1,` + system + `,` + turns + `}`,
			other: `{"model":"m","max_tokens":2,` + system + `,` + more + `}`, same: true, some: true,
		},
		{
			name: "another system", path: messages, first: `{"model":"m","max_tokens":1,` + system + `,` + turns + `}`,
			other: `{"model":"m","max_tokens":1,` + strings.Replace(system, "kind", "brief", 1) + `,` + turns + `}`, some: true,
		},
		{
			name: "automatic", path: messages, first: `{"model":"m","max_tokens":1,"cache_control":{"type":"ephemeral"},"system":"s",` + turns + `}`,
			other: `{"model":"m","max_tokens":1,"cache_control":{"type":"ephemeral"},"system":"s",` + more + `}`, same: true, some: true,
		},
	} {
		t.Run(tc.name, func(t *testing.T) {
			key := cmp.Or(tc.otherKey, goodKey)
			first, other := send(tc.path, tc.first, goodKey).Affinity, send(tc.path, tc.other, key).Affinity
			if (first == other) != tc.same || (first != 0) != tc.some {
				t.Errorf("got %d and %d, want the same: %v, one at all: %v", first, other, tc.same, tc.some)
			}
		})
	}
	if got := send(responses, `{"model":"m","previous_response_id":"resp_1","input":"a"}`, goodKey).ContinuesFrom; len(got) != 1 ||
		got[0].ID != "resp_1" {
		t.Errorf("got previous answer %q", got)
	}
}
