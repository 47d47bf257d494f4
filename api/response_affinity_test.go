package api_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
)

// owners remembers that everything of anna's is anna's.
type owners struct{}

func (owners) Remember(string, relay.Origin) {}

func (owners) Find(_ context.Context, ids ...string) []relay.Origin {
	makers := make([]relay.Origin, len(ids))
	for i, id := range ids {
		if strings.HasPrefix(id, "annas") {
			makers[i] = relay.Origin{KeyRef: providers.KeyRef{Channel: "main", Fingerprint: "x"}, Token: "anna"}
		}
	}
	return makers
}

// TestMadeForAnotherToken: the objects of another token are not found, for every place and spelling of their id in a call.
func TestMadeForAnotherToken(t *testing.T) {
	t.Parallel()
	responses := providers.Endpoint{Format: providers.OpenAI, Operation: providers.Responses}
	messages := providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}
	count := providers.Endpoint{Format: providers.Anthropic, Operation: providers.CountTokens}
	compact := providers.Endpoint{Format: providers.OpenAI, Operation: providers.CompactResponse}
	vendor := relayer(func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		return upstreamAnswer("application/json", `{}`), nil
	})
	catalog := providers.Catalog{"all": {Name: "all", Relay: vendor, Endpoints: []providers.Endpoint{responses, messages, count, compact}}}
	router := router.New(catalog, []providers.Channel{{
		Name: "main", Vendor: "all", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"k"},
		Models: map[string]string{"m": ""}, Groups: []string{"default"},
	}}, nil)
	const conversation = `"max_tokens":1,"messages":[]`
	many := make([]string, 1025)
	for i := range many {
		many[i] = fmt.Sprintf(`{"container_id":"cntr_%d"}`, i)
	}
	for _, tc := range []struct {
		path, members string
		status        int
	}{
		{"/v1/responses", `"previous_response_id":"annas"`, 404},
		{"/v1/responses", `"previous_response_id":"\u0061nnas"`, 404},
		{"/v1/responses", `"previous_response_id":"mine"`, 200},
		{"/v1/responses", `"previous_response_id":null,"input":"annas"`, 200},
		{"/v1/responses/compact", `"previous_response_id":"annas"`, 404},
		{"/v1/responses", `"tools":[{"type":"web_search"},{"type":"code_interpreter","container":"annas"}]`, 404},
		{"/v1/responses", `"tools":[{"type":"code_interpreter","Cont\u0061iner":"\u0061nnas"}]`, 404},
		{"/v1/responses", `"tools":[{"type":"code_interpreter","container":{"type":"auto"}}]`, 200},
		{"/v1/responses", `"input":[{"content":"annas"},{"type":"code_interpreter_call","container_id":"annas"}]`, 404},
		{"/v1/responses", `"input":[{"content":[{"annotations":[{"container_id":"mine"},{"container_id":"annas2"}]}]}]`, 404},
		{"/v1/responses", `"input":[{"container_id":["annas"],"text":"container_id"}]`, 200},
		{"/v1/responses", `"input":[` + strings.Join(many, ",") + `]`, 400},
		{"/v1/responses", `"input":[` + strings.Repeat(many[0]+",", 99) + many[0] + `]`, 200},
		{"/v1/responses", `"input":[{"type":"item_reference","id":"annas"}]`, 404},
		{"/v1/responses", `"input":[{"id":"annas"}]`, 404},
		{"/v1/responses", `"input":[{"type":null,"id":"annas"}]`, 404},
		{"/v1/responses", `"input":[{"type":"item_reference","id":"annas","content":"x"}]`, 404},
		{"/v1/responses", `"input":[{"type":"message","role":"assistant","content":"hi","id":"annas"}]`, 200},
		{"/v1/responses", `"input":[{"type":"item_reference","id":"mine"}]`, 200},
		{"/v1/responses", `"conversation":"annas"`, 404},
		{"/v1/responses", `"conversation":{"id":"annas"}`, 404},
		{"/v1/responses", `"conversation":{"id":"mine"}`, 200},
		{"/v1/messages", `"container":"annas",` + conversation, 404},
		{"/v1/messages", `"container":{"id":"annas","skills":[]},` + conversation, 404},
		{"/v1/messages", `"container":"mine",` + conversation, 200},
		{"/v1/messages", `"container":{"skills":[]},` + conversation, 200},
		{"/v1/messages", `"container":{"Id":"annas"},` + conversation, 400},
		{"/v1/messages", `"max_tokens":1,"messages":[{"role":"user","content":[{"type":"container_upload","file_id":"annas"}]}]`, 404},
		{"/v1/messages", `"max_tokens":1,"messages":[{"role":"user","content":[{"type":"document","source":{"type":"file","file\u005fid":"annas"}}]}]`, 404},
		{"/v1/messages", `"max_tokens":1,"messages":[{"role":"user","content":[{"type":"container_upload","file_id":"mine"}]}]`, 200},
		{"/v1/messages", `"max_tokens":1,"messages":[{"role":"user","content":[{"type":"text","text":"annas"}]}]`, 200},
		{
			"/v1/messages/count_tokens", `"messages":[{"role":"user","content":[{"type":"image","source":{"type":"file","file_id":"annas"}}]}]`,
			404,
		},
	} {
		g := newGateway(t, nil, func(_ *gateway, o *api.Options) {
			o.Router, o.Relay = router, relay.New(router, catalog, &relay.Options{Origins: owners{}})
		})
		rec := g.do(t, request("POST", tc.path, `{"model":"m",`+tc.members+`}`, "Anthropic-Version", "2023-06-01"))
		if rec.Code != tc.status || tc.status == 404 && !strings.Contains(rec.Body.String(), "was found") {
			t.Errorf("%s %s: got %d %s, want %d", tc.path, tc.members, rec.Code, rec.Body, tc.status)
		}
	}
}
