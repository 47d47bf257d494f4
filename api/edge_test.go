package api_test

import (
	"bytes"
	"compress/gzip"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"slices"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/klauspost/compress/zstd"

	"modelrelay/api"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage/limits"
	"modelrelay/storage/tokens"
)

const smallChat = `{"model":"gpt-4o","messages":[{"role":"user","content":"hello"}]}`

func TestCredentials(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for _, test := range []struct {
		name    string
		path    string
		headers []string
		status  int
	}{
		{"bearer", "/v1/videos/x", []string{"Authorization", "Bearer sk-good"}, 404},
		{"scheme in capitals", "/v1/videos/x", []string{"Authorization", "BEARER sk-good"}, 404},
		{"x-api-key", "/v1/videos/x", []string{"Authorization", "", "x-api-key", "sk-good"}, 404},
		{"x-vendorB-api-key", "/v1/videos/x", []string{"Authorization", "", "x-vendorB-api-key", "sk-good"}, 404},
		{"x-goog-api-key", "/v1/videos/x", []string{"Authorization", "", "x-goog-api-key", "sk-good"}, 404},
		{"query", "/v1/videos/x?key=sk-good", []string{"Authorization", ""}, 404},
		{"another scheme gives way", "/v1/videos/x", []string{"Authorization", "Basic c2s6Z29vZA==", "x-api-key", "sk-good"}, 404},
		{"bearer comes first", "/v1/videos/x", []string{"Authorization", "Bearer sk-wrong", "x-api-key", "sk-good"}, 401},
		{"none", "/v1/videos/x", []string{"Authorization", ""}, 401},
		{"wrong", "/v1/videos/x", []string{"Authorization", "Bearer sk-wrong"}, 401},
		{"without a scheme", "/v1/videos/x", []string{"Authorization", "sk-good"}, 401},
		{"disabled", "/v1/videos/x", []string{"Authorization", "Bearer sk-off"}, 401},
		{"while the store is away", "/v1/videos/x", []string{"Authorization", "Bearer sk-away"}, 503},
	} {
		rec := g.do(t, request("GET", test.path, "", test.headers...))
		if rec.Code != test.status {
			t.Errorf("%s: got %d %s, want %d", test.name, rec.Code, rec.Body, test.status)
		}
		code, _ := fault(t, rec)
		if want := map[int]string{401: "invalid_api_key", 404: "not_found", 503: "overloaded"}[test.status]; code != want {
			t.Errorf("%s: got code %q, want %q", test.name, code, want)
		}
		if test.status == 503 && rec.Header().Get("Retry-After") == "" {
			t.Errorf("%s: no Retry-After", test.name)
		}
	}
}

func TestExpiredToken(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.tokens["sk-old"] = &tokens.Token{ID: "old", Group: "default", Expires: time.Now().Add(-time.Second)}
	rec := g.do(t, request("GET", "/v1/models", "", "Authorization", "Bearer sk-old"))
	if code, _ := fault(t, rec); rec.Code != 401 || code != "invalid_api_key" {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
}

// TestEveryOperationNeedsAToken reads the operations from the OpenAPI document, so none is forgotten.
func TestEveryOperationNeedsAToken(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	rec := g.do(t, request("GET", "/openapi.json", "", "Authorization", ""))
	var document struct {
		Paths map[string]map[string]struct{ Security []map[string][]string }
	}
	decode(t, rec.Body.Bytes(), &document)
	seen := 0
	for path, operations := range document.Paths {
		if strings.HasPrefix(path, "/admin/") {
			continue // TestAdminIsClosed
		}
		for method, operation := range operations {
			seen++
			var ways []string
			for _, way := range operation.Security {
				ways = slices.AppendSeq(ways, maps.Keys(way))
			}
			if want := []string{"bearer", "apiKeyA", "apiKeyB", "apiKeyGoogle", "apiKeyQuery"}; !slices.Equal(ways, want) {
				t.Errorf("%s %s: got security %v, want one of %v", method, path, operation.Security, want)
			}
			at := strings.NewReplacer("{model}", "m", "{task_id}", "t").Replace(path)
			if rec := g.do(t, request(strings.ToUpper(method), at, "", "Authorization", "")); rec.Code != 401 {
				t.Errorf("%s %s without a token: got %d, want 401", method, path, rec.Code)
			}
		}
	}
	if seen < 7 {
		t.Errorf("got %d operations", seen)
	}
}

// TestNothingIsSniffedOrCached: browsers take every answer for what it is called, and no cache keeps what needs a token, faults
// included.
func TestNothingIsSniffedOrCached(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for name := range operationsOf(t, g) {
		method, path, _ := strings.Cut(name, " ")
		path = strings.NewReplacer("{task_id}", "video_1", "{model}", "gpt-4o").Replace(path)
		for _, key := range []string{goodKey, "sk-wrong"} {
			header := g.do(t, request(method, path, "", "Authorization", "Bearer "+key)).Header()
			if header.Get("X-Content-Type-Options") != "nosniff" || header.Get("Cache-Control") != "private, no-store" {
				t.Errorf("%s with %s: got %v", name, key, header)
			}
		}
	}
	if rec := g.do(t, request("POST", "/v1/chat/completions", smallChat)); rec.Code != 200 ||
		rec.Header().Get("Cache-Control") != "private, no-store" {
		t.Errorf("a call: got %d with %v", rec.Code, rec.Header())
	}
	for _, path := range []string{"/docs", "/docs/rapidoc-min.js", "/openapi.yaml", "/healthz", "/readyz", "/nothing"} {
		if got := g.do(t, request("GET", path, "")).Header().Get("X-Content-Type-Options"); got != "nosniff" {
			t.Errorf("%s: got %q, want nosniff", path, got)
		}
	}
}

func TestUnknownRoutes(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for _, test := range []struct {
		method, path string
		status       int
		allow, has   string
	}{
		{"POST", "/", 405, "GET, HEAD", `"code":"method_not_allowed"`},
		{"GET", "/v1/nothing", 404, "", `"code":"not_found"`},
		{"POST", "/v1/messages/nothing", 404, "", `"type":"not_found_error"`},
		{"POST", "/v1beta/nothing", 404, "", `"status":"NOT_FOUND"`},
		{"GET", "/v1/chat/completions", 405, "POST", `"code":"method_not_allowed"`},
		{"DELETE", "/v1/models", 405, "GET", `"code":"method_not_allowed"`},
		{"PUT", "/v1/videos/video_1/content", 405, "GET, HEAD", `"code":"method_not_allowed"`},
		{"PROPFIND", "/v1/nothing", 404, "", `"code":"not_found"`},
		{"POST", "/v1//chat/completions/", 401, "", `"code":"invalid_api_key"`},
		{"GET", "//v1/models/", 401, "", `"code":"invalid_api_key"`},
		{"PROPFIND", "/v1/models", 405, "GET", `"code":"method_not_allowed"`},
		{"POST", "/v1/models/a/b", 405, "GET", `"code":"method_not_allowed"`},
	} {
		rec := g.do(t, request(test.method, test.path, "", "Authorization", ""))
		if rec.Code != test.status || rec.Header().Get("Allow") != test.allow || !strings.Contains(rec.Body.String(), test.has) {
			t.Errorf("%s %s: got %d, Allow %q, %s", test.method, test.path, rec.Code, rec.Header().Get("Allow"), rec.Body)
		}
		if got := rec.Header().Get("Content-Type"); got != "application/json" {
			t.Errorf("%s %s: got Content-Type %q", test.method, test.path, got)
		}
	}
}

// TestUnknownRoutesBySDK: at a path that belongs to no format, the SDK's own headers choose the shape of the fault.
func TestUnknownRoutesBySDK(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for _, test := range []struct {
		method, path string
		headers      []string
		status       int
		has          string
	}{
		{"GET", "/v1/files", []string{"Anthropic-Version", "2023-06-01"}, 404, `"type":"not_found_error"`},
		{"GET", "/v1/files/file_1", []string{"Anthropic-Version", "2023-06-01"}, 404, `"type":"not_found_error"`},
		{"GET", "/v1/files", nil, 404, `"code":"not_found"`},
		{"POST", "/v1/cachedContents", []string{"X-Goog-Api-Key", goodKey}, 404, `"status":"NOT_FOUND"`},
		{"POST", "/upload/v1beta/files", nil, 404, `"status":"NOT_FOUND"`},
		{"GET", "/v1alpha/models", nil, 404, `"status":"NOT_FOUND"`},
		{"GET", "/v1/chat/completions", []string{"Anthropic-Version", "2023-06-01"}, 405, `"type":"invalid_request_error","message"`},
		{"GET", "/v1/responses", []string{"Connection", "Upgrade", "Upgrade", "websocket"}, 426, `"code":"method_not_allowed"`},
	} {
		if rec := g.do(t, request(test.method, test.path, "", test.headers...)); rec.Code != test.status ||
			!strings.Contains(rec.Body.String(), test.has) {
			t.Errorf("%s %s: got %d %s", test.method, test.path, rec.Code, rec.Body)
		}
	}
}

func TestRequestID(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for given, kept := range map[string]bool{
		"my-id_1.2:3/4": true, strings.Repeat("a", 128): true, strings.Repeat("a", 129): false, "with space": false,
		"new\nline": false, "": false, `quo"te`: false, "é": false,
	} {
		req := request("GET", "/v1/models", "")
		req.Header["X-Request-Id"] = []string{given}
		got := g.do(t, req).Header().Get("X-Request-Id")
		if (got == given) != kept || got == "" {
			t.Errorf("%q: got %q, want kept %v", given, got, kept)
		}
	}
}

func TestBodies(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.MaxBody = 200 })
	long := `{"model":"gpt-4o","messages":[],"user":"` + strings.Repeat("a", 200) + `"}`
	exact := `{"model":"gpt-4o","messages":[],"user":"` + strings.Repeat("a", 200-42) + `"}`
	chunked := func(req *http.Request) *http.Request {
		req.ContentLength = -1
		return req
	}
	cut := request("POST", "/v1/chat/completions", smallChat)
	cut.ContentLength = 100
	for _, test := range []struct {
		name   string
		req    *http.Request
		status int
		code   string
	}{
		{"too long", request("POST", "/v1/chat/completions", long), 413, "request_too_large"},
		{"too long, chunked", chunked(request("POST", "/v1/chat/completions", long)), 413, "request_too_large"},
		{"just not too long", request("POST", "/v1/chat/completions", exact), 200, ""},
		{"just not too long, chunked", chunked(request("POST", "/v1/chat/completions", exact)), 200, ""},
		{"not compressed", request("POST", "/v1/chat/completions", smallChat, "Content-Encoding", "gzip"), 400, "invalid_request"},
		{"gzip", request("POST", "/v1/chat/completions", compressed(t, "gzip", smallChat), "Content-Encoding", "gzip"), 200, ""},
		{"zstd", request("POST", "/v1/chat/completions", compressed(t, "zstd", smallChat), "Content-Encoding", "ZSTD"), 200, ""},
		{
			"cut off and compressed", request("POST", "/v1/chat/completions", compressed(t, "gzip", smallChat)[:30], "Content-Encoding", "gzip"),
			400, "invalid_request",
		},
		{
			"too long, decoded", request("POST", "/v1/chat/completions", compressed(t, "gzip", long), "Content-Encoding", "gzip"), 413,
			"request_too_large",
		},
		{"another encoding", request("POST", "/v1/chat/completions", smallChat, "Content-Encoding", "br"), 415, "unsupported_media_type"},
		{"identity", request("POST", "/v1/chat/completions", smallChat, "Content-Encoding", "identity"), 200, ""},
		{"another content type", request("POST", "/v1/chat/completions", smallChat, "Content-Type", "text/plain"), 200, ""},
		{"cut off", cut, 400, "invalid_request"},
		{"empty", request("POST", "/v1/chat/completions", ""), 400, "invalid_request"},
		{"too long for a video", request("POST", "/v1/videos", long), 413, "request_too_large"},
	} {
		rec := g.do(t, test.req)
		if rec.Code != test.status {
			t.Errorf("%s: got %d %s, want %d", test.name, rec.Code, rec.Body, test.status)
			continue
		}
		if test.code != "" {
			if code, _ := fault(t, rec); code != test.code {
				t.Errorf("%s: got %q, want %q", test.name, code, test.code)
			}
		}
	}
	if len(exact) != 200 {
		t.Fatalf("the exact body has %d bytes", len(exact))
	}
}

// compressed is a text in an encoding.
func compressed(t *testing.T, encoding, text string) string {
	t.Helper()
	var out bytes.Buffer
	var w io.WriteCloser = gzip.NewWriter(&out)
	if encoding == "zstd" {
		var err error
		if w, err = zstd.NewWriter(&out); err != nil {
			t.Fatal(err)
		}
	}
	_, err := io.WriteString(w, text)
	if err = errors.Join(err, w.Close()); err != nil {
		t.Fatal(err)
	}
	return out.String()
}

func TestLimits(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.limits.grant = limits.Grant{
		Allowed: true, Requests: limits.Window{Limit: 60, Remaining: 59, Reset: time.Second},
		Tokens: limits.Window{Limit: 1000, Remaining: 900, Reset: 359500 * time.Millisecond},
	}
	want := map[string]string{
		"x-ratelimit-limit-requests": "60", "x-ratelimit-remaining-requests": "59", "x-ratelimit-reset-requests": "1s",
		"x-ratelimit-limit-tokens": "1000", "x-ratelimit-remaining-tokens": "900", "x-ratelimit-reset-tokens": "6m0s",
	}
	rec := g.do(t, request("POST", "/v1/chat/completions", smallChat))
	for name, value := range want {
		if got := rec.Header().Get(name); got != value {
			t.Errorf("%s: got %q, want %q", name, got, value)
		}
	}
	if rec.Code != 200 || len(g.limits.costs) != 1 || g.limits.costs[0] != (limits.Cost{Requests: 1, Tokens: len(smallChat) / 4}) {
		t.Errorf("got %d, costs %v", rec.Code, g.limits.costs)
	}

	g.do(t, request("GET", "/v1/models", ""))
	if len(g.limits.costs) != 1 {
		t.Error("a read was counted")
	}

	g.limits.grant = limits.Grant{RetryAfter: 1500 * time.Millisecond, Requests: limits.Window{Limit: 60, Reset: time.Minute}}
	for _, req := range []*http.Request{
		request("POST", "/v1/chat/completions", smallChat), request("POST", "/v1/videos", `{"model":"sora-2","prompt":"p"}`),
	} {
		rec = g.do(t, req)
		if code, _ := fault(t, rec); rec.Code != 429 || code != "rate_limit_exceeded" {
			t.Errorf("got %d %s", rec.Code, rec.Body)
		}
		if got := rec.Header().Get("Retry-After"); got != "2" {
			t.Errorf("got Retry-After %q, want 2", got)
		}
		if got := rec.Header().Get("x-ratelimit-remaining-requests"); got != "0" {
			t.Errorf("got remaining %q, want 0", got)
		}
		if got := rec.Header().Get("x-ratelimit-limit-tokens"); got != "" {
			t.Errorf("got a token limit %q of a token without one", got)
		}
	}
}

func TestPanicIsAnsweredAndLogged(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) { panic("boom") }, nil)
	rec := g.do(t, request("POST", "/v1/chat/completions", smallChat))
	if code, _ := fault(t, rec); rec.Code != 500 || code != "internal_error" {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
	if log := g.log.String(); !strings.Contains(log, "boom") || !strings.Contains(log, "edge_test.go") {
		t.Errorf("no panic and stack in the log: %s", log)
	}
	if strings.Contains(rec.Body.String(), "boom") {
		t.Error("the client saw the panic")
	}
}

// TestAccessLogHasNoContent: one line per request, with neither credential nor prompt nor query.
func TestAccessLogHasNoContent(t *testing.T) {
	t.Parallel()
	answer := `{"choices":[{"message":{"content":"ANSWER"}}],"usage":{"prompt_tokens":3,"completion_tokens":4,"cached":2}}`
	g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		return upstreamAnswer("application/json", answer), nil
	}, nil)
	g.do(t, request("POST", "/v1/chat/completions?trace=QUERY&key="+goodKey, strings.Replace(smallChat, "hello", "PROMPT", 1), "X-Request-Id",
		"my-id"))
	g.do(t, request("POST", "/v1/chat/completions", `{"model":"gpt-4o","messages":"PROMPT"}`))
	g.do(t, request("GET", "/v1/videos/UNSEEN?key=QUERY", ""))
	lines := strings.Split(strings.TrimSpace(g.log.String()), "\n")
	if len(lines) != 3 {
		t.Fatalf("got %d lines: %s", len(lines), g.log)
	}
	for _, secret := range []string{"PROMPT", "ANSWER", "QUERY", "UNSEEN", goodKey, "up-key"} {
		if strings.Contains(g.log.String(), secret) {
			t.Errorf("the log holds %s: %s", secret, g.log)
		}
	}
	var line map[string]any
	decode(t, []byte(lines[0]), &line)
	for key, want := range map[string]any{
		"msg": "request", "method": "POST", "operation": "/v1/chat/completions", "status": 200.0, "bytes": float64(len(answer)),
		"client_request_id": "my-id", "token": "good", "model": "gpt-4o", "channel": "main", "attempts": 1.0,
		"input_tokens": 3.0, "output_tokens": 4.0, "cached_tokens": 2.0,
	} {
		if line[key] != want {
			t.Errorf("%s: got %v, want %v", key, line[key], want)
		}
	}
	for _, key := range []string{"before_us", "first_byte_ms"} {
		if _, ok := line[key].(float64); !ok || strings.Contains(lines[1], key) {
			t.Errorf("%s: got %v, want a time, and none in a line of a request that was refused: %s", key, line[key], lines[1])
		}
	}
}

// TestSeenReportsRequests: a counter receives the outcome of every request except probes, and the number of open ones.
func TestSeenReportsRequests(t *testing.T) {
	t.Parallel()
	var seen []edge.Seen
	var during api.Open
	answer := `{"choices":[{"message":{"content":"x"}}],"usage":{"prompt_tokens":3,"completion_tokens":4}}`
	var g *gateway
	g = newGateway(t, func(_ context.Context, _ providers.Target, call *providers.Call) (*http.Response, error) {
		if during = g.Open(); call.Model == "fast" {
			return nil, &providers.Fault{Kind: providers.Overloaded, Message: "full"}
		}
		return upstreamAnswer("application/json", answer), nil
	}, func(_ *gateway, o *api.Options) { o.Seen = func(s edge.Seen) { seen = append(seen, s) } })
	g.do(t, request("POST", "/v1/chat/completions", smallChat))
	g.do(t, request("POST", "/v1/chat/completions", strings.Replace(smallChat, "gpt-4o", "fast", 1)))
	g.limits.grant = limits.Grant{RetryAfter: time.Second}
	g.do(t, request("POST", "/v1/chat/completions", smallChat))
	g.do(t, request("BREW", "/coffee", ""))
	g.do(t, request("GET", "/healthz", ""))
	if len(seen) != 4 {
		t.Fatalf("got %d requests, want 4", len(seen))
	}
	for i, want := range []edge.Seen{
		{
			Method: "POST", Route: "/v1/chat/completions", Status: 200, Format: providers.OpenAI,
			Counted: edge.Counted{
				Operation: providers.Chat, Model: "gpt-4o", Channel: "main", Bill: edge.Bill{Usage: providers.Usage{Input: 3, Output: 4}},
			},
		},
		{
			Method: "POST", Route: "/v1/chat/completions", Status: 503, Format: providers.OpenAI, Fault: providers.Overloaded,
			Counted: edge.Counted{Operation: providers.Chat, Model: "fast"},
		},
		{
			Method: "POST", Route: "/v1/chat/completions", Status: 429, Format: providers.OpenAI, Fault: providers.RateLimited,
			Counted: edge.Counted{Refused: edge.LimitConcurrency},
		},
		{Method: "BREW", Status: 404, Format: providers.OpenAI, Fault: providers.NotFound},
	} {
		got := seen[i]
		if got.Took <= 0 || (got.Sent > 0) != (i < 2) || (got.First > 0) != (i == 0) || got.First > got.Took {
			t.Errorf("%d: got times %v, %v, %v", i, got.Took, got.Sent, got.First)
		}
		got.Times = edge.Times{}
		if got != want {
			t.Errorf("%d: got %+v\nwant %+v", i, got, want)
		}
	}
	if during != (api.Open{Requests: 1}) || g.Open() != (api.Open{}) {
		t.Errorf("got %+v open during a call and %+v after it", during, g.Open())
	}
}

// TestHealth: a process stays in service while relayed calls work. It reports which of its parts does not work, and answers for the part
// that is asked for.
func TestHealth(t *testing.T) {
	t.Parallel()
	well, failing := check(nil), check(errors.New("connection refused"))
	for name, test := range map[string]struct {
		checks              []api.Check
		plain, relay, video int
		has                 []string
	}{
		"all well": {
			[]api.Check{{Name: "tokens", For: api.RelayPart, Check: well}, {Name: "redis", For: api.VideoPart, Check: well}},
			200, 200, 200,
			[]string{`"status":"ok","parts":{"relay":"ok","video":"ok"}`, `"redis":{"status":"ok"`, `latency_ms`},
		},
		"tasks have to wait": {
			[]api.Check{{Name: "tokens", For: api.RelayPart, Check: well}, {Name: "temporal", For: api.VideoPart, Check: failing}},
			200, 200, 503,
			[]string{`"status":"degraded","parts":{"relay":"ok","video":"error"}`, `"temporal":{"status":"error","error":"connection refused"`},
		},
		"calls fail": {
			[]api.Check{{Name: "tokens", For: api.RelayPart, Check: failing}, {Name: "redis", For: api.VideoPart, Check: failing}},
			503, 503, 503,
			[]string{`"status":"error","parts":{"relay":"error","video":"error"}`},
		},
		"nothing needs it": {[]api.Check{{Name: "x", Check: failing}}, 200, 200, 200, []string{`"status":"ok"`, `"x":{"status":"error"`}},
	} {
		g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.Health = test.checks })
		for path, want := range map[string]int{"": test.plain, "?for=relay": test.relay, "?for=video": test.video, "?for=films": 400} {
			rec := g.do(t, request("GET", "/readyz"+path, "", "Authorization", ""))
			if rec.Code != want || (rec.Header().Get("Retry-After") != "") != (want == 503) {
				t.Errorf("%s, %q: got %d with %v, want %d", name, path, rec.Code, rec.Header(), want)
			}
			for _, part := range test.has {
				if want != 400 && !strings.Contains(rec.Body.String(), part) {
					t.Errorf("%s: got %s, want %s in it", name, rec.Body, part)
				}
			}
		}
		if rec := g.do(t, request("GET", "/readyz", "", "Authorization", "")); !strings.Contains(rec.Body.String(), `"version":"test"`) {
			t.Errorf("%s: got %s without the version", name, rec.Body)
		}
		if rec := g.do(t, request("GET", "/healthz", "", "Authorization", "")); rec.Code != 200 {
			t.Errorf("%s: healthz got %d", name, rec.Code)
		}
		g.Drain()
		if rec := g.do(t, request("GET", "/readyz", "")); rec.Code != 503 || !strings.Contains(rec.Body.String(), "stopping") {
			t.Errorf("%s: draining got %d %s", name, rec.Code, rec.Body)
		}
	}
}

// TestRoot: the address answers: a browser gets a page, others a line.
func TestRoot(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	for _, test := range []struct{ method, accept, kind string }{
		{"GET", "", "text/plain; charset=utf-8"},
		{"GET", "*/*", "text/plain; charset=utf-8"},
		{"GET", "text/html,application/xhtml+xml,*/*;q=0.8", "text/html; charset=utf-8"},
		{"HEAD", "", "text/plain; charset=utf-8"},
	} {
		rec := g.do(t, request(test.method, "/", "", "Authorization", "", "Accept", test.accept))
		page := test.kind != "text/plain; charset=utf-8"
		if rec.Code != 200 || rec.Header().Get("Content-Type") != test.kind ||
			(rec.Header().Get("Content-Security-Policy") != "default-src 'none'; sandbox") != page ||
			strings.HasPrefix(rec.Body.String(), "<!doctype html>") != page {
			t.Errorf("%s with %q: got %d, %v, %s", test.method, test.accept, rec.Code, rec.Header(), rec.Body)
		}
		if strings.Contains(rec.Body.String(), "://") {
			t.Errorf("the page names another host: %s", rec.Body)
		}
	}
}

// TestReadyIsBounded: a check that hangs is given up, and callers share one look a second.
func TestReadyIsBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		looks := 0
		g := newGateway(t, nil, func(_ *gateway, o *api.Options) {
			o.Health = []api.Check{{Name: "slow", For: api.RelayPart, Check: func(ctx context.Context) error {
				looks++
				<-ctx.Done()
				return ctx.Err()
			}}}
		})
		for range 5 {
			if rec := g.do(t, request("GET", "/readyz", "")); rec.Code != 503 {
				t.Errorf("got %d, want 503", rec.Code)
			}
		}
		if looks != 1 {
			t.Errorf("got %d looks, want 1", looks)
		}
	})
}

func check(err error) func(context.Context) error { return func(context.Context) error { return err } }

func TestDocs(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	page := g.do(t, request("GET", "/docs/api", "", "Authorization", ""))
	if page.Code != 200 || strings.Contains(page.Body.String(), "://") {
		t.Errorf("got %d, and the page may not name another host: %s", page.Code, page.Body)
	}
	policy := page.Header().Get("Content-Security-Policy")
	if !strings.Contains(policy, "default-src 'none'") || strings.Contains(policy, "http") || strings.Contains(policy, "*") {
		t.Errorf("got policy %q", policy)
	}
	for path, kind := range map[string]string{
		"/docs/rapidoc-min.js": "text/javascript; charset=utf-8", "/openapi.json": "application/json", "/openapi.yaml": "application/yaml",
	} {
		rec := g.do(t, request("GET", path, "", "Authorization", ""))
		if rec.Code != 200 || rec.Header().Get("Content-Type") != kind || rec.Body.Len() < 1000 {
			t.Errorf("%s: got %d, %q, %d bytes", path, rec.Code, rec.Header().Get("Content-Type"), rec.Body.Len())
		}
		if strings.HasSuffix(path, ".json") && !json.Valid(rec.Body.Bytes()) {
			t.Errorf("%s is not JSON", path)
		}
	}
}

func TestModels(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	list := func(key string) []string {
		rec := g.do(t, request("GET", "/v1/models", "", "Authorization", "Bearer "+key))
		var body struct {
			Object string
			Data   []struct {
				ID, Object string
				Created    int64
				OwnedBy    string `json:"owned_by"`
			}
		}
		decode(t, rec.Body.Bytes(), &body)
		if rec.Code != 200 || body.Object != "list" || body.Data == nil {
			t.Errorf("got %d %s", rec.Code, rec.Body)
		}
		var ids []string
		for _, model := range body.Data {
			ids = append(ids, model.ID)
			if model.Object != "model" || model.OwnedBy != "openai" || model.Created <= 0 {
				t.Errorf("got entry %+v", model)
			}
		}
		return ids
	}
	for key, want := range map[string]string{goodKey: "fast gpt-4o open org/llama:70b sora-2", "sk-few": "gpt-4o"} {
		if got := strings.Join(list(key), " "); got != want {
			t.Errorf("%s: got %s, want %s", key, got, want)
		}
	}
	g.tokens["sk-none"] = &tokens.Token{ID: "none", Group: "empty"}
	if got := list("sk-none"); got != nil {
		t.Errorf("a group without channels: got %v", got)
	}
	for path, status := range map[string]int{
		"/v1/models/gpt-4o": 200, "/v1/models/org/llama:70b": 200, "/v1/models/org%2Fllama%3A70b": 200, "/v1/models/other": 404,
	} {
		rec := g.do(t, request("GET", path, ""))
		if rec.Code != status {
			t.Errorf("%s: got %d %s, want %d", path, rec.Code, rec.Body, status)
		}
		if status == 404 {
			if code, _ := fault(t, rec); code != "model_not_found" {
				t.Errorf("%s: got %q", path, code)
			}
		}
	}
	if rec := g.do(t, request("GET", "/v1/models/sora-2", "", "Authorization", "Bearer sk-few")); rec.Code != 404 {
		t.Errorf("a model the token may not see: got %d", rec.Code)
	}
}
