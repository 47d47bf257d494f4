package console

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelrelay/api/console/chart"
)

// callsAPI answers as the API does, with what each path has.
func callsAPI(t *testing.T, answers map[string]any) http.HandlerFunc {
	t.Helper()
	return func(w http.ResponseWriter, r *http.Request) {
		answer, ok := answers[r.URL.Path]
		if !ok {
			refuse(w, http.StatusNotFound, "There is nothing at this path.")
			return
		}
		if message, refused := answer.(string); refused {
			refuse(w, http.StatusServiceUnavailable, message)
			return
		}
		if err := json.NewEncoder(w).Encode(answer); err != nil {
			t.Error(err)
		}
	}
}

// aCall fell over, and streamed its answer.
func aCall() map[string]any {
	return map[string]any{
		"id": "req_1", "at": "2026-11-22T12:00:00.5Z", "token": "tok_app", "token_name": "<b>app</b>", "model": "gpt-4o", "operation": "createChatCompletion",
		"status": 502, "fault": "upstream", "message": "The upstream answered with status 500.", "before_ms": 2.0, "first_byte_ms": 900.0, "ms": 1900.0,
		"input_tokens": 1812, "output_tokens": 96, "cost": 0.0002, "priced": true, "user_agent": "=cmd", "vendor_request_id": "vendor-7", "task_id": "video_1",
		"attempts": []any{
			map[string]any{"channel": "main", "outcome": "timeout", "ms": 400.0, "key": "0123456789ab"},
			map[string]any{"channel": "b", "outcome": "ok", "ms": 500.0, "vendor_request_id": "vendor-7"},
		},
	}
}

// wantAll fails for each text that a page does not have.
func wantAll(t *testing.T, what, body string, texts ...string) {
	t.Helper()
	for _, text := range texts {
		if !strings.Contains(body, text) {
			t.Errorf("%s: has no %q: %.6000s", what, text, body)
		}
	}
}

func TestCallsPage(t *testing.T) {
	t.Parallel()
	list := map[string]any{"data": []any{aCall()}, "looked_at": 61200, "looked_back_to": "2026-11-22T11:00:00Z", "after": "17-0"}
	h := newHouse(t, callsAPI(t, map[string]any{"/admin/calls": list, "/v1/token/calls": list, "/admin/calls/req_1": aCall(), "/v1/token/calls/req_1": aCall()}))
	operator, holder := h.as(t, "anna"), h.as(t, "app")
	rec := operator.get("/console/calls?status=failed")
	checkPage(t, "calls", rec)
	wantAll(t, "calls", rec.Body.String(), "&lt;b&gt;app&lt;/b&gt;", "main → b", "900 ms", "1.9 s", "1,812 / 96", "The vendor failed", "Looked at 61,200 calls", "after=17-0", "<live-region")
	rec = holder.get("/console/calls")
	checkPage(t, "own calls", rec)
	if body := rec.Body.String(); strings.Contains(body, `name="channel"`) || strings.Contains(body, `name="token"`) {
		t.Error("a holder filters by what only operators see")
	}
	rec = operator.get("/console/calls?format=csv")
	if body := rec.Body.String(); !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/csv") || !strings.Contains(body, "gpt-4o") {
		t.Errorf("csv: %s", body)
	}
	for who, b := range map[string]*browser{"operator": operator, "holder": holder} {
		rec = b.get("/console/calls/req_1")
		checkPage(t, who+"'s call", rec)
		wantAll(t, who+"'s call", rec.Body.String(), "The vendor failed", "The upstream answered with status 500.", "vendor-7", "<rect", `class="bad"`, "It took too long", "998 ms", "2 ms")
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, asked := range h.asked {
		if asked.who.Role == Holder && strings.HasPrefix(asked.path, "/admin") {
			t.Errorf("a holder's page asked for %s", asked.path)
		}
	}
}

// A filter with nonsense keeps what was typed.
func TestCallsPageWithNonsense(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusBadRequest, "'min_ms' is wrong.") })
	rec := h.as(t, "anna").get("/console/calls?min_ms=x&model=gpt-4o")
	checkPage(t, "nonsense", rec)
	wantAll(t, "nonsense", rec.Body.String(), "is wrong.", `value="gpt-4o"`, `value="x"`)
}

func TestOverview(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Minute)
	traffic := map[string]any{
		"from": now.Add(-time.Hour), "to": now.Add(time.Minute), "step_seconds": 60,
		"data": []any{
			map[string]any{"at": now.Add(-5 * time.Minute), "channel": "main", "requests": 990, "failed": 9, "tokens": 5000, "cost": 41.2, "first_byte_p95_ms": 1200.0},
			map[string]any{"at": now, "channel": "b", "requests": 10, "failed": 1, "cost": 0.0},
		},
	}
	rest := func(left float64) map[string]any {
		return map[string]any{"state": "open", "rest_left": left, "last_fault": map[string]any{"at": now, "kind": "rate_limited", "status": 429, "code": "billing_hard_limit"}}
	}
	limited := map[string]any{"name": "c", "state": "closed", "keys": []any{rest(60), rest(7)}}
	answers := map[string]any{
		"/admin/traffic":         traffic,
		"/admin/channels":        map[string]any{"data": []any{map[string]any{"name": "main", "state": "closed"}, map[string]any{"name": "b", "state": "open", "rest_left": 41.0}, limited}},
		"/admin/tasks/counts":    map[string]any{"queued": 12, "polling": 48, "stuck": 3, "failed": 2, "undelivered": 1, "workers": 1},
		"/admin/usage/unsettled": map[string]any{"data": []any{map[string]any{}, map[string]any{}}, "amount": 0.43},
		"/readyz":                map[string]any{"status": "degraded", "checks": map[string]any{"archive": map[string]any{"status": "error", "error": "bucket videos is away"}, "redis": map[string]any{"status": "ok"}}},
		"/admin/tokens":          map[string]any{"data": []any{map[string]any{"id": "tok_1", "name": "app", "state": "active", "budget": 100.0, "in_force": map[string]any{"budget": 100.0}, "spent": 92.1}}},
	}
	h := newHouse(t, callsAPI(t, answers))
	for _, who := range []string{"anna", "vera"} {
		rec := h.as(t, who).get("/console")
		checkPage(t, who, rec)
		wantAll(t, who, rec.Body.String(), "Object store does not do what is needed of it", "bucket videos is away", "Working. 2 of 3 channels rest", "Channel b rests", "41.0 s left", "Channel c rests", "7.0 s left", "billing_hard_limit", "3 tasks have been in their state", "2 reservations are unsettled",
			"0.430 USD", "Token app has used 92 % of its budget", "1,000", "1 %", "up to 1.2 s", "41.20 USD", "<rect", "12 queued", "48 in progress", `href="./console/tasks?view=stuck"`, `href="./console/tasks?view=failed"`, `href="./console/tasks?view=webhooks"`)
	}
	if page := h.as(t, "anna").get("/console").Body.String(); strings.Contains(page, "Redis does not") || strings.Contains(page, "Temporal does not") {
		t.Error("a service that answers needs a hand")
	}
	answers["/admin/channels"], answers["/admin/traffic"] = "Redis does not answer.", "Redis does not answer."
	rec := h.as(t, "anna").get("/console")
	checkPage(t, "away", rec)
	wantAll(t, "away", rec.Body.String(), "Does not answer: channels, charts.", "12 queued")
}

func TestHome(t *testing.T) {
	t.Parallel()
	h := newHouse(t, callsAPI(t, map[string]any{
		"/v1/token": map[string]any{
			"name": "app", "hint": "sk-…TKar", "models": []any{"gpt-4o"}, "limits": map[string]any{"requests_per_minute": map[string]any{"limit": 600, "remaining": 599}},
			"budget": map[string]any{"limit": 100.0, "spent": 92.1, "remaining": 7.9},
		},
		"/v1/token/calls": map[string]any{"data": []any{aCall()}},
	}))
	rec := h.as(t, "app").get("/console")
	checkPage(t, "home", rec)
	wantAll(t, "home", rec.Body.String(), "7.90 USD", "92.10 USD of 100.00 USD", "599 of 600", "gpt-4o", "sk-…TKar", "1.9 s", `width="47.4"`, `/try?kind=chat&amp;model=gpt-4o" aria-label="Try: gpt-4o"`)
}

// FuzzChart draws whatever the numbers are.
func FuzzPartBars(f *testing.F) {
	f.Add(1.0, 2.0, 3.0)
	f.Fuzz(func(t *testing.T, before, attempt, whole float64) {
		for _, bar := range chart.PartBars(partsOf(Call{CallOutcome: CallOutcome{BeforeMS: before, MS: whole}, Attempts: []CallAttempt{{MS: attempt}}})) {
			if strings.ContainsAny(bar.Width+bar.X, "-NI") {
				t.Errorf("bar %+v", bar)
			}
		}
	})
}

// A call leads operators to its channel, and to its page in their tracing where they have one; its token is shown neither.
func TestCallLeadsOn(t *testing.T) {
	t.Parallel()
	call := aCall()
	call["channel"], call["trace_id"] = "b", "4bf92f3577b34da6a3ce929d0e0e4736"
	h := newHouse(t, callsAPI(t, map[string]any{"/admin/calls/req_1": call, "/v1/token/calls/req_1": call, "/v1/token": map[string]any{
		"id": "tok_app", "limits": map[string]any{"requests_per_minute": map[string]int{"limit": 60, "remaining": 59}}, "budget": map[string]float64{"limit": 10, "remaining": 7.5},
	}}))
	h.server.o.TraceURL = "https://traces.example/view/{trace_id}"
	for _, key := range []string{"anna", "vera", "app"} { // the limits that are left
		wantAll(t, key, h.as(t, key).get("/console/calls/req_1").Body.String(), "What the token has left now", "7.50 USD of 10.00 USD", "59 of 60")
	}
	operator, holder := h.as(t, "anna").get("/console/calls/req_1").Body.String(), h.as(t, "app").get("/console/calls/req_1").Body.String()
	const trace, channel = `href="https://traces.example/view/4bf92f3577b34da6a3ce929d0e0e4736"`, `channels/b"`
	wantAll(t, "an operator's call", operator, trace, channel)
	if strings.Contains(holder, trace) || strings.Contains(holder, channel) {
		t.Error("a token's holder is led to the operator's pages")
	}
}
