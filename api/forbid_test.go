package api_test

import (
	"context"
	"net/http"
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/router"
	"modelrelay/storage/tokens"
)

// TestForbids: what a group forbids is refused in the caller's format, by the field's name and before anything is sent; the
// client's own tools, and everything of other groups, pass.
func TestForbids(t *testing.T) {
	t.Parallel()
	responses := providers.Endpoint{Format: providers.OpenAI, Operation: providers.Responses}
	messages := providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}
	generate := providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent}
	sent := 0
	relayed := relayer(func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		sent++
		return upstreamAnswer("application/json", `{"ok":true}`), nil
	})
	g := newGateway(t, relayed, func(g *gateway, o *api.Options) {
		g.tokens["sk-plain"] = &tokens.Token{ID: "plain", Group: "plain"}
		catalog := providers.Catalog{"openai": {
			Name: "openai", Relay: relayed,
			Endpoints: []providers.Endpoint{chat, responses, messages, generate},
		}}
		o.Router = router.New(catalog, []providers.Channel{{
			Name: "main", Vendor: "openai", BaseURL: "http://upstream.invalid", Keys: []providers.Secret{"k"}, Models: map[string]string{"m": ""},
			Groups: []string{"default", "plain"},
		}}, nil)
		o.Relay = relay.New(o.Router, catalog, nil)
		o.Forbids = func(group string) []string {
			if group == "default" {
				return providers.Forbiddable()
			}
			return nil
		}
	})
	const (
		chatPath, responsesPath  = "/v1/chat/completions", "/v1/responses"
		messagesPath, geminiPath = "/v1/messages", "/v1beta/models/m:generateContent"
		chatRest                 = `"model":"m","messages":[{"role":"user","content":"hi"}]`
		responsesRest            = `"model":"m","input":"hi"`
		messagesRest             = `"model":"m","max_tokens":5,"messages":[{"role":"user","content":"hi"}]`
		geminiRest               = `"contents":[{"role":"user","parts":[{"text":"hi"}]}]`
	)
	for _, test := range []struct{ path, rest, more, want string }{ // want is the field, "" where the call passes
		{responsesPath, responsesRest, `"background":true`, "background"},
		{responsesPath, responsesRest, `"background":false`, ""},
		{responsesPath, responsesRest, `"extra_body":{"google":{"cached_content":"c"}}`, "extra_body.google.cached_content"},
		{responsesPath, responsesRest, `"extra_body":{"extra_body":{"extra_body":{"background":true}}}`, ""}, // no vendor reads it so far within
		{responsesPath, responsesRest, `"background":null`, ""},
		{responsesPath, responsesRest, `"service_tier":"priority"`, "service_tier"},
		{responsesPath, responsesRest, `"service_tier":null`, ""},
		{responsesPath, responsesRest, `"tools":[{"type":"function","name":"f","parameters":{}},{"type":"web_search"}]`, "tools[1]"},
		{responsesPath, responsesRest, `"tools":[{"type":"mcp","server_label":"s","server_url":"https://s.example"}]`, "tools[0]"},
		{responsesPath, responsesRest, `"tools":[{"type":"custom","name":"f"},{"type":"local_shell"}]`, ""},
		{responsesPath, responsesRest, `"tools":[]`, ""},
		{
			responsesPath, `"model":"m"`, `"input":[{"role":"user","content":"x"},{"type":"additional_tools","tools":[{"type":"web_search"}]}]`,
			"input[1].tools[0]",
		},
		{responsesPath, `"model":"m"`, `"input":[{"type":"tool_search_output","Tools":[{"type":"function","name":"f"},{"Type":"mcp","name":"f"}]}]`, "input[0].Tools[1]"},
		{responsesPath, `"model":"m"`, `"input":[{"type":"tool_search_output","tools":[{"type":"function","name":"f"}]}]`, ""},
		{chatPath, chatRest, `"Service_Tier":"priority"`, "Service_Tier"},
		{chatPath, chatRest, `"Models":["a","b"]`, "Models"},
		{chatPath, chatRest, `"PLUGINS":[{"id":"web"}]`, "PLUGINS"},
		{responsesPath, responsesRest, `"prompt":{"id":"pmpt_1"}`, "prompt"},
		{chatPath, chatRest, `"service_tier":"flex"`, "service_tier"},
		{chatPath, chatRest, `"service\u005ftier":"flex"`, "service_tier"},
		{chatPath, chatRest, `"web_search_options":{}`, "web_search_options"},
		{chatPath, chatRest, `"tools":[{"type":"function","function":{"name":"f"}}]`, ""},
		{messagesPath, messagesRest, `"service_tier":"auto"`, "service_tier"},
		{messagesPath, messagesRest, `"speed":"fast"`, "speed"},
		{messagesPath, messagesRest, `"speed":"standard"`, ""},
		{messagesPath, messagesRest, `"inference_geo":"us"`, "inference_geo"},
		{messagesPath, messagesRest, `"inference_geo":"global"`, ""},
		{chatPath, chatRest, `"plugins":[{"id":"web"}]`, "plugins"},
		{geminiPath, geminiRest, `"cachedContent":"cachedContents/1"`, "cachedContent"},
		{geminiPath, geminiRest, `"cached_content":"cachedContents/1"`, "cached_content"},
		{messagesPath, messagesRest, `"tools":[{"type":"web_search_20250305","name":"web_search"}]`, "tools[0]"},
		{messagesPath, messagesRest, `"tools":[{"name":"f","input_schema":{"type":"object"}},{"type":"bash_20250124","name":"bash"},{"type":"text_editor_20250728","name":"e"}]`, ""},
		{geminiPath, geminiRest, `"tools":[{"functionDeclarations":[{"name":"f"}]},{"googleSearch":{}}]`, "tools[1]"},
		{geminiPath, geminiRest, `"tools":[{"function_declarations":[{"name":"f"}]}]`, ""},
		{geminiPath, geminiRest, `"tools":{"googleSearch":{}}`, "tools"},
		{geminiPath, geminiRest, `"tools":{"functionDeclarations":[{"name":"f"}]}`, ""},
		{responsesPath, responsesRest, `"tools":[{"type":"web_search","type":"function","name":"f"}]`, "tools[0]"},
		{responsesPath, responsesRest, `"caching":{"type":"enabled"}`, "caching"},
		{responsesPath, responsesRest, `"caching":{"type":"disabled"}`, ""},
		// Searches of vendors that speak OpenAI's format.
		{chatPath, chatRest, `"search_parameters":{"mode":"auto"}`, "search_parameters"},
		{chatPath, chatRest, `"search_parameters":{"sources":[{"type":"web"}]}`, "search_parameters"},
		{chatPath, chatRest, `"search_parameters":{"mode":"off"}`, ""},
		{chatPath, chatRest, `"enable_search":true,"search_options":{"forced_search":true}`, "enable_search"},
		{chatPath, chatRest, `"enable_search":false`, ""},
		{chatPath, chatRest, `"enable_search":null`, ""},
		{chatPath, chatRest, `"enable_code_interpreter":true`, "enable_code_interpreter"},
		{chatPath, chatRest, `"enable_enhancement":true`, "enable_enhancement"},
		{chatPath, chatRest, `"force_search_enhancement":true`, "force_search_enhancement"},
		{chatPath, chatRest, `"web_search":{"enable":true}`, "web_search"},
		{chatPath, chatRest, `"web_search":{"enable":false}`, ""},
		{chatPath, chatRest, `"data_sources":[{"type":"azure_search"}]`, "data_sources"},
		{chatPath, chatRest, `"compound_custom":{"tools":{"enabled_tools":["web_search"]}}`, "compound_custom"},
		{chatPath, chatRest, `"connectors":[{"id":"web-search"}]`, "connectors"},
		{chatPath, chatRest, `"extra_body":{"enable_search":true}`, "extra_body.enable_search"},
		{chatPath, chatRest, `"extra_body":{"google":{"cached_content":"cachedContents/1"}}`, "extra_body.google.cached_content"},
		{chatPath, chatRest, `"extra_body":{"google":{"thinking_config":{"thinking_budget":5}}}`, ""},
		// Other models, and their providers.
		{chatPath, chatRest, `"models":["m","dear"],"route":"fallback"`, "models"},
		{chatPath, chatRest, `"provider":{"order":["Dear"]}`, "provider"},
		{chatPath, chatRest, `"providerOptions":{"gateway":{"models":["dear"]}}`, "providerOptions"},
		{chatPath, chatRest, `"preset":"dear"`, "preset"},
		{messagesPath, messagesRest, `"fallbacks":[{"model":"dear"}]`, "fallbacks"},
		{messagesPath, messagesRest, `"fallbacks":[]`, ""},
		// Marks of Anthropic's cache.
		{messagesPath, messagesRest, `"cache_control":{"type":"ephemeral","ttl":"1h"}`, "cache_control.ttl"},
		{messagesPath, messagesRest, `"cache_control":{"type":"ephemeral"}`, ""},
		{messagesPath, messagesRest, `"cache_control":{"type":"ephemeral","ttl":"5m"}`, ""},
		{
			messagesPath, messagesRest, `"system":[{"type":"text","text":"t","cache_control":{"type":"ephemeral","ttl":"1h"}}]`,
			"system[0].cache_control.ttl",
		},
		{messagesPath, messagesRest, `"tools":[{"name":"f","input_schema":{"type":"object","properties":{"cache_control":{"ttl":"1h"}}}},{"name":"g","input_schema":{"type":"object"},"cache_control":{"t\u0074l":"1h","type":"ephemeral"}}]`, "tools[1].cache_control.ttl"},
		{chatPath, `"model":"m"`, `"messages":[{"role":"system","content":"s"},{"role":"user","content":[{"type":"text","text":"hi","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]`, "messages[1].content[0].cache_control.ttl"},
		{responsesPath, `"model":"m"`, `"input":[{"role":"user","content":[{"type":"input_text","text":"hi","prompt_cache_breakpoint":{"mode":"explicit","ttl":"12h"}}]}]`, "input[0].content[0].prompt_cache_breakpoint.ttl"},
		{
			messagesPath, `"model":"m","max_tokens":5`,
			`"messages":[{"role":"user","content":"ttl 1h"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{"cache_control":{"ttl":"1h"}}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"r"}]}]}]`, "",
		},
		{
			messagesPath, `"model":"m","max_tokens":5`,
			`"messages":[{"role":"user","content":"go"},{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"a","content":[{"type":"text","text":"r","cache_control":{"type":"ephemeral","ttl":"1h"}}]}]}]`, "messages[2].content[0].content[0].cache_control.ttl",
		},
	} {
		body := "{" + test.rest + "," + test.more + "}"
		before := sent
		rec := g.do(t, request("POST", test.path, body, "VendorA-Version", "2023-06-01"))
		want, calls := http.StatusOK, 1
		if test.want != "" {
			want, calls = http.StatusBadRequest, 0
		}
		if rec.Code != want || sent-before != calls || !strings.Contains(rec.Body.String(), test.want) {
			t.Errorf("%s %s: got %d %s and %d calls upstream; want %d of %q", test.path, test.more, rec.Code, rec.Body, sent-before, want, test.want)
		}
		if rec := g.do(t, request("POST", test.path, body, "Authorization", "Bearer sk-plain", "VendorA-Version",
			"2023-06-01")); rec.Code != http.StatusOK {
			t.Errorf("%s %s of another group: got %d %s", test.path, test.more, rec.Code, rec.Body)
		}
	}
	for betas, want := range map[string]int{
		"context-1m-2025-08-07":               http.StatusBadRequest,
		"a-2025-01-01, Context-1m-2025-08-07": http.StatusBadRequest, "a-2025-01-01": http.StatusOK,
	} {
		rec := g.do(t, request("POST", messagesPath, "{"+messagesRest+"}", "Anthropic-Version", "2023-06-01", "Anthropic-Beta", betas))
		if rec.Code != want || want != http.StatusOK && !strings.Contains(rec.Body.String(), "anthropic-beta") {
			t.Errorf("with betas %s: got %d %s, want %d", betas, rec.Code, rec.Body, want)
		}
	}
	rec := g.do(t, request("POST", chatPath, "{"+chatRest+`,"service_tier":"flex"}`))
	if code, param := fault(t, rec); code == "" || param != "service_tier" {
		t.Errorf("in OpenAI's format: got %s", rec.Body)
	}
	if rec := g.do(t, request("POST", geminiPath, "{"+geminiRest+`,"tools":[{"googleSearch":{}}]}`)); !strings.Contains(rec.Body.String(),
		"INVALID_ARGUMENT") {
		t.Errorf("in Gemini's format: got %s", rec.Body)
	}
}

// TestForbidsInVideos: a video's own parameters are held to the same words, wherever they stand.
func TestForbidsInVideos(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) {
		o.Forbids = func(string) []string { return providers.Forbiddable() }
	})
	for more, want := range map[string]string{
		`"service_tier":"flex"`:                        "service_tier",
		`"metadata":{"service_tier":"flex"}`:           "service_tier",
		`"tools":[{"type":"web_search"}]`:              "tools[0]",
		`"style":"film","metadata":{"background":"x"}`: "",
	} {
		rec := g.do(t, request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p",`+more+"}"))
		if want == "" {
			if rec.Code >= http.StatusBadRequest {
				t.Errorf("%s: got %d %s", more, rec.Code, rec.Body)
			}
			continue
		}
		if _, param := fault(t, rec); rec.Code != http.StatusBadRequest || param != want {
			t.Errorf("%s: got %d %s, want the parameter %q", more, rec.Code, rec.Body, want)
		}
	}
}
