package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"
	"github.com/openai/openai-go/v3"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/ledger"
	"modelrelay/storage/testwait"
)

// TestConsoleWork: the usual repairs work in the browser. An operator retries the archive of a failed task, ends a task that hangs, finds a
// call by each of its ids, and refunds or charges reservations that no process settles.
func TestConsoleWork(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t).OwnS3()
	s.SendSpans(stack.NewCollector(t)) // so that calls have a trace
	g := s.StartGateway(stack.GatewayOptions{
		AdminKey: stack.AdminKey, Video: "poll_min: 200ms, poll_max: 1s, archive_deadline: 3s",
		Tokens: "  - {name: lost, key: sk-lost-and-found, budget: 100}\nprices:\n  gpt-4o: {input: 1, output: 2, unit: 1M}\n",
	})
	// Reservations of tasks that never started. They are listed a minute later, when no start can still be in progress.
	budgets := ledger.NewBudgets(s.RedisClient(""), 0)
	for id, amount := range map[string]int64{"video_refunded": 1_500_000_000, "video_charged": 2_250_000_000} {
		if err := budgets.Reserve(t.Context(), ledger.Estimate{ID: id, Token: "lost", Model: "sora-2", Budget: 100, Amount: amount}); err != nil {
			t.Fatal(err)
		}
	}
	b := newBrowser(t, g)
	mendTask(t, b, g)
	failTask(b, g)
	findCalls(t, b, g)
	settleInBrowser(t, b, g)
	g.WantNoSecrets(t)
}

// mendTask has the store away for longer than an archive may take, and the task's page copy the video after all.
func mendTask(t *testing.T, b *chromiumTab, g *stack.Gateway) {
	t.Helper()
	s := g.Stack
	id := g.Create(t.Context(), "sora-2-manual", "worth keeping").ID
	s.Control.Await("video.get", "sora-2-manual", "", 1)
	s.S3.Kill()
	s.Control.Drive(s.Control.Job("worth keeping").ID, "completed", 100)
	if ended := g.AwaitEnd(id, stack.CrashTimeout); ended.Status != openai.VideoStatusFailed {
		t.Fatalf("ended as %s", ended.Status)
	}
	s.StartS3()
	s.S3.AwaitReady(t)
	b.allow("409") // the task removes what the last try left, for a moment
	b.allow("503") // the store is just back
	ctx, cancel := b.within()
	defer cancel()
	for done := false; !done; {
		if ctx.Err() != nil {
			t.Fatalf("the task takes no other try:\n%s", b.text("main"))
		}
		b.open("/console/tasks/" + id)
		b.await("the task", `document.querySelector('h1')`)
		b.press(`button[value="retry-archive"]`)
		b.await("what comes of it", `document.querySelector('main .said[role]')`)
		said := b.text("main .said[role]")
		if done = strings.Contains(said, "The archive is tried again."); !done && !strings.Contains(said, "try again in a minute") {
			t.Fatalf("the task's page says %q", said)
		}
	}
	b.await("the end of the second try", `document.querySelector('video')`)
	b.do(chromedp.Evaluate[chromedp.Void](`document.querySelector('video').muted = true; document.querySelector('video').play(); 0`))
	b.await("a video that plays", `document.querySelector('video').currentTime > 0`)
	b.check("a mended task")
	s.WantSubmittedOnce(1)
}

// failTask ends a task that hangs at its vendor, with a reason that stands on its page and in the audit log.
func failTask(b *chromiumTab, g *stack.Gateway) {
	b.t.Helper()
	id := g.Create(b.t.Context(), "sora-2-manual", "it hangs").ID
	b.open("/console/tasks/" + id)
	b.await("a task under way", `document.querySelector('[data-running]')`)
	b.press(`button[commandfor="fail"]`)
	b.await("the question", `document.getElementById('fail').open`)
	b.check("a question about a task")
	b.do(chromedp.SendKeys("#fail-reason", "it hangs for hours"))
	b.press("#fail button.danger:not([type=button])")
	b.await("its end", `!document.querySelector('[data-running]') && document.querySelector('#standing')?.textContent.includes('it hangs for hours')`)
	b.open("/console/audit?subject=" + id)
	b.await("the entry", `document.querySelector('main tbody')?.textContent.includes('it hangs for hours')`)
}

// findCalls leads from each id of a call, typed into the search, to its page.
func findCalls(t *testing.T, b *chromiumTab, g *stack.Gateway) {
	t.Helper()
	chat := g.Call(t, stack.Request{
		Method: http.MethodPost, Path: "/v1/chat/completions",
		Header: map[string]string{"Traceparent": "00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01"},
		Body:   `{"model":"gpt-4o","messages":[{"role":"user","content":"find me"}]}`,
	}).Header.Get("X-Request-Id")
	var create struct {
		ID string `json:"id"`
	}
	answer := g.Call(t, stack.Request{Method: http.MethodPost, Path: "/v1/videos", Body: `{"model":"sora-2-fast","prompt":"find me"}`})
	if err := json.Unmarshal(answer.Body, &create); err != nil || create.ID == "" {
		t.Fatalf("create: %d %s", answer.Status, answer.Body)
	}
	made := answer.Header.Get("X-Request-Id")
	for _, request := range []string{chat, made} {
		var call struct {
			TraceID  string `json:"trace_id"`
			VendorID string `json:"vendor_request_id"`
			TaskID   string `json:"task_id"`
		}
		testwait.Eventually(t, "the call is logged", stack.TaskTimeout, func() bool {
			status, _ := g.Admin(http.MethodGet, "/admin/calls/"+request, "", &call)
			return status == http.StatusOK
		})
		ids := map[string]string{"ours": request, "the trace's": call.TraceID, "the vendor's": call.VendorID}
		if request == made {
			ids = map[string]string{"ours": request, "the task's": call.TaskID}
		}
		for which, id := range ids {
			if id == "" {
				t.Errorf("a call without %s id: %+v", which, call)
				continue
			}
			b.open("/console")
			b.await("the search", `document.querySelector('#find')`)
			b.do(chromedp.SendKeys("#find", id), chromedp.KeyEvent(kb.Enter))
			b.await("what is found by "+which+" id", `location.pathname.endsWith('/find') && document.querySelector('main a[href*="calls/"]')`)
			b.press(`main a[href*="calls/"]`)
			b.await("the call by "+which+" id", `document.querySelector('main')?.textContent.includes(`+quoted(request)+
				`) && /\/calls\//.test(location.pathname)`)
		}
	}
	b.check("a call")
}

// settleInBrowser refunds one of two reservations that no process settles, and charges the other.
func settleInBrowser(t *testing.T, b *chromiumTab, g *stack.Gateway) {
	t.Helper()
	for _, test := range []struct{ id, do, sum string }{{"video_refunded", "refund", "1.50"}, {"video_charged", "charge", "2.25"}} {
		box := `input[name="reservation"][value="` + test.id + `"]`
		testwait.Eventually(t, "the reservation is listed", 2*time.Minute, func() bool {
			_, text := g.Admin(http.MethodGet, "/admin/usage/unsettled", "", nil)
			return strings.Contains(text, test.id)
		})
		b.open("/console/usage")
		b.press(box)
		b.press(`form:has(` + box + `) button[value="` + test.do + `"]`)
		b.await("the question with the sum", `document.querySelector('#ask h2')?.textContent.includes(`+quoted(test.sum)+`)`)
		b.check("a question about money")
		b.press(`#ask button.danger`)
		b.await("that it is done", `document.querySelector('[role=status] .mark.done')`)
	}
	var list struct {
		Data []json.RawMessage `json:"data"`
	}
	if g.Admin(http.MethodGet, "/admin/usage/unsettled", "", &list); len(list.Data) != 0 {
		t.Errorf("%d reservations are left", len(list.Data))
	}
	var token struct {
		Spent    float64 `json:"spent"`
		Reserved float64 `json:"reserved"`
	}
	if g.Admin(http.MethodGet, "/admin/tokens/lost", "", &token); token.Spent != 2.25 || token.Reserved != 0 {
		t.Errorf("the token has %+v, want 2.25 spent and nothing reserved", token)
	}
}
