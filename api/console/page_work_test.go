package console

import (
	"bytes"
	"encoding/json"
	"io"
	"mime/multipart"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/api/console/words"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/router"
	"modelrelay/storage/ledger"
	"modelrelay/storage/tokens"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// desk is an API that notes what is sent to it.
type desk struct {
	mu   sync.Mutex
	sent []string
}

const hostile = `<img src=x onerror=alert(1)>`

// fill puts channels, tasks and money into the stores of a house.
func (h *house) fill(t *testing.T) {
	t.Helper()
	first, films := channelOf("b", "gpt-4o"), channelOf("films", "sora-2")
	first.Priority, films.Vendor = 1, "films"
	h.router.Load([]providers.Channel{first, channelOf("main", "gpt-4o", "other"), films, channelOf("wide", "x-*")}, nil)
	h.coolDown("b", "", time.Minute)
	h.models = []router.Model{{ID: "gpt-4o", Vendor: "openai"}}
	h.server.o.Operator.Prices.Load(map[string]pricing.Price{"gpt-4o": priceOf(t, "2.5", "10")})
	at := func(minute, second int) time.Time { return time.Date(2026, 11, 22, 12, minute, second, 0, time.UTC) }
	h.tokens = []tokens.Token{{ID: "tok_app", Name: "mobile-app"}}
	h.counts = tasks.Counts{
		Phases: map[workflows.Phase]int64{workflows.PhaseQueued: 12, workflows.PhasePolling: 48}, Stuck: 3, Failed: 2,
		Undelivered: 1, At: at(0, 0),
	}
	h.listed = []tasks.Listed{
		{ID: "video_1", Token: "tok_app", Model: "sora-2", Channel: "main", Phase: workflows.PhasePolling, Created: at(0, 0), Due: at(30, 0)},
		{
			ID: "video_2", Token: hostile, Model: "sora-2", Phase: workflows.PhaseFailed, Code: "archive_failed", Created: at(0, 0),
			Closed: at(10, 0),
		},
	}
	h.nextTask = "more"
	h.deliveries = []tasks.ListedDelivery{
		{
			Task: "video_2", Event: "video.failed", Token: "tok_app", Model: "sora-2", State: workflows.PhaseUndelivered, Created: at(0, 0),
			Closed: at(10, 0),
		},
	}
	attempt := func(number int, channel, key, job string, fault *activities.Record) tasks.AttemptDetails {
		return tasks.AttemptDetails{At: at(0, number), Attempt: workflows.Attempt{
			Number: number, Job: job, Fault: fault, Assignment: activities.Assignment{Channel: channel, Vendor: "openai", Key: key, Model: "sora-2"},
		}}
	}
	h.stories = map[string]tasks.Details{
		"video_1": {
			Listed: h.listed[0], State: workflows.InProgress, Progress: 47, Position: 3, Path: "/namespaces/default/workflows/video_1/run",
			Request: providers.VideoRequest{Model: "sora-2", Prompt: hostile},
			Attempts: []tasks.AttemptDetails{
				attempt(1, "b", "ab12", "", &activities.Record{Kind: "upstream", Message: "no room"}),
				attempt(2, "main", "cd34", "job_81", nil),
			},
			Steps: []tasks.Step{
				{Name: "Await", At: at(0, 0), Ended: at(0, 3), Tries: 2},
				{Name: "Submit", Summary: "main", At: at(0, 3), Ended: at(0, 4), Tries: 1},
			},
			Waiting: []tasks.Waiting{{Name: "Poll", State: "scheduled", Tries: 4, Next: at(5, 0)}},
		},
		"video_2": {
			Listed: h.listed[1], State: workflows.Failed, Failure: "The result could not be copied.",
			Webhooks: []tasks.Delivery{{
				State:  "undelivered",
				Result: json.RawMessage(`{"host":"client.example:443","status":500,"tries":8,"reason":"HTTP 500"}`),
			}},
		},
		"video_3": {
			Listed: tasks.Listed{
				ID: "video_3", Token: "tok_app", Model: "sora-2", Phase: workflows.PhaseCompleted, Created: at(0, 0),
				Closed: at(10, 0),
			},
			State: workflows.Completed, Progress: 100, Charge: new(pricing.Money(900_000_000)), VendorPrice: "60 credits",
			Outputs: []activities.Output{{
				Object: "o", ContentType: "video/mp4", Size: 2_100_000, SHA256: "abcd",
				Variants: []activities.Variant{{Name: "thumbnail"}},
			}},
		},
	}
	call := tasks.Listed{
		ID: "call_1", Kind: activities.KindCall, Operation: "POST /v1/chat/completions", Token: "tok_app", Model: "gpt-4o",
		Phase: workflows.PhaseCalling, Created: at(0, 0),
	}
	h.listed = append(h.listed, call)
	h.stories["call_1"] = tasks.Details{
		Listed: call, State: workflows.InProgress,
		Call: &tasks.CallDetails{CallProgress: activities.CallProgress{Stage: activities.StageAnswering, Attempts: 2, Lost: 1}},
	}
	call.ID, call.Phase, call.Tokens, call.Cost = "call_2", workflows.PhaseCompleted, 1207, new(pricing.Money(250_000_000))
	h.stories["call_2"] = tasks.Details{
		Listed: call, State: workflows.Completed, Outputs: []activities.Output{{Object: "o", ContentType: "application/json", Size: 16}},
		Call: &tasks.CallDetails{StatusCode: 200, Usage: tasks.CallUsage{InputTokens: 1200, OutputTokens: 7}, Cost: call.Cost},
	}
	h.own = []tasks.Task{{
		ID: "video_3", Request: providers.VideoRequest{Model: "sora-2", Prompt: "A boat"}, State: workflows.Completed, Progress: 100,
		CreatedAt: at(0, 0), Ending: workflows.Ending{CompletedAt: at(10, 0)},
	}}
	h.usage = []ledger.Row{
		{Day: time.Now().UTC().AddDate(0, 0, -1).Format(time.DateOnly), Token: "tok_app", Requests: 10, Tasks: 2, Failed: 1, Cost: 3_500_000_000},
		{Day: time.Now().UTC().Format(time.DateOnly), Token: "tok_b", Requests: 5, Cost: 7_000_000_000},
		{Day: time.Now().UTC().Format(time.DateOnly), Token: "tok_b", Model: "gpt-4o", Requests: 14_203, Failed: 12},
		{Day: time.Now().UTC().Format(time.DateOnly), Token: "tok_b", Model: "sora-2", Tasks: 31},
	}
	h.unsettled = []ledger.Reservation{
		{ID: "r1", Token: "tok_app", Model: "sora-2", Amount: 400_000_000, Since: at(0, 0), Task: true},
		{ID: "r2", Token: "tok_app", Model: "sora-2", Amount: 30_000_000, Since: at(0, 0), Lost: true},
	}
	h.refused = map[string]error{"video_2": &providers.Fault{Kind: providers.Conflict, Message: "video_2 has ended: it is failed."}}
}

// newWork opens a house with tasks and money in it, over the API of a desk.
func newWork(t *testing.T) (*house, *desk) {
	t.Helper()
	d := new(desk)
	h := newHouse(t, d.ServeHTTP)
	h.fill(t)
	return h, d
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	d.sent = append(d.sent, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	d.mu.Unlock()
	_, _ = io.WriteString(w, `{"id":"video_9"}`)
}

// TestWorkPages: tasks, models and money with something in them, in every language and for every role; what others wrote is
// text.
func TestWorkPages(t *testing.T) {
	t.Parallel()
	h, _ := newWork(t)
	for _, test := range []struct {
		key, path string
		want      []string
		wantNot   []string
	}{
		{"anna", "/tasks", []string{
			`id="rows" every="1"`, "video_1", ">mobile-app</a>", "archive_failed", "&lt;img src=x", "(3)", `name="task"`,
			`value="fail"`, "after=",
		}, []string{"<img src=x"}},
		{"vera", "/tasks", []string{"video_1"}, []string{`name="task"`, `value="fail"`}},
		{"anna", "/tasks?view=webhooks", []string{"video_2", ">mobile-app</a>", `value="redeliver"`}, []string{`value="cancel"`}},
		{"app", "/tasks", []string{`id="rows" every="5"`, "video_3", "after=video_3"}, []string{"video_1", "counts"}},
		{
			"anna", "/tasks/video_1",
			[]string{
				"47", ">mobile-app</a>", "waits", "job_81", "no room", `every="1" while="[data-running]"`,
				"data-running", "&lt;img src=x", "/namespaces/default/workflows/video_1/run", `value="cancel"`,
			},
			[]string{"<video", "<img src=x", "retry-archive"},
		},
		{"vera", "/tasks/video_1", []string{"job_81"}, []string{`value="cancel"`, `value="fail"`}},
		{"anna", "/tasks/video_2", []string{
			"archive_failed", "The result could not be copied.", "retry-archive", "redeliver", "client.example",
			"HTTP 500",
		}, []string{"<video", "data-running"}},
		{"anna", "/tasks/video_3", []string{
			`id="live" every="5"`, "<video", "tasks/video_3/content?index=0", "abcd", "2,100,000",
			"variant=thumbnail", "download=1", "0.900", "60 credits",
		}, []string{"data-running"}},
		{"app", "/tasks/video_3", []string{"<video", `value="remix"`, `value="delete"`}, []string{"Temporal", "60 credits"}},
		{"anna", "/tasks?kind=call", []string{"call_1", "POST /v1/chat/completions", `<option value="call" selected>`}, nil},
		{"anna", "/tasks/call_1", []string{
			`while="[data-running]"`, "data-running", "POST /v1/chat/completions", `value="cancel"`,
			`value="fail"`,
		}, []string{"<video", "<progress", "content?download"}},
		{"anna", "/tasks/call_2", []string{
			`while="[data-running]"`, "1,207", "0.250", "application/json", "&#34;video_9&#34;",
			"content?download=1",
		}, []string{"<video", " data-running>", `value="cancel"`}},
		{"anna", "/models", []string{
			"gpt-4o", "main", "14,203", "2.50", "wide", `enctype="multipart/form-data"`,
			`try?kind=chat&amp;model=gpt-4o"`, `try?kind=video&amp;model=sora-2"`,
		}, nil},
		{"vera", "/models", []string{"gpt-4o"}, []string{"multipart", "console/try"}},
		{"app", "/models", []string{"gpt-4o", "openai", `try?kind=chat&amp;model=gpt-4o"`}, []string{"wide", "multipart"}},
		{"anna", "/usage", []string{
			"10.50", "tokens/tok_app", ">mobile-app</a>", ">tok_b</a>", "<rect", `name="reservation"`,
			"the task does not run", "0.40",
		}, nil},
		{"vera", "/usage", []string{"r1"}, []string{`name="reservation"`, `value="charge"`}},
	} {
		for _, language := range words.Languages() {
			b := h.as(t, test.key)
			r := httptest.NewRequest(http.MethodGet, "http://localhost:8080"+Root+test.path, http.NoBody)
			r.Header.Set("Accept-Language", language)
			rec := b.do(r)
			what := test.key + " " + language + " " + test.path
			if rec.Code != http.StatusOK {
				t.Errorf("%s: got %d", what, rec.Code)
			}
			checkPage(t, what, rec)
			for _, want := range test.want {
				if !strings.Contains(rec.Body.String(), want) {
					t.Errorf("%s: lacks %q", what, want)
				}
			}
			for _, not := range test.wantNot {
				if strings.Contains(rec.Body.String(), not) {
					t.Errorf("%s: has %q", what, not)
				}
			}
		}
	}
}

// TestWorkAsTables: each list is a table for spreadsheets as well.
func TestWorkAsTables(t *testing.T) {
	t.Parallel()
	h, _ := newWork(t)
	for path, want := range map[string]string{
		"/tasks?format=csv": "video_1,", "/models?format=csv": "gpt-4o,openai,main",
		"/usage?format=csv": "tok_b,",
	} {
		rec := h.as(t, "vera").get(Root + path)
		if rec.Code != http.StatusOK || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/csv") ||
			!strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: got %d %s", path, rec.Code, rec.Body)
		}
	}
}

// TestWorkOnSeveral: an action on several tasks or reservations asks first, with their number and sum. The answer reports the
// outcome for each one. A viewer is refused.
func TestWorkOnSeveral(t *testing.T) {
	t.Parallel()
	h, _ := newWork(t)
	anna := h.as(t, "anna")
	form := url.Values{"do": {"fail"}, "task": {"video_1", "video_2"}}
	rec := anna.post(Root+"/tasks", form)
	if body := rec.Body.String(); rec.Code != http.StatusOK || !strings.Contains(body, "End 2 tasks as failed?") ||
		!strings.Contains(body, `name="reason"`) || len(h.did) != 0 {
		t.Errorf("asked: %d, sent %v", rec.Code, h.did)
	}
	// The question is a dialog over the list, whose rows stay checked.
	wantAll(t, "the question", rec.Body.String(), `<dialog id="ask" data-ask open aria-labelledby="ask-h">`,
		`<form method="dialog" id="ask-no"></form>`, `<button form="ask-no" autofocus>`,
		`value="video_1" checked`, `value="video_2" checked`)
	form.Set("sure", "1")
	form.Set("reason", "the account is closed")
	anna.post(Root+"/tasks", form)
	want := []string{"fail video_1 the account is closed", "fail video_2 the account is closed"}
	if !slices.Equal(h.did, want) {
		t.Errorf("sent %q, want %q", h.did, want)
	}
	form.Set("do", "cancel")
	if body := anna.post(Root+"/tasks", form).Body.String(); !strings.Contains(body, "video_2 has ended: it is failed.") ||
		!strings.Contains(body, `id="results"`) {
		t.Errorf("results lack the refusal")
	}
	h.did = nil
	for _, form := range []url.Values{{"do": {"cancel"}}, {"do": {"cancel"}, "task": strings.Fields(many("t", 101)), "sure": {"1"}}} {
		if rec := anna.post(Root+"/tasks", form); rec.Code != http.StatusBadRequest || len(h.did) != 0 {
			t.Errorf("%d tasks: got %d, sent %d", len(form["task"]), rec.Code, len(h.did))
		}
	}
	rec = anna.post(Root+"/usage", url.Values{"do": {"refund"}, "reservation": {"r1", "r2"}})
	if body := rec.Body.String(); !strings.Contains(body, "Refund 2 reservations, 0.43") || len(h.did) != 0 {
		t.Errorf("money is not asked for with its sum: %d, %v", rec.Code, h.did)
	}
	anna.post(Root+"/usage", url.Values{"do": {"refund"}, "reservation": {"r2"}, "sure": {"1"}})
	if !slices.Equal(h.did, []string{"refund r2"}) {
		t.Errorf("sent %q", h.did)
	}
	h.did = nil
	vera := h.as(t, "vera")
	for path, do := range map[string]string{"/tasks": "cancel", "/usage": "charge", "/models": "draft", "/tasks/video_1": "fail"} {
		if rec := vera.post(Root+path, url.Values{
			"do": {do}, "task": {"video_1"}, "reservation": {"r1"}, "sure": {"1"},
			"reason": {"x"},
		}); rec.Code != http.StatusForbidden || len(h.did) != 0 {
			t.Errorf("a viewer at %s: got %d, sent %v", path, rec.Code, h.did)
		}
	}
}

// many are so many names.
func many(prefix string, n int) string {
	var names []string
	for i := range n {
		names = append(names, prefix+strings.Repeat("x", i))
	}
	return strings.Join(names, " ")
}

// TestWorkOnOne: each button of a task is one operation of the API, as the user of the session.
func TestWorkOnOne(t *testing.T) {
	t.Parallel()
	h, d := newWork(t)
	for _, test := range []struct{ key, do, sent, to string }{
		{"anna", "cancel", "cancel video_1", "tasks/video_1?done=task-cancel"},
		{"anna", "retry-archive", "retry-archive video_1", "tasks/video_1?done=task-retry-archive"},
		{"anna", "redeliver", "redeliver video_1", "tasks/video_1?done=task-redeliver"},
		{"app", "cancel", "cancel video_1 of tok_app", "tasks/video_1?done=task-cancel"},
		{"app", "delete", "delete video_1 of tok_app", "tasks?done=task-delete"},
		{"app", "remix", `POST /v1/videos/video_1/remix {"prompt":"at night"}`, "tasks/video_9"},
	} {
		d.sent, h.did = nil, nil
		rec := h.as(t, test.key).post(Root+"/tasks/video_1", url.Values{"do": {test.do}, "prompt": {"at night"}})
		if rec.Code != http.StatusSeeOther || !slices.Equal(append(h.did, d.sent...), []string{test.sent}) ||
			!strings.HasSuffix(rec.Header().Get("Location"), test.to) {
			t.Errorf("%s %s: got %d to %s, sent %q", test.key, test.do, rec.Code, rec.Header().Get("Location"), d.sent)
		}
	}
	if rec := h.as(t, "app").post(Root+"/tasks/video_1", url.Values{"do": {"fail"}, "reason": {"x"}}); rec.Code != http.StatusForbidden {
		t.Errorf("a holder ends a task as failed: got %d", rec.Code)
	}
}

// TestTaskLeadsOn: the page of a task links operators to the Temporal UI if its address is configured.
func TestTaskLeadsOn(t *testing.T) {
	t.Parallel()
	h, _ := newWork(t)
	const link = `<a href="https://temporal.example/namespaces/default/workflows/video_1/run">`
	if strings.Contains(h.as(t, "anna").get(Root+"/tasks/video_1").Body.String(), "temporal.example") {
		t.Error("a link to the Temporal UI without a configured address")
	}
	h.server.o.TemporalURL = "https://temporal.example"
	wantAll(t, "a task", h.as(t, "vera").get(Root+"/tasks/video_1").Body.String(), link)
	if strings.Contains(h.as(t, "app").get(Root+"/tasks/video_3").Body.String(), "temporal.example") {
		t.Error("a holder is led to the operator's pages")
	}
}

// TestTaskContent passes the API's answer on, by ranges, under the API's own policy, from where the role reads it.
func TestTaskContent(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", "default-src 'none'; sandbox")
		w.Header().Set("Content-Type", "video/mp4")
		w.WriteHeader(http.StatusPartialContent)
		_, _ = io.WriteString(w, r.Method+" "+r.URL.RequestURI()+" "+r.Header.Get("Range")+" "+r.Header.Get("Cookie"))
	})
	for key, want := range map[string]string{
		"anna": "GET /admin/tasks/video_1/content?index=1&variant=thumbnail bytes=2-4 ",
		"app":  "GET /v1/videos/video_1/content?index=1&variant=thumbnail bytes=2-4 ",
	} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost:8080"+Root+"/tasks/video_1/content?index=1&variant=thumbnail&download=1&key=x",
			http.NoBody)
		r.Header.Set("Range", "bytes=2-4")
		rec := h.as(t, key).do(r)
		if rec.Code != http.StatusPartialContent || rec.Body.String() != want ||
			rec.Header().Get("Content-Security-Policy") != "default-src 'none'; sandbox" ||
			rec.Header().Get("Content-Disposition") != `attachment; filename="video_1.mp4"` {
			t.Errorf("%s: got %d %q, %v", key, rec.Code, rec.Body, rec.Header())
		}
	}
	r := httptest.NewRequest(http.MethodGet, "http://localhost:8080"+Root+"/tasks/video_1/content", http.NoBody)
	rec := httptest.NewRecorder()
	h.edge.ServeHTTP(rec, r)
	if rec.Code != http.StatusSeeOther {
		t.Errorf("without a session: got %d", rec.Code)
	}
}

// TestPriceDraftPage: a list that is sent as a file becomes text to paste and what it differs in; what is no JSON is said so.
func TestPriceDraftPage(t *testing.T) {
	t.Parallel()
	h, _ := newWork(t)
	send := func(list string) *httptest.ResponseRecorder {
		var body bytes.Buffer
		form := multipart.NewWriter(&body)
		_ = form.WriteField("do", "draft")
		part, err := form.CreateFormFile("file", "prices.json")
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.WriteString(part, list)
		_ = form.Close()
		r := httptest.NewRequest(http.MethodPost, "http://localhost:8080"+Root+"/models", &body)
		r.Header.Set("Content-Type", form.FormDataContentType())
		r.Header.Set("Origin", "http://localhost:8080")
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		return h.as(t, "anna").do(r)
	}
	rec := send(`{"openai":{"models":{"gpt-4o":{"cost":{"input":2.5,"output":11}}}},"a":{"models":{"sora-2":{"cost":{"input":1,"output":1}}}},
		"b":{"models":{"sora-2":{"cost":{"input":2,"output":2}}}},"large":"` + strings.Repeat("x", 2<<20) + `"}`)
	checkPage(t, "draft", rec)
	for _, want := range []string{"{input: 2.5, output: 11}", "out 10.00", "out 11.00", "a/sora-2, b/sora-2", "other"} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("the draft lacks %q", want)
		}
	}
	if rec := send(`{"none":"of them"}`); rec.Code != http.StatusBadRequest ||
		!strings.Contains(rec.Body.String(), "This is not the list of models.dev") {
		t.Errorf("another list: got %d", rec.Code)
	}
	if rec := send("no json"); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "This is no JSON") {
		t.Errorf("no JSON: got %d", rec.Code)
	}
	if rec := send(strings.Repeat("x", 9<<20)); rec.Code != http.StatusBadRequest {
		t.Errorf("9 MiB: got %d", rec.Code)
	}
}

// TestSpentIsOfDays: what was spent is the sum of the days, whatever the table is by.
func TestSpentIsOfDays(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.usage = []ledger.Row{
		{Day: "2026-11-21", Token: "tok_a", Cost: 3_500_000_000},
		{Day: "2026-11-22", Token: "tok_a", Cost: 2_500_000_000},
		{Day: "2026-11-22", Token: "tok_b", Cost: 4_400_000_000},
		{Day: "2026-11-22", Token: "tok_c", Cost: 100_000_000},
	}
	for _, by := range []string{"token", "model", "day"} {
		wantAll(t, by, h.as(t, "vera").get(Root+"/usage?from=2026-11-21&to=2026-11-22&by="+by).Body.String(), `<b class="figure">10.50 USD</b>`,
			"2026-11-21 3.50 USD", "2026-11-22 7.00 USD")
	}
}

// TestTaskFormComesBack: what was typed on a task's page is on the page that comes back where the engine went away meanwhile, and can be
// sent again from there.
func TestTaskFormComesBack(t *testing.T) {
	t.Parallel()
	away := providers.Fault{Kind: providers.Overloaded, Message: "The task engine is not available now."}
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { refuse(w, http.StatusServiceUnavailable, away.Message) })
	h.err = &away
	for user, form := range map[string]url.Values{
		"anna": {"do": {"fail"}, "reason": {"it hangs \"for hours\""}},
		"app":  {"do": {"remix"}, "prompt": {"it hangs \"for hours\""}},
	} {
		rec := h.as(t, user).post("/console/tasks/video_1", form)
		checkPage(t, user, rec)
		wantAll(t, user, rec.Body.String(), "The task engine is not available now.", `value="it hangs &#34;for hours&#34;"`,
			`name="do" value="`+form.Get("do")+`"`, `name="once"`, "<code>video_1</code>")
		if rec.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", user, rec.Code)
		}
	}
	rec := h.as(t, "anna").post("/console/tasks/video_1", url.Values{"do": {"cancel"}})
	checkPage(t, "cancel", rec)
	if strings.Contains(rec.Body.String(), `name="do"`) {
		t.Error("a form of nothing typed comes back")
	}
}

// TestTasksAway: while the engine is away the page reports it, the filters are as they were typed, and an action on several
// tasks asks the engine once.
func TestTasksAway(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.err = &providers.Fault{Kind: providers.Overloaded, Message: "The task engine is not available now."}
	anna := h.as(t, "anna")
	const path = "/console/tasks?view=stuck&state=polling&token=tok_app&model=sora&channel=main&since=2026-11-01&until=2026-11-20"
	rec := anna.get(path)
	checkPage(t, "tasks without the engine", rec)
	wantAll(t, "tasks without the engine", rec.Body.String(), `role="alert"`, "The task engine is not available now.",
		`<option value="polling" selected>`,
		`value="tok_app"`, `value="sora"`, `value="main"`, `value="2026-11-01"`, `value="2026-11-20"`, `name="view" value="stuck"`,
		"Other pages still work.")
	if rec.Code != http.StatusServiceUnavailable { // for a refresh keeps what it has
		t.Errorf("tasks without the engine: %d", rec.Code)
	}
	if rec := anna.get(path + "&format=csv"); rec.Code != http.StatusServiceUnavailable ||
		strings.Contains(rec.Header().Get("Content-Type"), "csv") {
		t.Errorf("as a table: %d %s", rec.Code, rec.Header().Get("Content-Type"))
	}
	refund := anna.post("/console/usage", url.Values{"do": {"refund"}, "reservation": {"r1"}})
	if refund.Code != http.StatusServiceUnavailable || strings.Contains(refund.Body.String(), `id="ask"`) {
		t.Errorf("a refund whose sum is unknown is asked for: %d", refund.Code)
	}
	form := url.Values{"do": {"fail"}, "task": {"video_1", "video_2", "video_3"}}
	wantAll(t, "the question", anna.post("/console/tasks", form).Body.String(), `<dialog id="ask" data-ask open`,
		`name="task" value="video_3"`)
	form.Set("sure", "1")
	form.Set("reason", "x")
	wantAll(t, "what came of it", anna.post("/console/tasks", form).Body.String(), ">video_1</code>", ">video_3</code>")
	if n := len(h.did); n != 1 {
		t.Errorf("an engine that is away was asked %d times about three tasks", n)
	}
}
