package console

import (
	"strings"
	"testing"
	"time"

	"modelrelay/api/console/chart"
	"modelrelay/api/logs"
	"modelrelay/providers"
	"modelrelay/providers/router"
	"modelrelay/storage/calllog"
	"modelrelay/storage/ledger"
	"modelrelay/storage/limits"
	"modelrelay/storage/tokens"
	"modelrelay/storage/traffic"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// aCall fell over, and streamed its answer.
func aCall() calllog.Call {
	return calllog.Call{Record: calllog.Record{
		At:        time.Date(2026, 11, 22, 12, 0, 0, 500_000_000, time.UTC),
		Names:     calllog.Names{ID: "req_1", Task: "video_1"},
		Caller:    calllog.Caller{Token: "tok_app", TokenName: "<b>app</b>", Agent: "=cmd"},
		Requested: calllog.Requested{Model: "gpt-4o", Operation: "createChatCompletion"},
		Outcome: calllog.Outcome{
			Channel: "b", Status: 502, Fault: "upstream", Words: "The upstream answered with status 500.",
		},
		Times: calllog.Times{Before: 2 * time.Millisecond, First: 900 * time.Millisecond, Took: 1900 * time.Millisecond},
		Used:  calllog.Used{Input: 1812, Output: 96, Cost: 200_000, Priced: true},
		Tries: []calllog.Try{
			{Channel: "main", Fault: "timeout", Took: 400 * time.Millisecond, Key: "0123456789ab"},
			{Channel: "b", Took: 500 * time.Millisecond, Vendor: "vendor-7"},
		},
	}}
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
	h := newHouse(t, nil)
	h.calls = calllog.Page{Calls: []calllog.Call{aCall()}, Looked: 61200, Back: time.Date(2026, 11, 22, 11, 0, 0, 0, time.UTC), Next: "17-0"}
	operator, holder := h.as(t, "anna"), h.as(t, "app")
	rec := operator.get("/console/calls?status=failed")
	checkPage(t, "calls", rec)
	wantAll(t, "calls", rec.Body.String(), "&lt;b&gt;app&lt;/b&gt;", "main → b", "900 ms", "1.9 s", "1,812 / 96", "The vendor failed",
		"Looked at 61,200 calls", "after=17-0", "Search on", "<live-region")
	rec = holder.get("/console/calls")
	checkPage(t, "own calls", rec)
	if body := rec.Body.String(); strings.Contains(body, `name="channel"`) || strings.Contains(body, `name="token"`) {
		t.Error("a holder filters by what only operators see")
	}
	rec = operator.get("/console/calls?format=csv")
	if body := rec.Body.String(); !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/csv") || !strings.Contains(body, "gpt-4o") {
		t.Errorf("csv: %s", body)
	}
	for user, b := range map[string]*browser{"operator": operator, "holder": holder} {
		rec = b.get("/console/calls/req_1")
		checkPage(t, user+"'s call", rec)
		wantAll(t, user+"'s call", rec.Body.String(), "The vendor failed", "The upstream answered with status 500.", "<rect", `class="bad"`,
			"It took too long", "998 ms", "2 ms")
	}
	if body := holder.get("/console/calls/req_1").Body.String(); strings.Contains(body, "vendor-7") || strings.Contains(body, "0123456789ab") {
		t.Error("a holder reads of the deployment's channels")
	}
	h.calls.Calls = nil
	rec = operator.get("/console/calls?token=app")
	checkPage(t, "a search that stopped", rec)
	wantAll(t, "a search that stopped", rec.Body.String(), "Nothing was found in the part that was searched so far.", "after=17-0")
	if len(h.asked) > 0 {
		t.Errorf("the API was asked: %+v", h.asked)
	}
}

// TestCallsPageWithNonsense: an invalid filter is shown again as it was typed.
func TestCallsPageWithNonsense(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	rec := h.as(t, "anna").get("/console/calls?min_ms=x&model=gpt-4o")
	checkPage(t, "nonsense", rec)
	wantAll(t, "nonsense", rec.Body.String(), "&#39;min_ms&#39; must be a whole number", `value="gpt-4o"`, `value="x"`)
}

func TestOverview(t *testing.T) {
	t.Parallel()
	now := time.Now().UTC().Truncate(time.Minute)
	h := newHouse(t, nil)
	h.traffic = []traffic.Row{
		{
			Minute: now.Add(-5 * time.Minute), Channel: "main",
			Sums: traffic.Sums{Requests: 990, Failed: 9, Tokens: 5000, Cost: 41_200_000_000, First: [8]int64{4: 990}},
		},
		{Minute: now.Add(-time.Minute), Channel: "b", Sums: traffic.Sums{Requests: 10, Failed: 1}},
	}
	c := channelOf("c", "m")
	c.Keys = append(c.Keys, "another")
	h.router.Load([]providers.Channel{channelOf("main", "m"), channelOf("b", "m"), c}, nil)
	h.coolDown("b", "", 41*time.Second)
	h.coolDown("c", c.Keys[0].Fingerprint(), time.Hour)
	h.coolDown("c", c.Keys[1].Fingerprint(), 7*time.Second)
	h.counts = tasks.Counts{
		Phases: map[workflows.Phase]int64{workflows.PhaseQueued: 12, workflows.PhasePolling: 48}, Stuck: 3, Workers: 1,
		Failed: 2, Undelivered: 1,
	}
	h.unsettled = []ledger.Reservation{{ID: "r1", Amount: 400_000_000, Lost: true}, {ID: "r2", Amount: 30_000_000, Lost: true}}
	h.failed = map[string]string{"archive": "bucket videos is away"}
	h.tokens, h.spent = []tokens.Token{{ID: "tok_1", Name: "app", Budget: 100}}, map[string]ledger.Balance{"tok_1": {Spent: 92_100_000_000}}
	for _, user := range []string{"anna", "vera"} {
		rec := h.as(t, user).get("/console")
		checkPage(t, user, rec)
		wantAll(t, user, rec.Body.String(), "Object store does not do what is needed of it", "bucket videos is away",
			"Working. 2 of 3 channels cool down", "Channel b cools down", "Channel c cools down", " s left", "billing_hard_limit",
			"3 tasks have been in their state", "2 reservations are unsettled",
			"0.430 USD", "Token app has used 92 % of its budget", "1,000", "1 %", "up to ", "41.20 USD", "<rect", "12 queued", "48 in progress",
			`href="./console/tasks?view=stuck"`, `href="./console/tasks?view=failed"`, `href="./console/tasks?view=webhooks"`)
	}
	if page := h.as(t, "anna").get("/console").Body.String(); strings.Contains(page, "Redis does not") ||
		strings.Contains(page, "Temporal does not") {
		t.Error("a service that answers needs an action")
	}
	h.err = &providers.Fault{Kind: providers.Overloaded, Message: "Redis does not answer."}
	rec := h.as(t, "anna").get("/console")
	checkPage(t, "away", rec)
	wantAll(t, "away", rec.Body.String(), "Does not answer: channels, tasks, reservations, tokens, charts.")
}

func TestHome(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.models, h.calls = []router.Model{{ID: "gpt-4o"}}, calllog.Page{Calls: []calllog.Call{aCall()}}
	h.windows.Requests, h.spent = limits.Window{Limit: 600, Remaining: 599}, map[string]ledger.Balance{"tok_app": {Spent: 92_100_000_000}}
	rec := h.as(t, "app").get("/console")
	checkPage(t, "home", rec)
	wantAll(t, "home", rec.Body.String(), "7.90 USD", "92.10 USD of 100.00 USD", "599 of 600", "gpt-4o", "sk-…TKar", "1.9 s", `width="47.4"`,
		`/try?kind=chat&amp;model=gpt-4o" aria-label="Try: gpt-4o"`)
}

// FuzzPartBars: any numbers make a chart.
func FuzzPartBars(f *testing.F) {
	f.Add(1.0, 2.0, 3.0)
	f.Fuzz(func(t *testing.T, before, attempt, whole float64) {
		call := logs.Call{Attempts: []logs.Attempt{{MS: attempt}}}
		call.BeforeMS, call.MS = before, whole
		for _, bar := range chart.PartBars(partsOf(call)) {
			if strings.ContainsAny(bar.Width+bar.X, "-NI") {
				t.Errorf("bar %+v", bar)
			}
		}
	})
}

// TestCallLeadsOn: the page of a call links operators to its channel, and to its trace if tracing is configured. The holder of the token
// gets neither link.
func TestCallLeadsOn(t *testing.T) {
	t.Parallel()
	call := aCall()
	call.Trace = "4bf92f3577b34da6a3ce929d0e0e4736"
	h := newHouse(t, nil)
	h.calls.Calls = []calllog.Call{call}
	h.windows.Requests, h.spent = limits.Window{Limit: 60, Remaining: 59}, map[string]ledger.Balance{"tok_app": {Spent: 92_500_000_000}}
	h.server.o.TraceURL = "https://traces.example/view/{trace_id}"
	for _, key := range []string{"anna", "vera", "app"} { // the limits that are left
		wantAll(t, key, h.as(t, key).get("/console/calls/req_1").Body.String(), "What the token has left now", "7.50 USD of 100.00 USD",
			"59 of 60")
	}
	operator, holder := h.as(t, "anna").get("/console/calls/req_1").Body.String(), h.as(t, "app").get("/console/calls/req_1").Body.String()
	const trace, channel = `href="https://traces.example/view/4bf92f3577b34da6a3ce929d0e0e4736"`, `channels/b"`
	wantAll(t, "an operator's call", operator, trace, channel)
	if strings.Contains(holder, trace) || strings.Contains(holder, channel) {
		t.Error("a token's holder is led to the operator's pages")
	}
}
