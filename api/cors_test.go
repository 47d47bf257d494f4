package api_test

import (
	"strings"
	"testing"

	"modelrelay/api"
)

// TestCORS: pages of the origins that the operator names read answers and faults, and preflight requests allow it; no
// page gets the browser's own credentials, and no other origin or path is opened.
func TestCORS(t *testing.T) {
	t.Parallel()
	const app = "https://app.example.com"
	const varies = "Origin, Access-Control-Request-Method, Access-Control-Request-Headers"
	asks := []string{
		"Authorization", "", "Access-Control-Request-Method", "POST", "Access-Control-Request-Headers",
		"authorization,content-type,x-stainless-os",
	}
	for _, test := range []struct {
		name          string
		origins       []string
		method, path  string
		origin        string
		headers       []string
		status        int
		allowed, vary string
	}{
		{"preflight", []string{app}, "OPTIONS", "/v1/chat/completions", app, asks, 204, app, varies},
		{"preflight in format B", []string{app}, "OPTIONS", "/v1beta/models/m:generateContent", app, asks, 204, app, varies},
		{"preflight of every origin", []string{"*"}, "OPTIONS", "/v1/models", "http://localhost:3000", asks, 204, "*", varies},
		{"preflight of another origin", []string{app}, "OPTIONS", "/v1/models", "https://evil.example.com", asks, 204, "", varies},
		{"preflight of an origin that begins alike", []string{app}, "OPTIONS", "/v1/models", app + ".evil.test", asks, 204, "", varies},
		{"preflight of a sandbox", []string{app}, "OPTIONS", "/v1/models", "null", asks, 204, "", varies},
		{"preflight of the operator's paths", []string{"*"}, "OPTIONS", "/admin/tokens", app, asks, 405, "", ""},
		{"no preflight", []string{app}, "OPTIONS", "/v1/models", app, nil, 405, app, "Origin"},
		{"without origins", nil, "OPTIONS", "/v1/models", app, asks, 405, "", ""},
		{"answer", []string{app}, "GET", "/v1/models", app, nil, 200, app, "Origin"},
		{"answer without origins", nil, "GET", "/v1/models", app, nil, 200, "", ""},
		{"answer to no browser", []string{app}, "GET", "/v1/models", "", nil, 200, "", "Origin"},
		{"refusal", []string{app}, "GET", "/v1/models", app, []string{"Authorization", "Bearer sk-wrong"}, 401, app, "Origin"},
		{"unknown path", []string{app}, "GET", "/v1/nothing", app, nil, 404, app, "Origin"},
		{"unknown task", []string{app}, "GET", "/v1/videos/video_1/content", app, nil, 404, app, "Origin"},
		{"health", []string{"*"}, "GET", "/healthz", app, nil, 200, "", ""},
	} {
		g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Origins = test.origins })
		rec := g.do(t, request(test.method, test.path, "", append([]string{"Origin", test.origin}, test.headers...)...))
		header := rec.Header()
		if rec.Code != test.status || header.Get("Access-Control-Allow-Origin") != test.allowed || header.Get("Vary") != test.vary {
			t.Errorf("%s: got %d %v, want %d for %q", test.name, rec.Code, header, test.status, test.allowed)
		}
		if header.Get("Access-Control-Allow-Credentials") != "" {
			t.Errorf("%s: credentials are allowed", test.name)
		}
		preflight := test.status == 204 && test.allowed != ""
		if got := header.Get("Access-Control-Allow-Headers"); (got == asks[5]) != preflight {
			t.Errorf("%s: got allowed headers %q", test.name, got)
		}
		if got := header.Get("Access-Control-Allow-Methods"); (got == "POST") != preflight {
			t.Errorf("%s: got methods %q", test.name, got)
		}
		exposed := strings.ToLower(header.Get("Access-Control-Expose-Headers"))
		for _, name := range []string{"x-request-id", "retry-after", "x-ratelimit-remaining-requests", "preference-applied"} {
			if strings.Contains(exposed, name) != (test.allowed != "" && !preflight) {
				t.Errorf("%s: got exposed %q", test.name, exposed)
			}
		}
		if preflight && strings.Contains(g.log.String(), "request") {
			t.Errorf("%s: logged %s", test.name, g.log)
		}
	}
}
