package api_test

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"sync"
	"testing"

	"modelrelay/activities"
	"modelrelay/api"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

// newServing makes a gateway that serves background calls with a channel at the upstream, and has prices.
func newServing(t *testing.T, upstream http.HandlerFunc) *gateway {
	t.Helper()
	return newLeavingAt(t, priced(t, 0), func() {}, upstream)
}

// TestServeCallReported: a 2xx answer that reports a failure fails its task.
func TestServeCallReported(t *testing.T) {
	t.Parallel()
	const stream = "text/event-stream"
	delta := `data: {"choices":[{"delta":{"content":"Hi, \"error\": no"}}]}` + "\n\n"
	for name, test := range map[string]struct{ path, kind, answer, code, message string }{
		"a chat's stream ends with an error": {
			"chat/completions", stream, delta + `data: {"error":{"type":"server_error","code":"overloaded","message":"Later."}}` + "\n\n",
			"overloaded", "Later.",
		},
		"a chat's stream": {
			"chat/completions", stream,
			delta + `data: {"choices":[{"delta":{},"finish_reason":"stop"}],"error":null}` + "\n\ndata: [DONE]\n\n", "", "",
		},
		"a chat's document": {"chat/completions", "application/json", `{"choices":[{"message":{"content":"{\"status\":\"failed\"}"}}]}`, "", ""},
		"a response failed": {
			"responses", "application/json",
			`{"object":"response","status":"failed","error":{"code":"server_error","message":"No."},"output":[]}`, "server_error", "No.",
		},
		"a response":         {"responses", "application/json", `{"object":"response","status":"completed","error":null,"output":[]}`, "", ""},
		"a stream's failure": {"responses", stream, `data: {"type":"response.failed","response":{"status":"failed","error":{"code":"rate_limit_exceeded","message":"Slow."}}}` + "\n\n", "rate_limit_exceeded", "Slow."},
		"a stream's error": {"responses", stream, `data: {"type":"response.in_progress","response":{"status":"in_progress","error":null}}` +
			"\n\n" + `data: {"type":"error","code":"server_error","message":"No.","param":null}` + "\n\n", "server_error", "No."},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newServing(t, func(w http.ResponseWriter, _ *http.Request) {
				w.Header().Set("Content-Type", test.kind)
				_, _ = io.WriteString(w, test.answer) // the gateway reads it
			})
			body := fmt.Sprintf(`{"model":"gpt-4o","messages":[],"input":"x","stream":%t}`, test.kind == stream)
			rec, run := httptest.NewRecorder(), &activities.CallRun{TaskID: callID}
			g.serveCall(t.Context(), rec, "/v1/"+test.path, body, run)
			if got := run.Failure; rec.Code != http.StatusOK || (got == nil) != (test.code == "") || got != nil &&
				(got.Code != test.code || got.Message != test.message) {
				t.Errorf("got %d %s with %+v, %v", rec.Code, rec.Body, got, run.Fault)
			}
		})
	}
}

// TestServeCallDeadline: a call that its deadline ends costs what one costs whose client leaves.
func TestServeCallDeadline(t *testing.T) {
	t.Parallel()
	ctx, end := context.WithCancelCause(t.Context())
	g := newServing(t, func(_ http.ResponseWriter, r *http.Request) {
		_, _ = io.Copy(io.Discard, r.Body) // it has all of the call
		end(context.DeadlineExceeded)
		<-r.Context().Done()
	})
	run := &activities.CallRun{TaskID: callID}
	g.serveCall(ctx, httptest.NewRecorder(), "/v1/chat/completions",
		`{"model":"gpt-4o","messages":[{"role":"user","content":"a question of some length"}]}`, run)
	if run.Cost == 0 || run.Usage.Output == 0 {
		t.Errorf("got cost %d, %+v, %v", run.Cost, run.Usage, run.Fault)
	}
}

// TestAsyncAmount: without a budget a lost answer costs what an uncounted answer does, whatever the client permits it to be.
func TestAsyncAmount(t *testing.T) {
	t.Parallel()
	amount := func(budget float64) int64 {
		g := newGateway(t, nil, func(g *gateway, o *api.Options) {
			priced(t, 0)(g, o)
			g.tokens[goodKey].Budget = budget
		})
		body := `{"model":"gpt-4o","messages":[],"max_tokens":1000000000}`
		if rec := g.do(t, request("POST", "/v1/chat/completions", body, "Prefer", "respond-async")); rec.Code != http.StatusAccepted {
			t.Fatalf("got %d %s", rec.Code, rec.Body)
		}
		return g.tasks.creates[0].Call.Amount
	}
	if free, reserved := amount(0), amount(1e12); free == 0 || reserved < 1000*free {
		t.Errorf("the call may cost %d, and %d of a budget", free, reserved)
	}
}

// TestAsyncTokensPerMinute: background calls use the token's tokens of a minute, and no place among its concurrent calls.
func TestAsyncTokensPerMinute(t *testing.T) {
	t.Parallel()
	g := newLeavingAt(t, func(g *gateway, o *api.Options) {
		o.Limits = redisLimits(t)
		g.tokens[goodKey] = &tokens.Token{ID: "one", Name: "one", Group: "default", Limits: tokens.Limits{TokensPerMinute: 1000, Concurrency: 1}}
	}, func() {}, func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		// the gateway reads it
		_, _ = io.WriteString(w, `{"choices":[{"message":{"content":"Hi"}}],"usage":{"prompt_tokens":500,"completion_tokens":600}}`)
	})
	var waiting sync.WaitGroup
	defer waiting.Wait()
	waits, leave := context.WithCancel(t.Context())
	defer leave()
	waiting.Go(func() { g.do(t, async("Prefer", "wait=60").WithContext(waits)) }) //nolint:contextcheck // the request has it
	testwait.Eventually(t, "a create while another client waits for its call", patience,
		func() bool { return g.do(t, async()).Code == http.StatusAccepted })
	run := &activities.CallRun{TaskID: callID, Token: "one"}
	g.serveCall(t.Context(), httptest.NewRecorder(), "/v1/chat/completions", chatBody, run)
	if run.Usage.Output != 600 {
		t.Fatalf("got %+v", run)
	}
	testwait.Eventually(t, "no token is left", patience, func() bool { return g.do(t, async()).Code == http.StatusTooManyRequests })
}
