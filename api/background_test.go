package api_test

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"io"
	"maps"
	"net/http"
	"net/http/httptest"
	"regexp"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/iotest"
	"time"
	"weak"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/providers/sse"
	"modelrelay/storage"
	"modelrelay/storage/eventlog"
	"modelrelay/storage/limits"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const (
	chatBody = `{"model":"gpt-4o","messages":[],"metadata":{"order":"7"}}`
	callID   = "call_00000000000000000000000000"
	callPath = "/v1/tasks/" + callID
	// responseID is a response with background: true.
	responseID = "resp_00000000000000000000000000"
)

// async is a chat call in the background.
func async(headers ...string) *http.Request {
	return request("POST", "/v1/chat/completions", chatBody, append([]string{"Prefer", "respond-async"}, headers...)...)
}

// endedCall is a call with a stored answer.
func endedCall(g *gateway, status int, body string) tasks.Task {
	g.archive["answer"] = []byte(body)
	task := tasks.Task{
		ID: callID, Token: "good", Format: providers.OpenAI, Operation: "POST /v1/chat/completions",
		Request: providers.VideoRequest{Model: "gpt-4o"},
		State:   workflows.Completed, CreatedAt: day,
	}
	task.CompletedAt, task.ExpiresAt = time.Now(), time.Now().Add(time.Hour)
	task.Outputs = []activities.Output{{Object: "answer", ContentType: "application/json", Size: int64(len(body)), SHA256: "abc"}}
	task.Call = &activities.Answered{
		Status: status, Header: http.Header{"X-Request-Id": {"req-create"}, "X-Relay-Fields": {"x"}}, Usage: providers.Usage{Input: 3, Output: 4},
		Cost: 70, Priced: true,
		CallProgress: activities.CallProgress{Attempts: 2, StartedAt: day},
	}
	if status/100 != 2 {
		task.State, task.Failure = workflows.Failed, &providers.VideoFailure{Code: "bad", Message: "no"}
	}
	return task
}

func TestAsyncCreate(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		req     *http.Request
		applied string
	}{
		"plain":    {async(), "respond-async"},
		"any case": {request("POST", "/v1/chat/completions", chatBody, "Prefer", "foo=bar, Respond-ASYNC"), "respond-async"},
		"a stream": {request("POST", "/v1/chat/completions", `{"model":"gpt-4o","messages":[],"stream":true}`, "Prefer",
			"respond-async, wait=60"), "respond-async"},
		"no time to wait":   {async("Prefer", "respond-async, wait=0"), "respond-async, wait=0"},
		"below the version": {request("POST", "/v1//chat/completions/", chatBody, "Prefer", "respond-async"), "respond-async"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
				t.Error("the create sends the call")
				return upstreamAnswer("application/json", "{}"), nil
			}, nil)
			rec := g.do(t, test.req)
			header := rec.Header()
			if rec.Code != http.StatusAccepted || header.Get("Location") != callPath || header.Get("Retry-After") != "2" ||
				header.Get("Preference-Applied") != test.applied || !strings.Contains(header.Get("Cache-Control"), "no-store") ||
				header.Get("X-Request-Id") == "" {
				t.Errorf("got %d %v: %s", rec.Code, header, rec.Body)
			}
			if len(g.ledger.entries) != 0 {
				t.Errorf("the create is charged: %+v", g.ledger.entries)
			}
		})
	}
	g := newGateway(t, nil, nil)
	var shown map[string]any
	decode(t, g.do(t, async("Idempotency-Key", "k", "X-Webhook-Url", "https://client.example/hook", "X-Stainless-Retry-Count",
		"1")).Body.Bytes(), &shown)
	want := []string{
		"attempts", "completed_at", "cost", "created_at", "error", "expires_at", "id", "kind", "metadata", "model", "object", "operation",
		"queue_position",
		"result", "stage", "started_at", "status", "usage",
	}
	if got := slices.Sorted(maps.Keys(shown)); !slices.Equal(got, want) {
		t.Errorf("the task has %q, want %q", got, want)
	}
	if shown["status"] != "queued" || shown["stage"] != "waiting" || shown["kind"] != "call" ||
		shown["operation"] != "POST /v1/chat/completions" || shown["metadata"].(map[string]any)["order"] != "7" {
		t.Errorf("got %v", shown)
	}
	create := g.tasks.creates[0]
	if create.IdempotencyKey != "k" || !create.Repeat || create.Call == nil || create.Call.WebhookURL != "https://client.example/hook" ||
		string(create.Request.Inputs[0].Data) != chatBody {
		t.Errorf("created %+v with %+v", create, create.Call)
	}
	staged, err := json.Marshal(create.Call)
	if err != nil || bytes.Contains(staged, []byte(goodKey)) {
		t.Errorf("the stored call has the key: %s, %v", staged, err)
	}
}

// TestAsyncMetadata: a task has metadata up to a bound; a call with more is created without it.
func TestAsyncMetadata(t *testing.T) {
	t.Parallel()
	for size, shown := range map[int]bool{16<<10 - len(`{"m":""}`): true, 16 << 10: false} {
		g := newGateway(t, nil, nil)
		metadata := `{"m":"` + strings.Repeat("x", size) + `"}`
		body := strings.Replace(chatBody, `{"order":"7"}`, metadata, 1)
		rec := g.do(t, request("POST", "/v1/chat/completions", body, "Prefer", "respond-async"))
		var task struct{ Metadata json.RawMessage }
		decode(t, rec.Body.Bytes(), &task)
		want := "{}"
		if shown {
			want = metadata
		}
		if rec.Code != http.StatusAccepted || string(task.Metadata) != want || string(g.tasks.creates[0].Request.Inputs[0].Data) != body {
			t.Errorf("%d bytes: got %d, metadata of %d bytes", size, rec.Code, len(task.Metadata))
		}
	}
}

// TestAsyncRefusals: a refusal is that of the synchronous call, and creates nothing.
func TestAsyncRefusals(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		path, body string
		headers    []string
		limit      *limits.Grant
	}{
		"no model":         {path: "/v1/chat/completions", body: `{"messages":[]}`},
		"not JSON":         {path: "/v1/chat/completions", body: `{`},
		"unknown model":    {path: "/v1/chat/completions", body: `{"model":"none","messages":[]}`},
		"model forbidden":  {path: "/v1/chat/completions", body: chatBody, headers: []string{"Authorization", "Bearer sk-only"}},
		"unknown key":      {path: "/v1/chat/completions", body: chatBody, headers: []string{"Authorization", "Bearer sk-none"}},
		"disabled":         {path: "/v1/chat/completions", body: chatBody, headers: []string{"Authorization", "Bearer sk-off"}},
		"store away":       {path: "/v1/chat/completions", body: chatBody, headers: []string{"Authorization", "Bearer sk-away"}},
		"limit":            {path: "/v1/chat/completions", body: chatBody, limit: &limits.Grant{RetryAfter: time.Second}},
		"no such endpoint": {path: "/v1/embeddings", body: `{"model":"gpt-4o","input":"x"}`},
		"too large":        {path: "/v1/chat/completions", body: `{"model":"gpt-4o","messages":["` + strings.Repeat("x", 4<<10) + `"]}`},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, func(g *gateway, o *api.Options) {
				only := *g.tokens[goodKey]
				only.ID, only.Models = "only", []string{"claude-*"}
				g.tokens["sk-only"] = &only
				o.MaxBody = 2 << 10
				if test.limit != nil {
					g.limits.grant = *test.limit
				}
			})
			sync := g.do(t, request("POST", test.path, test.body, test.headers...))
			rec := g.do(t, request("POST", test.path, test.body, append([]string{"Prefer", "respond-async, wait=5"}, test.headers...)...))
			if sync.Code < 400 || rec.Code != sync.Code || rec.Body.String() != sync.Body.String() || len(g.tasks.creates) != 0 {
				t.Errorf("got %d %s\nwant %d %s; created %d", rec.Code, rec.Body, sync.Code, sync.Body, len(g.tasks.creates))
			}
			for _, header := range []string{"Location", "Preference-Applied"} {
				if rec.Header().Get(header) != "" {
					t.Errorf("the refusal has %s", header)
				}
			}
		})
	}
}

func TestAsyncWait(t *testing.T) {
	t.Parallel()
	for _, wait := range []string{"x", "-1", "1.5", `""`, "99999999999999999999"} {
		g := newGateway(t, nil, nil)
		rec := g.do(t, async("Prefer", "respond-async, wait="+wait))
		if code, param := fault(t, rec); rec.Code != http.StatusBadRequest || param != "Prefer" || len(g.tasks.creates) != 0 {
			t.Errorf("wait=%s: got %d %s %s", wait, rec.Code, code, param)
		}
	}
	for name, test := range map[string]struct {
		status int
		wait   string
		header map[string]string
	}{
		"completed": {status: 200, wait: "5", header: map[string]string{"Preference-Applied": "respond-async, wait=5", "X-Should-Retry": ""}},
		"failed": {status: 400, wait: "100", header: map[string]string{
			"Preference-Applied": "respond-async, wait=60",
			"X-Should-Retry":     "false", "Retry-After": "",
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, nil)
			answer := make(chan *httptest.ResponseRecorder, 1)
			go func() { answer <- g.do(t, async("Prefer", "respond-async, wait="+test.wait)) }()
			testwait.Eventually(t, "a watcher", 10*time.Second, func() bool { return g.tasks.watchers() == 1 })
			g.tasks.put(endedCall(g, test.status, `{"done":true}`))
			rec := <-answer
			test.header["Content-Location"], test.header["Location"], test.header["X-Request-Id"] = callPath+"/result", "", "req-create"
			if rec.Code != test.status || rec.Body.String() != `{"done":true}` {
				t.Errorf("got %d %s", rec.Code, rec.Body)
			}
			for name, want := range test.header {
				if got := rec.Header().Get(name); got != want {
					t.Errorf("%s: got %q, want %q", name, got, want)
				}
			}
		})
	}
}

// TestAsyncForbidden: every entry point of a group that forbids background calls.
func TestAsyncForbidden(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) {
		o.Forbids = func(string) []string { return []string{providers.ForbidBackground} }
	})
	rec := g.do(t, async())
	if _, param := fault(t, rec); rec.Code != http.StatusBadRequest || param != "background" || len(g.tasks.creates) != 0 {
		t.Errorf("got %d %s", rec.Code, rec.Body)
	}
	if rec := g.do(t, request("POST", "/v1/chat/completions", chatBody, "Prefer", "wait=5")); rec.Code != http.StatusOK {
		t.Errorf("a call in the foreground: got %d %s", rec.Code, rec.Body)
	}
}

// TestResponseFlags: what asks for a response in the background, or for one that is not stored, is a boolean.
func TestResponseFlags(t *testing.T) {
	t.Parallel()
	for member, param := range map[string]string{
		`"background":"true"`: "background", `"background":1`: "background", `"background":"false"`: "background",
		`"background":[true]`: "background",
		`"Background":true`:   "Background", `"store":"false"`: "store", `"store":0`: "store", `"background":true,"store":false`: "store",
		`"background":null`: "", `"background":false,"store":false`: "",
	} {
		for _, forbids := range [][]string{nil, {providers.ForbidBackground}} {
			s := newStoring(t, func(o *api.Options) { o.Forbids = func(string) []string { return forbids } })
			rec := s.do(t, request("POST", "/v1/responses", `{"model":"gpt","input":"x",`+member+`}`))
			if param == "" {
				if rec.Code != http.StatusOK || !strings.Contains(s.sent(), member) {
					t.Errorf("%s: got %d %s, sent %s", member, rec.Code, rec.Body, s.sent())
				}
				continue
			}
			if _, named := fault(t, rec); rec.Code != http.StatusBadRequest || named != param || s.sent() != "" || len(s.tasks.creates) != 0 {
				t.Errorf("%s: got %d %s, sent %q", member, rec.Code, rec.Body, s.sent())
			}
		}
	}
}

func TestTaskResult(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.tasks.put(endedCall(g, 200, `{"done":true}`))
	get := func(method string, headers ...string) *httptest.ResponseRecorder {
		return g.do(t, request(method, callPath+"/result", "", headers...))
	}
	rec := get("GET")
	if rec.Code != 200 || rec.Body.String() != `{"done":true}` || rec.Header().Get("Etag") != `"abc"` ||
		rec.Header().Get("Content-Type") != "application/json" ||
		rec.Header().Get("X-Request-Id") != "req-create" || rec.Header().Get("X-Relay-Fields") != "x" ||
		rec.Header().Get("Cache-Control") != "private, no-store" {
		t.Errorf("got %d %v: %s", rec.Code, rec.Header(), rec.Body)
	}
	if rec := get("HEAD"); rec.Code != 200 || rec.Body.Len() != 0 || rec.Header().Get("Content-Length") != "13" {
		t.Errorf("HEAD: got %d %v", rec.Code, rec.Header())
	}
	if rec := get("GET", "If-None-Match", `"abc"`); rec.Code != http.StatusNotModified {
		t.Errorf("a match: got %d", rec.Code)
	}
	if rec := get("GET", "Range", "bytes=2-5"); rec.Code != http.StatusPartialContent || rec.Body.String() != "done" {
		t.Errorf("a range: got %d %s", rec.Code, rec.Body)
	}
	if rec := g.do(t, request("GET", callPath+"/result", "", "Authorization", "Bearer "+otherKey)); rec.Code != 404 {
		t.Errorf("another token: got %d", rec.Code)
	}
	for name, test := range map[string]struct {
		change func(*tasks.Task)
		status int
		header map[string]string
		code   string
	}{
		"running": {
			func(task *tasks.Task) { task.State, task.Outputs, task.Call = workflows.InProgress, nil, nil }, 202,
			map[string]string{"Retry-After": "2"},
			"",
		},
		"cancelled": {
			func(task *tasks.Task) { task.State = workflows.Cancelled }, 409,
			map[string]string{"X-Should-Retry": "false", "Retry-After": ""},
			"conflict",
		},
		"expired": {func(task *tasks.Task) { task.ExpiresAt = time.Now().Add(-time.Second) }, 404, nil, "not_found"},
		"its answer is an error": {func(task *tasks.Task) {
			task.State, task.Call.Status, task.Failure = workflows.Failed, 429, &providers.VideoFailure{Code: "slow"}
		}, 429, map[string]string{"X-Should-Retry": "false", "Retry-After": ""}, "-"},
		"never sent": {func(task *tasks.Task) {
			task.State, task.Outputs, task.Call, task.Failure = workflows.Failed, nil, nil, &providers.VideoFailure{Code: workflows.CodeQueueTimeout}
		}, 503, map[string]string{"X-Should-Retry": "false", "Retry-After": ""}, "overloaded"},
		"too late": {func(task *tasks.Task) {
			task.State, task.Outputs, task.Call, task.Failure = workflows.Failed, nil, nil,
				&providers.VideoFailure{Code: workflows.CodeDeadlineExceeded}
		}, 504, map[string]string{"X-Should-Retry": "false"}, "upstream_timeout"},
		"lost": {func(task *tasks.Task) {
			task.State, task.Outputs, task.Failure = workflows.Failed, nil, &providers.VideoFailure{Code: workflows.CodeUpstreamUnknown}
		}, 502, map[string]string{"X-Should-Retry": "false"}, "upstream_error"},
		"failed by the operator": {func(task *tasks.Task) {
			task.State, task.Outputs, task.Failure = workflows.Failed, nil,
				&providers.VideoFailure{Code: workflows.CodeFailedByOperator, Message: "closed"}
		}, 500, map[string]string{"X-Should-Retry": "false"}, "internal_error"},
	} {
		task := endedCall(g, 200, `{"done":true}`)
		test.change(&task)
		g.tasks.put(task)
		rec := get("GET")
		if rec.Code != test.status {
			t.Errorf("%s: got %d %s, want %d", name, rec.Code, rec.Body, test.status)
		}
		for header, want := range test.header {
			if got := rec.Header().Get(header); got != want {
				t.Errorf("%s: %s is %q, want %q", name, header, got, want)
			}
		}
		if name == "cancelled" {
			if shown := g.do(t, request("GET", callPath, "")); !strings.Contains(shown.Body.String(), `"result":null`) {
				t.Errorf("a cancelled call has a result: %s", shown.Body)
			}
		}
		if test.code != "" && test.code != "-" {
			if code, _ := fault(t, rec); code != test.code {
				t.Errorf("%s: got the code %q, want %q", name, code, test.code)
			}
		}
	}
}

// TestTaskRoutes: a call is a task of its token alone, and no video.
func TestTaskRoutes(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.tasks.put(endedCall(g, 200, "{}"))
	video := "video_00000000000000000000000000"
	g.tasks.put(tasks.Task{
		ID: video, Token: "good", State: workflows.Queued, Request: providers.VideoRequest{Model: "sora-2"},
		CreatedAt: day,
	})
	for _, route := range [][2]string{
		{"GET", ""},
		{"POST", "/cancel"},
		{"DELETE", ""},
		{"GET", "/result"},
		{"HEAD", "/result"},
		{"GET", "/events"},
	} {
		if rec := g.do(t, request(route[0], callPath+route[1], "", "Authorization", "Bearer "+otherKey)); rec.Code != 404 {
			t.Errorf("%v of another token: got %d", route, rec.Code)
		}
	}
	for _, route := range [][2]string{{"GET", ""}, {"POST", "/cancel"}, {"DELETE", ""}, {"GET", "/content"}, {"GET", "/events"}} {
		if rec := g.do(t, request(route[0], "/v1/videos/"+callID+route[1], "")); rec.Code != 404 {
			t.Errorf("%v of a call at the videos: got %d", route, rec.Code)
		}
	}
	var shown struct {
		Kind, Status string
		Operation    *string
		Cost         *float64
		Attempts     int
		Usage        struct {
			TotalTokens int `json:"total_tokens"`
		}
		Result struct {
			URL        string
			StatusCode int `json:"status_code"`
			Bytes      int
			SHA256     string
		}
	}
	decode(t, g.do(t, request("GET", callPath, "")).Body.Bytes(), &shown)
	if shown.Kind != "call" || shown.Status != "completed" || shown.Attempts != 2 || shown.Usage.TotalTokens != 7 || *shown.Cost != 70e-9 ||
		shown.Result.URL != callPath+"/result" || shown.Result.StatusCode != 200 || shown.Result.Bytes != 2 || shown.Result.SHA256 != "abc" {
		t.Errorf("got %+v", shown)
	}
	decode(t, g.do(t, request("GET", "/v1/tasks/"+video, "")).Body.Bytes(), &shown)
	if shown.Kind != "video" || shown.Status != "queued" || shown.Operation != nil {
		t.Errorf("the video: got %+v", shown)
	}
	for _, wait := range []string{"61", "-1", "x"} {
		if rec := g.do(t, request("GET", callPath+"?wait="+wait, "")); rec.Code != http.StatusBadRequest {
			t.Errorf("wait=%s: got %d", wait, rec.Code)
		}
	}
}

func TestTaskList(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.tasks.page = tasks.Page{Tasks: []tasks.Task{endedCall(g, 200, "{}")}, More: true, Last: "call_looked"}
	var page struct {
		Object  string
		Data    []struct{ ID string }
		FirstID string `json:"first_id"`
		LastID  string `json:"last_id"`
		HasMore bool   `json:"has_more"`
	}
	decode(t, g.do(t, request("GET", "/v1/tasks?kind=call&status=completed&model=gpt-4o&operation=POST+/v1/chat/completions&limit=3&order=asc&after="+callID, "")).Body.Bytes(), &page)
	if page.Object != "list" || len(page.Data) != 1 || page.FirstID != callID || page.LastID != "call_looked" || !page.HasMore {
		t.Errorf("got %+v", page)
	}
	query := g.tasks.queries[0]
	if query.TokenID != "good" || query.Kind != activities.KindCall || query.Limit != 3 || !query.Ascending || query.After != callID {
		t.Errorf("asked for %+v", query)
	}
	call := endedCall(g, 200, "{}")
	if !query.Match(call) {
		t.Error("the filters leave out a call that they name")
	}
	for name, change := range map[string]func(*tasks.Task){
		"status":    func(task *tasks.Task) { task.State = workflows.Cancelled },
		"model":     func(task *tasks.Task) { task.Request.Model = "fast" },
		"operation": func(task *tasks.Task) { task.Operation = "POST /v1/responses" },
	} {
		other := call
		change(&other)
		if query.Match(other) {
			t.Errorf("a call with another %s is listed", name)
		}
	}
	for _, bad := range []string{"kind=song", "status=done", "limit=0", "limit=101", "limit=x", "order=up"} {
		rec := g.do(t, request("GET", "/v1/tasks?"+bad, ""))
		name, _, _ := strings.Cut(bad, "=")
		if _, param := fault(t, rec); rec.Code != http.StatusBadRequest || param != name {
			t.Errorf("%s: got %d %s", bad, rec.Code, rec.Body)
		}
	}
}

// TestServeCall: the worker's request is that of the create's token, without its limits.
func TestServeCall(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(g *gateway, _ *api.Options) {
		g.limits.grant = limits.Grant{RetryAfter: time.Minute} // the create has taken them
	})
	serve := func(token string) (*httptest.ResponseRecorder, *activities.CallRun) {
		rec, run := httptest.NewRecorder(), &activities.CallRun{TaskID: "call_1", Token: token}
		g.serveCall(t.Context(), rec, "/v1/chat/completions", chatBody, run)
		return rec, run
	}
	if rec, run := serve("good"); rec.Code != http.StatusOK || run.Fault != nil {
		t.Errorf("got %d %s, %v", rec.Code, rec.Body, run.Fault)
	}
	if len(g.ledger.entries) != 0 {
		t.Error("the worker's request is charged besides its task")
	}
	if log := g.log.String(); !strings.Contains(log, `"msg":"request"`) || !strings.Contains(log, `"task":"call_1"`) {
		t.Errorf("the access log does not name the task:\n%s", log)
	}
	for token, status := range map[string]int{"off": http.StatusUnauthorized, "lost": http.StatusServiceUnavailable} {
		if rec, _ := serve(token); rec.Code != status {
			t.Errorf("the token %s: got %d %s, want %d", token, rec.Code, rec.Body, status)
		}
	}
}

// TestServeCallToken: a running call ends with its token. It continues if the token loses permissions, or is lost with Redis's data.
func TestServeCallToken(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		later *tokens.Token
		ends  bool
	}{
		"disabled":    {later: &tokens.Token{ID: "good", Group: "default", Disabled: true}, ends: true},
		"permissions": {later: &tokens.Token{ID: "good", Group: "another", Operations: []string{tokens.OperationVideo}}},
		"lost":        {},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var changed atomic.Bool
			read := make(chan struct{}, 100)
			g := newGateway(t, func(ctx context.Context, _ providers.Target, _ *providers.Call) (*http.Response, error) {
				changed.Store(true)
				if test.ends {
					<-ctx.Done()
					return nil, context.Cause(ctx)
				}
				for range 2 {
					<-read
				}
				return upstreamAnswer("application/json", `{"ok":true}`), nil
			}, func(g *gateway, o *api.Options) {
				o.TokenByID = func(context.Context, string) (*tokens.Token, error) {
					switch {
					case !changed.Load():
						return g.tokens[goodKey], nil
					case test.later == nil:
						read <- struct{}{}
						return nil, storage.ErrNotFound
					}
					read <- struct{}{}
					return test.later, nil
				}
			})
			rec, run := httptest.NewRecorder(), new(activities.CallRun)
			g.serveCall(t.Context(), rec, "/v1/chat/completions", chatBody, run)
			if ended := run.Fault != nil; ended != test.ends {
				t.Errorf("got %d %s, %v", rec.Code, rec.Body, run.Fault)
			}
		})
	}
}

// TestServeCallBodies: calls whose upstreams work hold half of the memory of bodies at most, those of one token a quarter; clients that
// wait have the rest.
func TestServeCallBodies(t *testing.T) {
	t.Parallel()
	const room = 1 << 20
	finish := make(chan struct{})
	g := newGateway(t, func(_ context.Context, _ providers.Target, call *providers.Call) (*http.Response, error) {
		if len(call.Body) > room/8 {
			<-finish
		}
		return upstreamAnswer("application/json", `{"ok":true}`), nil
	}, func(g *gateway, o *api.Options) {
		g.tokens["sk-third"] = &tokens.Token{ID: "third", Name: "third", Group: "default"}
		o.BodyMemory = room
	})
	body := func(size int) string {
		return `{"model":"gpt-4o","messages":[{"role":"user","content":"` + strings.Repeat("x", size) + `"}]}`
	}
	serve := func(token string, size int) *httptest.ResponseRecorder {
		rec := httptest.NewRecorder()
		g.serveCall(t.Context(), rec, "/v1/chat/completions", body(size), &activities.CallRun{Token: token})
		return rec
	}
	var running sync.WaitGroup
	for i, token := range []string{"good", "other", "few"} {
		running.Go(func() {
			if rec := serve(token, room/7); rec.Code != http.StatusOK {
				t.Errorf("the first call of %s: got %d %s", token, rec.Code, rec.Body)
			}
		})
		testwait.Eventually(t, "the call is sent", patience, func() bool { return g.BodiesTaken() >= int64(i+1)*room/7 })
	}
	for token, status := range map[string]int{"good": http.StatusTooManyRequests, "third": http.StatusServiceUnavailable} {
		if rec := serve(token, room/8-100); rec.Code != status {
			t.Errorf("a further call of %s: got %d %s, want %d", token, rec.Code, rec.Body, status)
		}
	}
	if rec := g.do(t, request("POST", "/v1/chat/completions", body(room/8-100))); rec.Code != http.StatusOK {
		t.Errorf("a client that waits: got %d %s", rec.Code, rec.Body)
	}
	close(finish)
	running.Wait()
	if rec := serve("good", room/8-100); rec.Code != http.StatusOK || g.BodiesTaken() != 0 {
		t.Errorf("after their ends: got %d %s, %d bytes are held", rec.Code, rec.Body, g.BodiesTaken())
	}
}

// writes records what is written at once.
type writes struct {
	*httptest.ResponseRecorder

	all []string
}

func (w *writes) Write(p []byte) (int, error) {
	w.all = append(w.all, string(p))
	return w.ResponseRecorder.Write(p)
}

// TestReadCall: what is sent of a call is not held any more once it is read. It counts as the token's until it is read, or given up.
func TestReadCall(t *testing.T) {
	t.Parallel()
	const text = `{"model":"m"}`
	g := newGateway(t, nil, func(_ *gateway, o *api.Options) { o.BodyMemory = 4 * int64(len(text)) })
	var sent weak.Pointer[byte]
	r := httptest.NewRequest("POST", "/v1/responses", strings.NewReader(text))
	if request, ok := g.ReadCall(r, "good", func(request []byte) []byte {
		out := bytes.Repeat(request, 1000)
		sent = weak.Make(&out[0])
		return out
	}); !ok || string(request) != text {
		t.Fatalf("got %q, %v", request, ok)
	}
	again := func() *http.Request { return httptest.NewRequest("POST", "/v1/responses", strings.NewReader(text)) }
	same := func(request []byte) []byte { return request }
	if _, ok := g.ReadCall(again(), "good", same); ok || g.BodiesTaken() != int64(len(text)) {
		t.Errorf("a second call of the token is read, %d bytes are held", g.BodiesTaken())
	}
	other := again()
	if _, ok := g.ReadCall(other, "other", same); !ok || other.Body.Close() != nil || g.BodiesTaken() != int64(len(text)) {
		t.Errorf("after another token's call %d bytes are held", g.BodiesTaken())
	}
	got := make([]byte, r.ContentLength)
	if _, err := io.ReadFull(r.Body, got); err != nil || string(got) != strings.Repeat(text, 1000) {
		t.Errorf("sent %d bytes, %v", len(got), err)
	}
	runtime.GC()
	if sent.Value() != nil {
		t.Error("the bytes that are read are held")
	}
	if n, err := r.Body.Read(got); n != 0 || !errors.Is(err, io.EOF) || g.BodiesTaken() != 0 {
		t.Errorf("after the end: %d, %v; %d bytes are held", n, err, g.BodiesTaken())
	}
}

// TestServeCallEvents: the events of a background call are written whole, whatever their size.
func TestServeCallEvents(t *testing.T) {
	t.Parallel()
	event := func(size int) string {
		return `data: {"choices":[{"delta":{"content":"` + strings.Repeat("x", size) + `"},"finish_reason":"stop"}]}` + "\n\n"
	}
	stream := event(10) + event(5_000) + event(100_000) + event(3_000_000) + event(40_000) + event(20)
	for name, end := range map[string]string{"whole": "data: [DONE]\n\n", "larger than any event may be": event(sse.MaxEvent)} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
				return upstreamAnswer("text/event-stream", stream+end), nil
			}, nil)
			rec := &writes{ResponseRecorder: httptest.NewRecorder()}
			gathered := false
			run := &activities.CallRun{Gather: func(_ context.Context, answer io.ReadCloser, document int) io.ReadCloser {
				gathered = document == 0
				return answer
			}}
			body := strings.Replace(chatBody, "{", `{"stream":true,"stream_options":{"include_usage":true},`, 1)
			g.serveCall(t.Context(), rec, "/v1/chat/completions", body, run)
			if got := rec.Body.String(); !strings.HasPrefix(got, stream) || strings.Contains(got, "too large") != (run.Fault != nil) ||
				(run.Fault != nil) != (len(end) > sse.MaxEvent) || !gathered {
				t.Errorf("got %d bytes that end with %q, %v", len(got), got[max(0, len(got)-300):], run.Fault)
			}
			for _, written := range rec.all {
				if written != "" && (!strings.HasPrefix(written, "data: ") || !strings.HasSuffix(written, "\n\n")) {
					t.Errorf("a write of %d bytes is no whole event: %.30q", len(written), written)
				}
			}
		})
	}
}

// TestServeCallUnstored: an answer that the gateway cannot hold ends with an error of the gateway, whose cause the task has.
func TestServeCallUnstored(t *testing.T) {
	t.Parallel()
	const first = `data: {"choices":[{"delta":{"content":"x"}}]}` + "\n\n"
	for _, passes := range []string{"", first} {
		g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
			return upstreamAnswer("text/event-stream", first+"data: [DONE]\n\n"), nil
		}, nil)
		away := errors.New("away")
		run := &activities.CallRun{Gather: func(_ context.Context, answer io.ReadCloser, _ int) io.ReadCloser {
			return io.NopCloser(io.MultiReader(io.LimitReader(answer, int64(len(passes))),
				iotest.ErrReader(&providers.Fault{Kind: providers.Internal, Message: "The archive is away.", Err: away})))
		}}
		rec := httptest.NewRecorder()
		g.serveCall(t.Context(), rec, "/v1/chat/completions", strings.Replace(chatBody, "{", `{"stream":true,`, 1), run)
		status := http.StatusOK
		if passes == "" {
			status = http.StatusInternalServerError
		}
		if run.Fault == nil || run.Fault.Kind != providers.Internal || !errors.Is(run.Fault, away) || rec.Code != status ||
			!strings.HasPrefix(rec.Body.String(), passes) || !strings.Contains(rec.Body.String(), `"error"`) {
			t.Errorf("got %d %s, %v", rec.Code, rec.Body, run.Fault)
		}
	}
}

// TestAsyncRepeatRefused: the repeat of a create finds its task although a new one would be refused.
func TestAsyncRepeatRefused(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(g *gateway, _ *api.Options) {
		rich := *g.tokens[goodKey]
		rich.Budget = 1
		g.tokens[goodKey] = &rich
	})
	first := g.do(t, async("Idempotency-Key", "k"))
	g.limits.grant = limits.Grant{Spent: true}
	again := g.do(t, async("Idempotency-Key", "k"))
	if first.Code != http.StatusAccepted || again.Code != http.StatusAccepted || again.Header().Get("Location") != callPath {
		t.Errorf("got %d, then %d %s", first.Code, again.Code, again.Body)
	}
	for name, headers := range map[string][]string{"another key": {"Idempotency-Key", "other"}, "no key": nil} {
		if rec := g.do(t, async(headers...)); rec.Code != http.StatusTooManyRequests || rec.Header().Get("Location") != "" ||
			len(g.tasks.creates) != 1 {
			t.Errorf("%s: got %d %s", name, rec.Code, rec.Body)
		}
	}
}

// noLog has the events of calls that have none.
type noLog struct{}

func (noLog) Read(ctx context.Context, _, _ string, _ int64, _ func(eventlog.Piece) error) error {
	<-ctx.Done()
	return ctx.Err()
}

// TestResponseStreamWithoutEvents: the stream of a response that ends before its upstream's first event has the same events for every
// reader, whose last one is the error.
func TestResponseStreamWithoutEvents(t *testing.T) {
	t.Parallel()
	const body = `{"model":"gpt","input":"x","background":true,"stream":true}`
	for name, test := range map[string]struct {
		end  func(*tasks.Task)
		code string
	}{
		"refused": {func(*tasks.Task) {}, "upstream_error"},
		"too late": {func(task *tasks.Task) {
			task.Outputs, task.Call, task.Failure = nil, nil, &providers.VideoFailure{Code: workflows.CodeDeadlineExceeded, Message: "late"}
		}, "upstream_timeout"},
		"lost": {func(task *tasks.Task) {
			task.Outputs, task.Call.Status, task.Failure = nil, 0, &providers.VideoFailure{Code: workflows.CodeUpstreamUnknown, Message: "lost"}
		}, "upstream_error"},
		"cancelled": {func(task *tasks.Task) { task.State, task.Failure = workflows.Cancelled, nil }, ""},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStoring(t, func(o *api.Options) { o.Events = noLog{} })
			created := make(chan *httptest.ResponseRecorder, 1)
			go func() { created <- s.do(t, request("POST", "/v1/responses", body)) }()
			testwait.Eventually(t, "a watcher", patience, func() bool { return s.tasks.watchers() == 1 })
			if held := s.BodiesTaken(); held != 0 {
				t.Errorf("the stream holds %d bytes of the create", held)
			}
			task := endedCall(s.gateway, 400, `{"error":{"message":"no","code":"bad"}}`)
			task.ID, task.Operation, task.Stream, task.Body = responseID, "POST /v1/responses", true, "body"
			s.archive["body"] = []byte(body)
			test.end(&task)
			s.tasks.put(task)
			all := (<-created).Body.String()
			want := []string{"response.created", "response.queued"}
			if test.code != "" {
				want = append(want, "error")
			}
			kinds := regexp.MustCompile(`(?m)^event: (.*)\ndata: {"type":"(.*?)".*?"sequence_number":(\d+)`).FindAllStringSubmatch(all, -1)
			for n, kind := range kinds {
				if n >= len(want) || kind[1] != want[n] || kind[2] != want[n] || kind[3] != strconv.Itoa(n) {
					t.Errorf("event %d is %q", n, kind[1:])
				}
			}
			if len(kinds) != len(want) || test.code != "" && !strings.Contains(all, test.code) {
				t.Fatalf("the create's stream: got %s", all)
			}
			events := strings.SplitAfter(all, "\n\n")
			ended := strings.Join(events[2:], "") // what a reader gets that has seen lost events
			if rec := s.do(t, request("GET", "/v1/responses/"+responseID+"?stream=true&starting_after=7", "")); rec.Body.String() != ended {
				t.Errorf("after a lost event: got %d %s", rec.Code, rec.Body)
			}
			for after := -1; after < len(want); after++ {
				rest := strings.Join(events[after+1:], "")
				query, id := "", ""
				if after >= 0 {
					query, id = "&starting_after="+strconv.Itoa(after), responseID+"-"+strconv.Itoa(after)
				}
				if rec := s.do(t, request("GET", "/v1/responses/"+responseID+"?stream=true"+query, "")); rec.Code != 200 || rec.Body.String() != rest {
					t.Errorf("after %d: got %d %s", after, rec.Code, rec.Body)
				}
				rec := s.do(t, request("GET", "/v1/tasks/"+responseID+"/events", "", "Last-Event-ID", id))
				var numbers []string
				withoutIDs := regexp.MustCompile("id: "+responseID+`-(\d+)\n`).ReplaceAllStringFunc(rec.Body.String(), func(line string) string {
					numbers = append(numbers, line)
					return ""
				})
				if withoutIDs != rest || len(numbers) != len(want)-after-1 || len(numbers) > 0 &&
					!strings.HasSuffix(numbers[0], "-"+strconv.Itoa(after+1)+"\n") {
					t.Errorf("the task's events after %d: got %s", after, rec.Body)
				}
			}
		})
	}
}

// shortLog has fewer events than it sends: the last ones are lost, and other readers do not get them.
type shortLog struct{ events []string }

func (l shortLog) Read(_ context.Context, _, _ string, after int64, each func(p eventlog.Piece) error) error {
	for n := after + 1; n < int64(len(l.events)); n++ {
		if err := each(eventlog.Piece{N: n, Data: []byte(l.events[n]), Begins: true, Ends: true}); err != nil {
			return err
		}
	}
	return &eventlog.AheadError{Events: int64(len(l.events)) - 1}
}

// pieceLog has one event, which it sends in two pieces. err follows the first one; nil: the second one does.
type pieceLog struct {
	event string
	err   error
}

func (l pieceLog) Read(_ context.Context, _, _ string, _ int64, each func(p eventlog.Piece) error) error {
	half := len(l.event) / 2
	if err := cmp.Or(each(eventlog.Piece{Data: []byte(l.event[:half]), Begins: true}), l.err); err != nil {
		return err
	}
	return each(eventlog.Piece{Data: []byte(l.event[half:]), Ends: true})
}

// TestStreamPieces: an event that comes in pieces has one id. If the rest of it cannot be read, the connection breaks: nothing that a
// client could take for the event's end is sent.
func TestStreamPieces(t *testing.T) {
	t.Parallel()
	const event = "event: response.completed\ndata: {\"obfuscation\":\"xxxx\"}\n\n"
	for _, broken := range []error{nil, storage.ErrUnavailable} {
		s := newStoring(t, func(o *api.Options) { o.Events = pieceLog{event, broken} })
		task := endedCall(s.gateway, 200, "")
		task.ID, task.Operation, task.Stream, task.Body, task.Call.Events = callID, "POST /v1/chat/completions", true, "body", 1
		s.tasks.put(task)
		server := httptest.NewServer(s.Handler())
		r := request("GET", server.URL+"/v1/tasks/"+callID+"/events", "")
		r.RequestURI = ""
		resp, err := server.Client().Do(r)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		server.Close()
		want := "id: " + callID + "-0\n" + event
		if broken != nil {
			want = want[:len(want)-len(event)+len(event)/2]
		}
		if string(body) != want || (err != nil) != (broken != nil) {
			t.Errorf("after %v: got %q, %v", broken, body, err)
		}
	}
}

// TestStreamAhead: a reader that has seen lost events gets an error event with the number of the last stored event, after which a reader
// gets no more.
func TestStreamAhead(t *testing.T) {
	t.Parallel()
	const body = `{"model":"gpt","input":"x","background":true,"stream":true}`
	events := []string{
		"event: a\ndata: {}\n\n", "event: b\ndata: {}\n\n", "event: c\ndata: {}\n\n", "event: d\ndata: {}\n\n",
		"event: e\ndata: {}\n\n",
	}
	s := newStoring(t, func(o *api.Options) { o.Events = shortLog{events} })
	task := endedCall(s.gateway, 200, "")
	task.ID, task.Operation, task.Stream, task.Body, task.Call.Events = responseID, "POST /v1/responses", true, "body", 4
	s.archive["body"] = []byte(body)
	s.tasks.put(task)
	for _, id := range []string{"", responseID + "-2"} {
		got := s.do(t, request("GET", "/v1/tasks/"+responseID+"/events", "", "Last-Event-ID", id)).Body.String()
		if !regexp.MustCompile(`id: ` + responseID + `-4\nevent: e\ndata: {}\n\nid: ` + responseID +
			`-3\nevent: error\ndata: {.*"sequence_number":3\b.*}\n\n$`).MatchString(got) {
			t.Errorf("after %q: got %s", id, got)
		}
	}
}
