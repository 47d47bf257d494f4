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
	"sync/atomic"
	"testing"

	"modelrelay/api/console/words"
)

// desk is an API with tasks, models and money in it. It notes what is sent to it.
type desk struct {
	mu   sync.Mutex
	sent []string
}

const hostile = `<img src=x onerror=alert(1)>`

// answers are what the desk answers to GET.
func answers() map[string]string {
	return map[string]string{
		"/admin/tasks/counts": `{"queued":12,"submitting":1,"polling":48,"archiving":2,"stuck":3,"failed":2,"undelivered":1,"workers":0,"counted_at":"2026-11-22T13:00:00Z"}`,
		"/admin/tasks": `{"data":[{"id":"video_1","token":"tok_app","model":"sora-2","channel":"main","phase":"polling","created":"2026-11-22T12:00:00Z","due":"2026-11-22T12:30:00Z"},
			{"id":"video_2","token":"` + hostile + `","model":"sora-2","phase":"failed","code":"archive_failed","created":"2026-11-22T12:00:00Z","closed":"2026-11-22T12:10:00Z"}],"after":"more"}`,
		"/admin/tokens":     `{"data":[{"id":"tok_app","name":"mobile-app"}]}`,
		"/admin/deliveries": `{"data":[{"task":"video_2","event":"video.failed","token":"tok_app","model":"sora-2","state":"undelivered","created":"2026-11-22T12:00:00Z","closed":"2026-11-22T12:10:00Z"}],"after":null}`,
		"/admin/tasks/video_1": `{"id":"video_1","token":"tok_app","model":"sora-2","channel":"main","phase":"polling","state":"in_progress","progress":47,"created":"2026-11-22T12:00:00Z",
			"path":"/namespaces/default/workflows/video_1/run","request":{"model":"sora-2","prompt":"` + hostile + `"},
			"attempts":[{"number":1,"assignment":{"channel":"b","vendor":"openai","key":"ab12","model":"sora-2"},"at":"2026-11-22T12:00:01Z","fault":{"kind":"upstream","message":"no room"}},
			{"number":2,"assignment":{"channel":"main","vendor":"openai","key":"cd34","model":"sora-2"},"at":"2026-11-22T12:00:02Z","job":"job_81"}],
			"steps":[{"name":"Await","at":"2026-11-22T12:00:00Z","ended":"2026-11-22T12:00:03Z","tries":2},{"name":"Submit","summary":"main","at":"2026-11-22T12:00:03Z","ended":"2026-11-22T12:00:04Z","tries":1}],
			"waiting":[{"name":"Poll","state":"scheduled","tries":4,"next":"2026-11-22T12:05:00Z","heartbeat":{"position":3}}]}`,
		"/admin/tasks/video_2": `{"id":"video_2","token":"tok_app","model":"sora-2","phase":"failed","state":"failed","code":"archive_failed","failure":"The result could not be copied.",
			"created":"2026-11-22T12:00:00Z","closed":"2026-11-22T12:10:00Z","webhooks":[{"state":"undelivered","result":{"host":"client.example:443","status":500,"tries":8,"reason":"HTTP 500"}}]}`,
		"/admin/tasks/video_3": `{"id":"video_3","token":"tok_app","model":"sora-2","phase":"completed","state":"completed","progress":100,"created":"2026-11-22T12:00:00Z","closed":"2026-11-22T12:10:00Z",
			"charge":0.9,"vendor_price":"60 credits","outputs":[{"object":"o","content_type":"video/mp4","size":2100000,"sha256":"abcd","variants":[{"name":"thumbnail"}]}]}`,
		"/v1/videos":         `{"data":[{"id":"video_3","model":"sora-2","status":"completed","progress":100,"created_at":1763812800,"completed_at":1763812900}],"has_more":true}`,
		"/v1/videos/video_3": `{"id":"video_3","model":"sora-2","status":"completed","progress":100,"created_at":1763812800,"completed_at":1763812900,"prompt":"A boat"}`,
		"/v1/models":         `{"data":[{"id":"gpt-4o","owned_by":"openai"}]}`,
		"/admin/models": `{"data":[{"id":"gpt-4o","formats":["openai.chat"],"groups":["default"],"channels":[{"name":"b","state":"open"},{"name":"main","state":"closed"}],
			"price":{"input":2.5,"cached_input":null,"output":10,"request":null,"image":null,"audio_second":null,"second":null,"video":null},"last_30_days":{"requests":14203,"tasks":0,"failed":12,"cost":41.2}},
			{"id":"sora-2","formats":["video"],"groups":["default"],"channels":[{"name":"main","state":"open","usual_seconds":90}],"price":null}],
			"open":["wide"],"unpriced":[{"model":"sora-2","requests":0,"tasks":31}],"used_at":"2026-11-22T13:00:00Z"}`,
		"/admin/usage": `{"from":"2026-11-01","to":"2026-11-22","data":[{"day":"2026-11-20","requests":10,"tasks":2,"failed":1,"cost":3.5,"token":"tok_app","priced":false},{"day":"2026-11-22","requests":5,"cost":7,"token":"tok_b"}]}`,
		"/admin/usage/unsettled": `{"data":[{"id":"r1","token":"tok_app","model":"sora-2","amount":0.4,"since":"2026-11-21T12:00:00Z","why":"the task does not run"},
			{"id":"r2","token":"tok_app","model":"sora-2","amount":0.03,"since":"2026-11-22T12:00:00Z","why":"its gateway is gone"}],"amount":0.43}`,
	}
}

func (d *desk) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	if r.Method == http.MethodGet {
		answer, ok := answers()[r.URL.Path]
		if !ok {
			refuse(w, http.StatusNotFound, "There is nothing at this path.")
			return
		}
		_, _ = io.WriteString(w, answer)
		return
	}
	body, _ := io.ReadAll(r.Body)
	d.mu.Lock()
	d.sent = append(d.sent, strings.TrimSpace(r.Method+" "+r.URL.Path+" "+string(body)))
	d.mu.Unlock()
	switch {
	case strings.Contains(r.URL.Path, "video_2/cancel"):
		refuse(w, http.StatusConflict, "video_2 has ended: it is failed.")
	case strings.HasSuffix(r.URL.Path, "/prices/draft") && strings.Contains(string(body), "none"):
		refuse(w, http.StatusBadRequest, "Invalid request: this is not a price list that is read.")
	case strings.HasSuffix(r.URL.Path, "/prices/draft"):
		_, _ = io.WriteString(w, `{"yaml":"prices:\n  \"gpt-4o\": {input: 2.5, output: 11}\n","data":[{"model":"gpt-4o","found":"gpt-4o","change":"changed","before":{"input":2.5,"output":10},"after":{"input":2.5,"output":11}}],
			"ambiguous":[{"model":"sora-2","found":["a/sora-2","b/sora-2"]}],"missing":["other"]}`)
	default:
		_, _ = io.WriteString(w, `{"id":"video_9"}`)
	}
}

// TestWorkPages: tasks, models and money with something in them, in every language and for every role; what others wrote is
// text.
func TestWorkPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t, new(desk).ServeHTTP)
	for _, test := range []struct {
		key, path string
		want      []string
		wantNot   []string
	}{
		{"anna", "/tasks", []string{`id="rows" every="1"`, "video_1", ">mobile-app</a>", "archive_failed", "&lt;img src=x", "(3)", `name="task"`, `value="fail"`, "after=more"}, []string{"<img src=x"}},
		{"vera", "/tasks", []string{"video_1"}, []string{`name="task"`, `value="fail"`}},
		{"anna", "/tasks?view=webhooks", []string{"video_2", ">mobile-app</a>", `value="redeliver"`}, []string{`value="cancel"`}},
		{"app", "/tasks", []string{`id="rows" every="5"`, "video_3", "after=video_3"}, []string{"video_1", "counts"}},
		{"anna", "/tasks/video_1", []string{"47", ">mobile-app</a>", "waits", "job_81", "no room", `every="1" while="[data-running]"`, "data-running", "&lt;img src=x", "/namespaces/default/workflows/video_1/run", `value="cancel"`}, []string{"<video", "<img src=x", "retry-archive"}},
		{"vera", "/tasks/video_1", []string{"job_81"}, []string{`value="cancel"`, `value="fail"`}},
		{"anna", "/tasks/video_2", []string{"archive_failed", "The result could not be copied.", "retry-archive", "redeliver", "client.example", "HTTP 500"}, []string{"<video", "data-running"}},
		{"anna", "/tasks/video_3", []string{`id="live" every="5"`, "<video", "tasks/video_3/content?index=0", "abcd", "2,100,000", "variant=thumbnail", "download=1", "0.900", "60 credits"}, []string{"data-running"}},
		{"app", "/tasks/video_3", []string{"<video", `value="remix"`, `value="delete"`}, []string{"Temporal", "60 credits"}},
		{"anna", "/models", []string{"gpt-4o", "main", "14,203", "2.50", "wide", `enctype="multipart/form-data"`, `try?kind=chat&amp;model=gpt-4o"`, `try?kind=video&amp;model=sora-2"`}, nil},
		{"vera", "/models", []string{"gpt-4o"}, []string{"multipart", "console/try"}},
		{"app", "/models", []string{"gpt-4o", "openai", `try?kind=chat&amp;model=gpt-4o"`}, []string{"wide", "multipart"}},
		{"anna", "/usage", []string{"10.50", "tokens/tok_app", ">mobile-app</a>", ">tok_b</a>", "<rect", `name="reservation"`, "the task does not run", "0.40"}, nil},
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
	h := newHouse(t, new(desk).ServeHTTP)
	for path, want := range map[string]string{"/tasks?format=csv": "video_1,", "/models?format=csv": "gpt-4o,openai,main", "/usage?format=csv": "tok_b,"} {
		rec := h.as(t, "vera").get(Root + path)
		if rec.Code != http.StatusOK || !strings.HasPrefix(rec.Header().Get("Content-Type"), "text/csv") || !strings.Contains(rec.Body.String(), want) {
			t.Errorf("%s: got %d %s", path, rec.Code, rec.Body)
		}
	}
}

// TestWorkOnSeveral asks first, with how many and how much, and tells of each what came of it; a viewer is refused.
func TestWorkOnSeveral(t *testing.T) {
	t.Parallel()
	d := new(desk)
	h := newHouse(t, d.ServeHTTP)
	anna := h.as(t, "anna")
	form := url.Values{"do": {"fail"}, "task": {"video_1", "video_2"}}
	rec := anna.post(Root+"/tasks", form)
	if body := rec.Body.String(); rec.Code != http.StatusOK || !strings.Contains(body, "End 2 tasks as failed?") || !strings.Contains(body, `name="reason"`) || len(d.sent) != 0 {
		t.Errorf("asked: %d, sent %v", rec.Code, d.sent)
	}
	// The question is a dialog, and the rows stay chosen behind it.
	wantAll(t, "the question", rec.Body.String(), `<dialog id="ask" data-ask open aria-labelledby="ask-h">`, `<form method="dialog" id="ask-no"></form>`, `<button form="ask-no" autofocus>`,
		`value="video_1" checked`, `value="video_2" checked`)
	form.Set("sure", "1")
	form.Set("reason", "the account is closed")
	anna.post(Root+"/tasks", form)
	want := []string{
		`POST /admin/tasks/video_1/fail {"reason":"the account is closed"}`, `POST /admin/tasks/video_2/fail {"reason":"the account is closed"}`,
	}
	if !slices.Equal(d.sent, want) {
		t.Errorf("sent %q, want %q", d.sent, want)
	}
	form.Set("do", "cancel")
	if body := anna.post(Root+"/tasks", form).Body.String(); !strings.Contains(body, "video_2 has ended: it is failed.") || !strings.Contains(body, `id="results"`) {
		t.Errorf("results lack the refusal")
	}
	d.sent = nil
	for _, form := range []url.Values{{"do": {"cancel"}}, {"do": {"cancel"}, "task": strings.Fields(many("t", 101)), "sure": {"1"}}} {
		if rec := anna.post(Root+"/tasks", form); rec.Code != http.StatusBadRequest || len(d.sent) != 0 {
			t.Errorf("%d tasks: got %d, sent %d", len(form["task"]), rec.Code, len(d.sent))
		}
	}
	rec = anna.post(Root+"/usage", url.Values{"do": {"refund"}, "reservation": {"r1", "r2"}})
	if body := rec.Body.String(); !strings.Contains(body, "Refund 2 reservations, 0.43") || len(d.sent) != 0 {
		t.Errorf("money is not asked for with its sum: %d, %v", rec.Code, d.sent)
	}
	anna.post(Root+"/usage", url.Values{"do": {"refund"}, "reservation": {"r2"}, "sure": {"1"}})
	if !slices.Equal(d.sent, []string{"POST /admin/usage/unsettled/r2/refund"}) {
		t.Errorf("sent %q", d.sent)
	}
	d.sent = nil
	vera := h.as(t, "vera")
	for path, do := range map[string]string{"/tasks": "cancel", "/usage": "charge", "/models": "draft", "/tasks/video_1": "fail"} {
		if rec := vera.post(Root+path, url.Values{"do": {do}, "task": {"video_1"}, "reservation": {"r1"}, "sure": {"1"}, "reason": {"x"}}); rec.Code != http.StatusForbidden || len(d.sent) != 0 {
			t.Errorf("a viewer at %s: got %d, sent %v", path, rec.Code, d.sent)
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

// TestWorkOnOne: each button of a task is one operation of the API, as who has signed in.
func TestWorkOnOne(t *testing.T) {
	t.Parallel()
	d := new(desk)
	h := newHouse(t, d.ServeHTTP)
	for _, test := range []struct{ key, do, sent, to string }{
		{"anna", "cancel", "POST /admin/tasks/video_1/cancel", "tasks/video_1?done=task-cancel"},
		{"anna", "retry-archive", "POST /admin/tasks/video_1/retry-archive", "tasks/video_1?done=task-retry-archive"},
		{"anna", "redeliver", "POST /admin/tasks/video_1/redeliver", "tasks/video_1?done=task-redeliver"},
		{"app", "cancel", "POST /v1/videos/video_1/cancel", "tasks/video_1?done=task-cancel"},
		{"app", "delete", "DELETE /v1/videos/video_1", "tasks?done=task-delete"},
		{"app", "remix", `POST /v1/videos/video_1/remix {"prompt":"at night"}`, "tasks/video_9"},
	} {
		d.sent = nil
		rec := h.as(t, test.key).post(Root+"/tasks/video_1", url.Values{"do": {test.do}, "prompt": {"at night"}})
		if rec.Code != http.StatusSeeOther || !slices.Equal(d.sent, []string{test.sent}) || !strings.HasSuffix(rec.Header().Get("Location"), test.to) {
			t.Errorf("%s %s: got %d to %s, sent %q", test.key, test.do, rec.Code, rec.Header().Get("Location"), d.sent)
		}
	}
	if rec := h.as(t, "app").post(Root+"/tasks/video_1", url.Values{"do": {"fail"}, "reason": {"x"}}); rec.Code != http.StatusForbidden {
		t.Errorf("a holder ends a task as failed: got %d", rec.Code)
	}
}

// TestTaskLeadsOn: a task leads operators to the Temporal UI where the configuration says where that is.
func TestTaskLeadsOn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, new(desk).ServeHTTP)
	const link = `<a href="https://temporal.example/namespaces/default/workflows/video_1/run">`
	if strings.Contains(h.as(t, "anna").get(Root+"/tasks/video_1").Body.String(), "temporal.example") {
		t.Error("a task leads to nowhere")
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
		"anna": "GET /admin/tasks/video_1/content?index=1&variant=thumbnail bytes=2-4 ", "app": "GET /v1/videos/video_1/content?index=1&variant=thumbnail bytes=2-4 ",
	} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost:8080"+Root+"/tasks/video_1/content?index=1&variant=thumbnail&download=1&key=x", http.NoBody)
		r.Header.Set("Range", "bytes=2-4")
		rec := h.as(t, key).do(r)
		if rec.Code != http.StatusPartialContent || rec.Body.String() != want || rec.Header().Get("Content-Security-Policy") != "default-src 'none'; sandbox" ||
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
	d := new(desk)
	h := newHouse(t, d.ServeHTTP)
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
	list, err := json.Marshal(map[string]string{"gpt-4o": strings.Repeat("x", 2<<20)})
	if err != nil {
		t.Fatal(err)
	}
	rec := send(string(list))
	checkPage(t, "draft", rec)
	for _, want := range []string{"{input: 2.5, output: 11}", "out 10.00", "out 11.00", "a/sora-2, b/sora-2", "other"} {
		if !strings.Contains(rec.Body.String(), want) {
			t.Errorf("the draft lacks %q", want)
		}
	}
	if len(d.sent) != 1 || len(d.sent[0]) < 2<<20 {
		t.Errorf("sent %d lists", len(d.sent))
	}
	if rec := send(`{"none":"of them"}`); rec.Code != http.StatusBadRequest || !strings.Contains(rec.Body.String(), "This is not the list of models.dev") {
		t.Errorf("another list: got %d", rec.Code)
	}
	d.sent = d.sent[:1]
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
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Query().Get("group_by") == "day":
			_, _ = io.WriteString(w, `{"from":"2026-11-21","to":"2026-11-22","data":[{"day":"2026-11-21","cost":3.5},{"day":"2026-11-22","cost":7}]}`)
		case r.URL.Path == "/admin/usage":
			_, _ = io.WriteString(w, `{"from":"2026-11-21","to":"2026-11-22","data":[{"token":"tok_a","cost":6},{"token":"tok_b","cost":4.4},{"token":"tok_c","cost":0.1}]}`)
		default:
			_, _ = io.WriteString(w, `{"data":[]}`)
		}
	})
	for _, by := range []string{"token", "model", "day"} {
		wantAll(t, by, h.as(t, "vera").get(Root+"/usage?by="+by).Body.String(), `<span class="figure">10.50 USD</span>`, "2026-11-21 3.50 USD", "2026-11-22 7.00 USD")
	}
}

// TestTaskKeepsTyped: what was typed on a task's page is on the page that comes back where the engine went away meanwhile, and can be
// sent again from there.
func TestTaskKeepsTyped(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		refuse(w, http.StatusServiceUnavailable, "The task engine is not available now.")
	})
	for who, form := range map[string]url.Values{
		"anna": {"do": {"fail"}, "reason": {"it hangs \"for hours\""}},
		"app":  {"do": {"remix"}, "prompt": {"it hangs \"for hours\""}},
	} {
		rec := h.as(t, who).post("/console/tasks/video_1", form)
		checkPage(t, who, rec)
		wantAll(t, who, rec.Body.String(), "The task engine is not available now.", `value="it hangs &#34;for hours&#34;"`, `name="do" value="`+form.Get("do")+`"`, `name="once"`, "<code>video_1</code>")
		if rec.Code != http.StatusServiceUnavailable {
			t.Errorf("%s: %d", who, rec.Code)
		}
	}
	rec := h.as(t, "anna").post("/console/tasks/video_1", url.Values{"do": {"cancel"}})
	checkPage(t, "cancel", rec)
	if strings.Contains(rec.Body.String(), `name="do"`) {
		t.Error("a form of nothing typed comes back")
	}
}

// TestTasksAway: with the engine away the page says so, the filters are as they were typed, and what was chosen is asked about once.
func TestTasksAway(t *testing.T) {
	t.Parallel()
	var asked atomic.Int64
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		if r.Method == http.MethodPost {
			asked.Add(1)
		}
		refuse(w, http.StatusServiceUnavailable, "The task engine is not available now.")
	})
	anna := h.as(t, "anna")
	const path = "/console/tasks?view=stuck&state=polling&token=tok_app&model=sora&channel=main&since=2026-11-01&until=2026-11-20"
	rec := anna.get(path)
	checkPage(t, "tasks without the engine", rec)
	wantAll(t, "tasks without the engine", rec.Body.String(), `role="alert"`, "The task engine is not available now.", `<option value="polling" selected>`,
		`value="tok_app"`, `value="sora"`, `value="main"`, `value="2026-11-01"`, `value="2026-11-20"`, `name="view" value="stuck"`, "Other pages still work.")
	if rec.Code != http.StatusServiceUnavailable { // for a refresh keeps what it has
		t.Errorf("tasks without the engine: %d", rec.Code)
	}
	if rec := anna.get(path + "&format=csv"); rec.Code != http.StatusServiceUnavailable || strings.Contains(rec.Header().Get("Content-Type"), "csv") {
		t.Errorf("as a table: %d %s", rec.Code, rec.Header().Get("Content-Type"))
	}
	form := url.Values{"do": {"fail"}, "task": {"video_1", "video_2", "video_3"}}
	wantAll(t, "the question", anna.post("/console/tasks", form).Body.String(), `<dialog id="ask" data-ask open`, `name="task" value="video_3"`)
	form.Set("sure", "1")
	wantAll(t, "what came of it", anna.post("/console/tasks", form).Body.String(), ">video_1</code>", ">video_3</code>")
	if n := asked.Load(); n != 1 {
		t.Errorf("an engine that is away was asked %d times about three tasks", n)
	}
}
