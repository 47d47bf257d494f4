package api_test

import (
	"strings"
	"testing"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/limits"
	"modelrelay/storage/tokens"
)

// TestModelListShapes: what selects the shape of the model list, and of its errors.
func TestModelListShapes(t *testing.T) {
	t.Parallel()
	const (
		openAI = `{"object":"list","data":[{"id":"gpt-4o","object":"model","created":1677628800,"owned_by":"openai"}]}`
		a      = `{"data":[{"type":"model","id":"gpt-4o","display_name":"gpt-4o","created_at":"2023-03-01T00:00:00Z"}],` +
			`"has_more":false,"first_id":"gpt-4o","last_id":"gpt-4o"}`
		b = `{"models":[{"name":"models/gpt-4o","displayName":"gpt-4o","supportedGenerationMethods":[]}]}`
	)
	g := newGateway(t, nil, nil)
	for _, test := range []struct {
		name, path string
		headers    []string
		want       string
	}{
		{"nothing said", "/v1/models", nil, openAI},
		{"x-api-key alone", "/v1/models", []string{"Authorization", "", "x-api-key", "sk-few"}, openAI},
		{"the contract's version alone", "/v1/models", []string{"vendorA-version", "2023-06-01"}, openAI},
		{"format A by the contract", "/v1/models", []string{"Authorization", "", "x-api-key", "sk-few", "vendorA-version", "2023-06-01"}, a},
		{"format A as its SDK", "/v1/models", []string{"anthropic-version", "2023-06-01"}, a},
		{"format B by the contract", "/v1/models", []string{"Authorization", "", "x-vendorB-api-key", "sk-few"}, b},
		{"format B as its SDK", "/v1/models?pageSize=50", []string{"Authorization", "", "x-goog-api-key", "sk-few"}, b},
		{"format B by query", "/v1/models?key=sk-few", []string{"Authorization", ""}, b},
		{"an empty key", "/v1/models?key=", nil, openAI},
		{"A before B", "/v1/models?key=sk-few", []string{"Authorization", "", "x-api-key", "sk-few", "vendorA-version", "2023-06-01"}, a},
		{"the path of B", "/v1beta/models", nil, b},
		{"the path of B whatever is sent", "/v1beta/models", []string{"anthropic-version", "2023-06-01"}, b},
	} {
		rec := g.do(t, request("GET", test.path, "", append([]string{"Authorization", "Bearer sk-few"}, test.headers...)...))
		if got := strings.TrimSpace(rec.Body.String()); rec.Code != 200 || got != test.want {
			t.Errorf("%s: got %d %s, want %s", test.name, rec.Code, got, test.want)
		}
	}
	if strings.Contains(g.log.String(), "sk-few") {
		t.Error("the log has a key")
	}

	g.tokens["sk-none"] = &tokens.Token{ID: "none", Group: "empty"}
	for _, test := range []struct {
		path    string
		headers []string
		empty   string
		refusal string
	}{
		{"/v1/models", nil, `{"object":"list","data":[]}`, `"code":"invalid_api_key"`},
		{
			"/v1/models",
			[]string{"anthropic-version", "x"},
			`{"data":[],"has_more":false,"first_id":null,"last_id":null}`,
			`"type":"authentication_error"`,
		},
		{"/v1beta/models", nil, `{"models":[]}`, `"status":"UNAUTHENTICATED"`},
		{"/v1/models?key=x", nil, `{"models":[]}`, `"status":"UNAUTHENTICATED"`},
	} {
		rec := g.do(t, request("GET", test.path, "", append(test.headers, "Authorization", "Bearer sk-none")...))
		if got := strings.TrimSpace(rec.Body.String()); got != test.empty {
			t.Errorf("empty %s %v: got %s, want %s", test.path, test.headers, got, test.empty)
		}
		rec = g.do(t, request("GET", test.path, "", append(test.headers, "Authorization", "Bearer sk-wrong")...))
		if rec.Code != 401 || !strings.Contains(rec.Body.String(), test.refusal) {
			t.Errorf("refused %s %v: got %d %s, want %s", test.path, test.headers, rec.Code, rec.Body, test.refusal)
		}
	}
}

// TestOneModelShapes: a single model comes in the shape the list would.
func TestOneModelShapes(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for _, test := range []struct {
		path    string
		headers []string
		status  int
		want    string
	}{
		{"/v1/models/org/llama:70b", nil, 200, `{"id":"org/llama:70b","object":"model","created":1677628800,"owned_by":"openai"}`},
		{
			"/v1/models/org%2Fllama:70b",
			[]string{"anthropic-version", "x"},
			200,
			`{"type":"model","id":"org/llama:70b","display_name":"org/llama:70b","created_at":"2023-03-01T00:00:00Z"}`,
		},
		{"/v1/models/fast", []string{"x-goog-api-key", "x"}, 200, `{"name":"models/fast","displayName":"fast","supportedGenerationMethods":[]}`},
		{"/v1beta/models/org/llama:70b", nil, 200, `{"name":"models/org/llama:70b","displayName":"org/llama:70b","supportedGenerationMethods":[]}`},
		{"/v1/models/none", []string{"anthropic-version", "x"}, 404, `"type":"not_found_error"`},
		{"/v1beta/models/none", nil, 404, `"status":"NOT_FOUND"`},
		{"/v1beta/models/" + strings.Repeat("m", 257), nil, 400, `"status":"INVALID_ARGUMENT"`},
	} {
		rec := g.do(t, request("GET", test.path, "", test.headers...))
		if got := strings.TrimSpace(rec.Body.String()); rec.Code != test.status || !strings.Contains(got, test.want) {
			t.Errorf("%.60s %v: got %d %s, want %s", test.path, test.headers, rec.Code, got, test.want)
		}
	}
}

// TestVideoModelTables: a model that makes videos shows what it takes to tokens that may make some.
func TestVideoModelTables(t *testing.T) {
	t.Parallel()
	const (
		plain = `{"id":"film","object":"model","created":1677628800,"owned_by":"openai"}`
		film  = `{"id":"film","object":"model","created":1677628800,"owned_by":"openai","video":{"seconds":["5"],"sizes":[],"resolutions":["720p"],` +
			`"inputs":[{"name":"image","max":1,"types":["image/png"]}],"audio":"never","n":1}}`
		unknown = `{"id":"other","object":"model","created":1677628800,"owned_by":"openai"}`
	)
	g := newGateway(t, nil, func(g *gateway, o *api.Options) {
		vendor := providers.Vendor{
			Name: "openai", Relay: g.upstream, Endpoints: []providers.Endpoint{chat}, Video: struct{ providers.VideoAdapter }{},
			VideoModels: func(model string) (providers.VideoModel, bool) {
				return providers.VideoModel{
					Seconds: []string{"5"}, AspectRatios: providers.AnyWord(), Resolutions: []string{"720p"},
					Inputs: []providers.VideoInput{{Types: []string{"image/png"}}},
				}, model == "film-1"
			},
		}
		o.Router = router.New(providers.Catalog{"openai": vendor}, []providers.Channel{{
			Name: "main", Vendor: "openai", Keys: []providers.Secret{"k"}, Models: map[string]string{"film": "film-1", "other": ""},
			Groups: []string{"default"},
		}}, nil)
	})
	g.tokens["sk-chat"] = &tokens.Token{ID: "chat", Group: "default", Models: []string{"*"}, Operations: []string{tokens.OperationRelay}}
	for _, tc := range []struct{ key, path, want string }{
		{goodKey, "/v1/models/film", film},
		{goodKey, "/v1/models/other", unknown},
		{goodKey, "/v1/models", `{"object":"list","data":[` + film + `,` + unknown + `]}`},
		{"sk-chat", "/v1/models/film", plain},
	} {
		rec := g.do(t, request("GET", tc.path, "", "Authorization", "Bearer "+tc.key))
		if got := strings.TrimSpace(rec.Body.String()); rec.Code != 200 || got != tc.want {
			t.Errorf("%s with %s: got %d %s, want %s", tc.path, tc.key, rec.Code, got, tc.want)
		}
	}
}

// TestUnservedFormats: a channel that does not speak the format counts as absent.
func TestUnservedFormats(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for _, test := range []struct{ path, body, want string }{
		{"/v1/messages", `{"model":"gpt-4o","messages":[],"max_tokens":1}`, `"type":"not_found_error"`},
		{"/v1/messages/count_tokens", `{"model":"gpt-4o","messages":[]}`, `"type":"not_found_error"`},
		{"/v1beta/models/gpt-4o:generateContent", geminiBody, `"status":"NOT_FOUND"`},
		{"/v1/models/gpt-4o:streamGenerateContent?alt=sse", geminiBody, `"status":"NOT_FOUND"`},
	} {
		rec := g.do(t, request("POST", test.path, test.body, "anthropic-version", "2023-06-01"))
		if rec.Code != 404 || !strings.Contains(rec.Body.String(), test.want) {
			t.Errorf("%s: got %d %s, want 404 %s", test.path, rec.Code, rec.Body, test.want)
		}
	}
}

// TestAnthropicLimitHeaders: format A has names of its own for the windows of a token.
func TestAnthropicLimitHeaders(t *testing.T) {
	t.Parallel()
	g := vendorGateway(t, "anthropic", nil)
	g.limits.grant = limits.Grant{Requests: limits.Window{Limit: 60, Reset: day.Sub(day)}}
	rec := g.do(t, request("POST", "/v1/messages", `{}`, "anthropic-version", "2023-06-01"))
	header := rec.Header()
	if rec.Code != 429 || header.Get("Anthropic-Ratelimit-Requests-Limit") != "60" ||
		header.Get("Anthropic-Ratelimit-Requests-Remaining") != "0" ||
		!strings.HasSuffix(header.Get("Anthropic-Ratelimit-Requests-Reset"), "Z") || header.Get("Anthropic-Ratelimit-Tokens-Limit") != "" ||
		header.Get("X-Ratelimit-Limit-Requests") != "" || header.Get("Retry-After") == "" ||
		!strings.Contains(rec.Body.String(), `"type":"rate_limit_error"`) {
		t.Errorf("got %d %v %s", rec.Code, header, rec.Body)
	}
}
