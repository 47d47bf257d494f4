package api_test

import (
	"bufio"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// event is one server-sent event, or a comment.
type event struct{ id, data string }

// follow opens an event stream and sends what comes; the channel is closed at the stream's end.
func follow(ctx context.Context, t *testing.T, url string, headers ...string) (*http.Response, <-chan event) {
	t.Helper()
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	req.Header.Set("Authorization", "Bearer "+goodKey)
	for i := 0; i+1 < len(headers); i += 2 {
		req.Header.Set(headers[i], headers[i+1])
	}
	resp, err := http.DefaultClient.Do(req)
	if err != nil {
		t.Fatal(err)
	}
	events := make(chan event, 64)
	go func() {
		defer close(events)
		defer resp.Body.Close()
		var e event
		for lines := bufio.NewScanner(resp.Body); lines.Scan(); {
			name, value, _ := strings.Cut(lines.Text(), ":")
			switch value = strings.TrimPrefix(value, " "); {
			case lines.Text() == "":
				events <- e
				e = event{}
			case name == "id":
				e.id = value
			case name == "data":
				e.data = value
			}
		}
	}()
	return resp, events
}

// next waits for the next event that is no comment; ok is false at the end of the stream.
func next(t *testing.T, events <-chan event) (event, bool) {
	t.Helper()
	for {
		select {
		case e, ok := <-events:
			if ok && e == (event{}) {
				continue
			}
			return e, ok
		case <-time.After(patience):
			t.Fatal("no event in time")
		}
	}
}

func running(progress int) tasks.Task {
	return tasks.Task{
		ID: "video_1", Token: "good", State: workflows.InProgress, Progress: progress, CreatedAt: day,
		Request: providers.VideoRequest{Model: "sora-2", Prompt: "p"},
	}
}

func failed(progress int) tasks.Task {
	task := running(progress)
	task.State, task.CompletedAt = workflows.Failed, day
	task.Failure = &providers.VideoFailure{Code: "cancelled", Message: "Stopped."}
	return task
}

// eventServer serves a gateway over a socket, with a running task.
func eventServer(t *testing.T) (*gateway, string) {
	t.Helper()
	g := newGateway(t, nil, nil)
	g.tasks.put(running(10))
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	return g, server.URL
}

func TestEvents(t *testing.T) {
	t.Parallel()
	for path, key := range map[string]string{
		"/v1/videos/video_1/events":     "remixed_from_video_id",
		generations + "/video_1/events": "task_id",
	} {
		t.Run(path, func(t *testing.T) {
			t.Parallel()
			g, url := eventServer(t)
			resp, events := follow(t.Context(), t, url+path)
			if resp.StatusCode != 200 || resp.Header.Get("Content-Type") != "text/event-stream" ||
				resp.Header.Get("Cache-Control") != "private, no-store" {
				t.Errorf("got %d %v", resp.StatusCode, resp.Header)
			}
			want := func(id, status string, progress int) {
				t.Helper()
				e, _ := next(t, events)
				var object map[string]any
				if err := json.Unmarshal([]byte(e.data), &object); err != nil {
					t.Fatalf("%v in %q", err, e.data)
				}
				if _, ok := object[key]; !ok || e.id != id || object["id"] != "video_1" || object["status"] != status ||
					object["progress"] != float64(progress) {
					t.Errorf("got %+v, want %s", e, id)
				}
			}
			want("in_progress-10", "in_progress", 10)
			g.tasks.put(running(40))
			want("in_progress-40", "in_progress", 40)
			waiting := running(40)
			waiting.QueuePosition = 2
			g.tasks.put(waiting)
			want("in_progress-40", "in_progress", 40)
			g.tasks.put(failed(40))
			want("failed-40", "failed", 40)
			if e, more := next(t, events); more {
				t.Errorf("got %+v after the end", e)
			}
			if n := g.tasks.watchers(); n != 0 {
				t.Errorf("got %d watchers after the end", n)
			}
		})
	}
}

// TestEventsResume: a client that comes back gets the task at once if it changed meanwhile, and else the next change; one
// that has seen the end gets an answer that ends a browser's reconnecting.
func TestEventsResume(t *testing.T) {
	t.Parallel()
	g, url := eventServer(t)
	url += "/v1/videos/video_1/events"
	_, stale := follow(t.Context(), t, url, "Last-Event-ID", "queued-0")
	if e, _ := next(t, stale); e.id != "in_progress-10" {
		t.Errorf("changed meanwhile: got %+v", e)
	}
	_, current := follow(t.Context(), t, url, "Last-Event-ID", "in_progress-10")
	testwait.Eventually(t, "both watch", patience, func() bool { return g.tasks.watchers() == 2 })
	g.tasks.put(failed(10))
	for name, events := range map[string]<-chan event{"stale": stale, "current": current} {
		if e, _ := next(t, events); e.id != "failed-10" {
			t.Errorf("%s: got %+v, want failed-10", name, e)
		}
	}
	resp, events := follow(t.Context(), t, url, "Last-Event-ID", "failed-10")
	if _, more := next(t, events); more || resp.StatusCode != http.StatusNoContent {
		t.Errorf("after the end: got %d", resp.StatusCode)
	}
	_, events = follow(t.Context(), t, url)
	if e, _ := next(t, events); e.id != "failed-10" {
		t.Errorf("a new client of an ended task: got %+v", e)
	}
}

// TestEventsEnd: a client that leaves frees its watcher, a process that stops ends its streams, and a task that is removed
// ends with an error event.
func TestEventsEnd(t *testing.T) {
	t.Parallel()
	g, url := eventServer(t)
	url += "/v1/videos/video_1/events"
	ctx, leave := context.WithCancel(t.Context())
	_, events := follow(ctx, t, url)
	next(t, events)
	testwait.Eventually(t, "one watches", patience, func() bool { return g.tasks.watchers() == 1 })
	leave()
	testwait.Eventually(t, "the watcher is freed", patience, func() bool { return g.tasks.watchers() == 0 })
	testwait.Eventually(t, "the log has the request", patience, func() bool { return strings.Contains(g.log.String(), `"status":499`) })

	_, removed := follow(t.Context(), t, url)
	next(t, removed)
	if rec := g.do(t, request("DELETE", "/v1/videos/video_1", "")); rec.Code != 200 {
		t.Fatalf("got %d %s", rec.Code, rec.Body)
	}
	e, _ := next(t, removed)
	var body openAIError
	decode(t, []byte(e.data), &body)
	if _, more := next(t, removed); more || body.Error.Code != "not_found" {
		t.Errorf("removed: got %+v", e)
	}

	g.tasks.put(running(10))
	_, events = follow(t.Context(), t, url)
	next(t, events)
	g.Drain()
	if e, more := next(t, events); more {
		t.Errorf("got %+v after the process stopped", e)
	}
	if _, events = follow(t.Context(), t, url); true {
		first, _ := next(t, events)
		if _, more := next(t, events); more || first.id != "in_progress-10" {
			t.Errorf("while stopping: got %+v, more %v", first, more)
		}
	}
}

// TestEventsSilence: comments show that a silent stream lives.
func TestEventsSilence(t *testing.T) {
	t.Parallel()
	g, url := eventServer(t)
	g.SetEventsEvery(5 * time.Millisecond)
	_, events := follow(t.Context(), t, url+"/v1/videos/video_1/events")
	next(t, events)
	for range 3 {
		if e := <-events; e != (event{}) {
			t.Errorf("got %+v, want a comment", e)
		}
	}
	g.tasks.put(failed(10))
	if e, _ := next(t, events); e.id != "failed-10" {
		t.Errorf("got %+v", e)
	}
}

func TestEventsFaults(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.tasks.put(running(10))
	for _, path := range []string{"/v1/videos/video_0/events", generations + "/video_0/events"} {
		rec := g.do(t, request("GET", path, ""))
		if code, _ := fault(t, rec); rec.Code != 404 || code != "not_found" {
			t.Errorf("%s: got %d %s", path, rec.Code, rec.Body)
		}
	}
	if rec := g.do(t, request("GET", "/v1/videos/video_1/events", "", "Authorization", "")); rec.Code != 401 {
		t.Errorf("without a token: got %d", rec.Code)
	}
}

// statusReads are the three ways to read a task.
func statusReads(wait string) map[string]*http.Request {
	return map[string]*http.Request{
		"sora":             request("GET", "/v1/videos/video_1?wait="+wait, ""),
		"generic":          request("GET", generations+"/video_1?wait="+wait, ""),
		"vendor C":         request("POST", resultPath, `{"task_id":"video_1","wait":`+wait+`}`),
		"vendor C's query": request("POST", resultPath+"&wait="+wait, `{"task_id":"video_1"}`),
	}
}

func TestWait(t *testing.T) {
	t.Parallel()
	for name, req := range statusReads("30") {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, nil)
			g.tasks.put(running(10))
			answers := make(chan *httptest.ResponseRecorder, 1)
			go func() { answers <- g.do(t, req) }()
			testwait.Eventually(t, "it waits", patience, func() bool { return g.tasks.watchers() == 1 })
			g.tasks.put(running(55))
			if rec := <-answers; rec.Code != 200 || !strings.Contains(rec.Body.String(), `"progress":55`) {
				t.Errorf("got %d %s", rec.Code, rec.Body)
			}
		})
	}
	for name, req := range statusReads("1") {
		t.Run(name+", no change", func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, nil)
			g.tasks.put(running(10))
			start := time.Now()
			rec := g.do(t, req)
			if took := time.Since(start); rec.Code != 200 || !strings.Contains(rec.Body.String(), `"progress":10`) || took < time.Second {
				t.Errorf("got %d %s after %v, want it as it was after a second", rec.Code, rec.Body, took)
			}
		})
	}
	for name, req := range statusReads("60") {
		t.Run(name+", stopping", func(t *testing.T) {
			t.Parallel()
			g := newGateway(t, nil, nil)
			g.tasks.put(running(10))
			answers := make(chan *httptest.ResponseRecorder, 1)
			go func() { answers <- g.do(t, req) }()
			testwait.Eventually(t, "it waits", patience, func() bool { return g.tasks.watchers() == 1 })
			g.Drain()
			if rec := <-answers; rec.Code != 200 || !strings.Contains(rec.Body.String(), `"progress":10`) {
				t.Errorf("got %d %s", rec.Code, rec.Body)
			}
		})
	}
	for _, bad := range []string{"61", "-1", "1.5"} {
		for name, req := range statusReads(bad) {
			g := newGateway(t, nil, nil)
			g.tasks.put(running(10))
			if rec := g.do(t, req); rec.Code != 400 || !strings.Contains(rec.Body.String(), "wait") {
				t.Errorf("%s of %s: got %d %s", name, bad, rec.Code, rec.Body)
			}
		}
	}
}

// TestWaitEnds: an ended task is answered at once, one that goes meanwhile is found no more, and a client that leaves
// frees its watcher.
func TestWaitEnds(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	g.tasks.put(failed(10))
	if rec := g.do(t, request("GET", "/v1/videos/video_1?wait=60", "")); rec.Code != 200 || !strings.Contains(rec.Body.String(), `"failed"`) {
		t.Errorf("ended: got %d %s", rec.Code, rec.Body)
	}
	g.tasks.put(running(10))
	answers := make(chan *httptest.ResponseRecorder, 1)
	ctx, leave := context.WithCancel(t.Context())
	go func() {
		rec := httptest.NewRecorder()
		g.Handler().ServeHTTP(rec, request("GET", "/v1/videos/video_1?wait=60", "").WithContext(ctx))
		answers <- rec
	}()
	testwait.Eventually(t, "it waits", patience, func() bool { return g.tasks.watchers() == 1 })
	leave()
	<-answers
	if n := g.tasks.watchers(); n != 0 {
		t.Errorf("got %d watchers of a client that left", n)
	}
	go func() { answers <- g.do(t, request("GET", "/v1/videos/video_1?wait=60", "")) }()
	testwait.Eventually(t, "it waits", patience, func() bool { return g.tasks.watchers() == 1 })
	if err := g.tasks.Delete(t.Context(), "video_1", "good"); err != nil {
		t.Fatal(err)
	}
	if rec := <-answers; rec.Code != 404 {
		t.Errorf("deleted meanwhile: got %d %s", rec.Code, rec.Body)
	}
}
