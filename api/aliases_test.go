package api_test

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/storage/tokens"
)

// TestAliases: what a client asks for under another name goes by the public one in permissions, in what is counted and
// upstream, and under its own name in what the client reads of us.
func TestAliases(t *testing.T) {
	t.Parallel()
	var payload string
	var seen providers.Call
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		catalog := providers.Catalog{"openai": {Name: "openai", Endpoints: []providers.Endpoint{chat}, Relay: relayer(
			func(_ context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
				seen, payload = *call, sent(t, to, call)
				return upstreamAnswer("application/json", `{"model":"theirs"}`), nil
			})}}
		routes := router.New(catalog, []providers.Channel{{
			Name: "main", Vendor: "openai", Keys: []providers.Secret{"k"}, Groups: []string{"default"},
			Models: map[string]string{"gpt-4o": "", "fast": "theirs"},
		}}, &router.Options{Aliases: map[string]string{"gpt-4o-2024-05-13": "gpt-4o", "gpt-fast": "fast"}})
		o.Router, o.Relay = routes, relay.New(routes, catalog, nil)
	})
	g.tokens["sk-few"] = &tokens.Token{ID: "few", Name: "few", Group: "default", Models: []string{"gpt-4o"}}

	const dated = `{"model":"gpt-4o-2024-05-13","messages":[]}`
	rec := g.do(t, request("POST", "/v1/chat/completions", dated, "Authorization", "Bearer sk-few"))
	if want := strings.Replace(dated, "gpt-4o-2024-05-13", "gpt-4o", 1); rec.Code != 200 || payload != want ||
		seen.Alias != "gpt-4o-2024-05-13" || seen.Model != "gpt-4o" {
		t.Errorf("got %d %s, sent %s, want %s", rec.Code, rec.Body, payload, want)
	}
	if got := rec.Body.String(); got != `{"model":"theirs"}` {
		t.Errorf("got %s, want what the upstream says as it is", got)
	}
	rec = g.do(t, request("POST", "/v1/chat/completions", `{"model":"gpt-fast","messages":[]}`))
	if want := `{"model":"theirs","messages":[]}`; rec.Code != 200 || payload != want {
		t.Errorf("got %d, sent %s, want %s", rec.Code, payload, want)
	}
	if got := g.ledger.entries; len(got) != 2 || got[0].Model != "gpt-4o" || got[1].Model != "fast" {
		t.Errorf("counted %+v under other names than the public ones", got)
	}

	rec = g.do(t, request("POST", "/v1/chat/completions", `{"model":"gpt-fast","messages":[]}`, "Authorization", "Bearer sk-few"))
	if got := rec.Body.String(); rec.Code != 404 || !strings.Contains(got, `\"gpt-fast\"`) || strings.Contains(got, `\"fast\"`) {
		t.Errorf("got %d %s, want 404 for an alias of a model that the token may not use, under the alias' name", rec.Code, got)
	}
	for token, want := range map[string][]string{
		"sk-few": {"gpt-4o", "gpt-4o-2024-05-13"},
		goodKey:  {"fast", "gpt-4o", "gpt-4o-2024-05-13", "gpt-fast"},
	} {
		var list struct{ Data []struct{ ID string } }
		rec := g.do(t, request("GET", "/v1/models", "", "Authorization", "Bearer "+token))
		decode(t, rec.Body.Bytes(), &list)
		var got []string
		for _, model := range list.Data {
			got = append(got, model.ID)
		}
		if !slices.Equal(got, want) {
			t.Errorf("%s: got models %v, want %v", token, got, want)
		}
	}
	if rec := g.do(t, request("GET", "/v1/models/gpt-4o-2024-05-13", "", "Authorization", "Bearer sk-few")); rec.Code != 200 ||
		!strings.Contains(rec.Body.String(), `"id":"gpt-4o-2024-05-13"`) {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}

// TestModelsOfPatterns: a name that only the pattern of a channel matches is shown like a listed model, to tokens that may call it,
// and lists do not have it.
func TestModelsOfPatterns(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		catalog := providers.Catalog{"openai": {Name: "openai", Endpoints: []providers.Endpoint{chat}, Relay: g.upstream}}
		routes := router.New(catalog, []providers.Channel{{
			Name: "main", Vendor: "openai", Keys: []providers.Secret{"k"}, Groups: []string{"default"},
			Models: map[string]string{"gpt-4o": "", "claude-haiku-*": ""},
		}}, nil)
		o.Router, o.Relay = routes, relay.New(routes, catalog, nil)
	})
	for _, test := range []struct {
		path, token string
		status      int
		want        string
	}{
		{"/v1/models/claude-haiku-4-5", goodKey, 200, `"id":"claude-haiku-4-5"`},
		{"/v1beta/models/claude-haiku-4-5", goodKey, 200, `"name":"models/claude-haiku-4-5"`},
		{"/v1/models/claude-opus-5", goodKey, 404, `claude-opus-5`},
		{"/v1/models/claude-haiku-4-5", "sk-few", 404, `claude-haiku-4-5`},
	} {
		rec := g.do(t, request("GET", test.path, "", "Authorization", "Bearer "+test.token))
		if rec.Code != test.status || !strings.Contains(rec.Body.String(), test.want) {
			t.Errorf("%s: got %d %s, want %d with %s", test.path, rec.Code, rec.Body, test.status, test.want)
		}
	}
	if rec := g.do(t, request("GET", "/v1/models", "")); strings.Contains(rec.Body.String(), "claude") {
		t.Errorf("got the list %s", rec.Body)
	}
}

// TestVideosUnderAliases: a task is made, counted and permitted under the public name, and every answer about it has the name
// that was asked for.
func TestVideosUnderAliases(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		catalog := providers.Catalog{"openai": {Name: "openai", Video: struct{ providers.VideoAdapter }{}}}
		routes := router.New(catalog, []providers.Channel{{
			Name: "main", Vendor: "openai", Keys: []providers.Secret{"k"}, Groups: []string{"default"}, Models: map[string]string{"sora-2": ""},
		}}, &router.Options{Aliases: map[string]string{"sora-latest": "sora-2"}})
		o.Router, o.Relay = routes, relay.New(routes, catalog, nil)
	})
	for _, test := range []struct{ path, read, body, want string }{
		{"/v1/videos", "/v1/videos/", `{"model":"sora-latest","prompt":"a cat"}`, `"model":"sora-latest"`},
		{"/v1/video/generations", "/v1/video/generations/", `{"model":"sora-latest","prompt":"a cat"}`, `"model":"sora-latest"`},
		{
			"/v1beta/models/sora-latest:predictLongRunning", "/v1beta/models/sora-latest/operations/", `{"instances":[{"prompt":"a cat"}]}`,
			`"name":"models/sora-latest/operations/`,
		},
	} {
		rec := g.do(t, request("POST", test.path, test.body))
		if rec.Code/100 != 2 || !strings.Contains(rec.Body.String(), test.want) {
			t.Errorf("%s: got %d %s, want %s", test.path, rec.Code, rec.Body, test.want)
			continue
		}
		created := g.tasks.creates[len(g.tasks.creates)-1]
		if created.Request.Model != "sora-2" || created.Request.Alias != "sora-latest" {
			t.Errorf("%s: made a task of %q, asked as %q", test.path, created.Request.Model, created.Request.Alias)
		}
		var named struct{ ID, Name string }
		decode(t, rec.Body.Bytes(), &named)
		id := named.ID + named.Name[strings.LastIndexByte(named.Name, '/')+1:]
		if rec := g.do(t, request("GET", test.read+id, "")); rec.Code != 200 || !strings.Contains(rec.Body.String(), test.want) {
			t.Errorf("%s: got %d %s, want %s", test.read, rec.Code, rec.Body, test.want)
		}
	}
	rec := g.do(t, request("POST", "/v1/videos", `{"model":"sora-latest","prompt":"a cat"}`, "Authorization", "Bearer sk-few"))
	if got := rec.Body.String(); rec.Code != 404 || !strings.Contains(got, `\"sora-latest\"`) {
		t.Errorf("got %d %s, want 404 under the alias' name", rec.Code, got)
	}
}
