package upstream_test

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"testing"
	"time"

	"modelrelay/dev/upstream"
)

const chatBody = `{"model":"gpt-4o","messages":[{"role":"user","content":"one two three"}]}`

// rule adds a rule and returns its id.
func (f *fake) rule(t *testing.T, body string) string {
	t.Helper()
	id, _ := f.control(t, "POST", "rules", body)["id"].(string)
	return id
}

func TestRulesOnAnswers(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rule   string
		status int
		body   string // part of it
		header [2]string
		cut    bool // the answer ends before its end
		drop   bool // there is no answer
	}{
		"status": {
			rule: `"action":"status","status":503,"headers":{"Retry-After":"7"}`, status: 503, body: `"server_error"`,
			header: [2]string{"Retry-After", "7"},
		},
		"quota": {rule: `"action":"status","status":429,"code":"insufficient_quota"`, status: 429, body: `"type":"insufficient_quota"`},
		"body": {
			rule: `"action":"status","status":418,"body":"tea","headers":{"Content-Type":"text/plain"}`, status: 418, body: "tea",
			header: [2]string{"Content-Type", "text/plain"},
		},
		"garbage":         {rule: `"action":"garbage"`, status: 200, body: `{"id": "half`},
		"drop":            {rule: `"action":"drop"`, drop: true},
		"delay":           {rule: `"action":"delay","ms":20`, status: 200, body: "one two three"},
		"late":            {rule: `"action":"delay","ms":20,"accept":true`, status: 200, body: "one two three"},
		"cut after bytes": {rule: `"action":"cut","bytes":30`, status: 200, body: `{"id":"chatcmpl-`, cut: true},
		"cut at once":     {rule: `"action":"cut"`, status: 200, cut: true},
		"slow":            {rule: `"action":"slow","bytes_per_second":20000`, status: 200, body: "one two three"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, upstream.Options{})
			f.rule(t, `{"vendor":"openai","operation":"chat","times":1,`+tc.rule+`}`)
			a, err := f.try(t.Context(), "POST", "/openai/v1/chat/completions", chatBody)
			if (err != nil) != tc.drop {
				t.Fatalf("got %v", err)
			}
			if (a.err != nil) != tc.cut {
				t.Errorf("end of the answer: got %v", a.err)
			}
			if a.status != tc.status || !strings.Contains(string(a.body), tc.body) {
				t.Errorf("got %d %s, want %d %s", a.status, a.body, tc.status, tc.body)
			}
			if got := a.header.Get(tc.header[0]); tc.header[0] != "" && got != tc.header[1] {
				t.Errorf("header %s: got %q", tc.header[0], got)
			}
			if a := f.do(t, "POST", "/openai/v1/chat/completions", chatBody); a.status != 200 {
				t.Errorf("after its times the rule acts still: %d", a.status)
			}
		})
	}
}

func TestRulesOnStreams(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	body := strings.Replace(chatBody, "{", `{"stream":true,`, 1)
	f.rule(t, `{"operation":"chat","action":"cut","chunks":3,"times":1}`)
	a := f.do(t, "POST", "/openai/v1/chat/completions", body)
	if got := strings.Count(string(a.body), "data: "); a.err == nil || got != 3 {
		t.Errorf("cut: got %d events, error %v", got, a.err)
	}

	f.rule(t, `{"operation":"chat","action":"stall","chunks":2,"times":1}`)
	ended := make(chan answer, 1)
	go func() {
		a, _ := f.try(t.Context(), "POST", "/openai/v1/chat/completions", body)
		ended <- a
	}()
	f.control(t, "GET", "wait?operation=chat&phase=accepted&count=2", "")
	select {
	case a := <-ended:
		t.Fatalf("a stalled stream ended: %s", a.body)
	default:
	}
	f.control(t, "POST", "release", "")
	if a := <-ended; a.err != nil || !strings.HasSuffix(string(a.body), "data: [DONE]\n\n") {
		t.Errorf("released stream: %v %s", a.err, a.body)
	}
}

// TestMovedStall: a stall that is moved lets its stream go on to the new place, and holds it there.
func TestMovedStall(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	rule := f.rule(t, `{"operation":"chat","action":"stall","chunks":2}`)
	ended := make(chan answer, 1)
	go func() {
		a, _ := f.try(t.Context(), "POST", "/openai/v1/chat/completions", strings.Replace(chatBody, "{", `{"stream":true,`, 1))
		ended <- a
	}()
	sent := func() float64 {
		n, _ := at(f.control(t, "GET", "stats?model=gpt-4o", ""), "total", "sent").(float64)
		return n
	}
	eventually(t, func() bool { return sent() > 0 })
	begun := sent()
	f.control(t, "POST", "rules/"+rule, `{"chunks":3}`)
	eventually(t, func() bool { return sent() > begun })
	select {
	case a := <-ended:
		t.Fatalf("the moved stall ended: %s", a.body)
	default:
	}
	f.control(t, "POST", "release", "")
	if a := <-ended; a.err != nil || !strings.HasSuffix(string(a.body), "data: [DONE]\n\n") {
		t.Errorf("released stream: %v %s", a.err, a.body)
	}
}

func TestRuleSelection(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	chat := func(key, model string) int {
		return f.do(t, "POST", "/openai/v1/chat/completions",
			fmt.Sprintf(`{"model":%q,"messages":[{"role":"user","content":"needle"}]}`, model), "Authorization", "Bearer "+key).status
	}
	f.rule(t, `{"key":"sk-upstream-a","action":"status","status":401}`)
	f.rule(t, `{"model":"special","action":"status","status":402}`)
	f.rule(t, `{"operation":"models","action":"status","status":403}`)
	f.rule(t, `{"vendor":"gemini","action":"status","status":404}`)
	last := f.rule(t, `{"contains":"needle","model":"third","after":1,"times":1,"action":"status","status":405}`)
	for i, tc := range []struct {
		key, model string
		want       int
	}{
		{"sk-upstream-a", "gpt-4o", 401},
		{"sk-upstream-a", "special", 401},
		{"sk-upstream-b", "special", 402},
		{"sk-upstream-b", "gpt-4o", 200},
		{"sk-upstream-b", "third", 200},
		{"sk-upstream-b", "third", 405},
		{"sk-upstream-b", "third", 200},
	} {
		if got := chat(tc.key, tc.model); got != tc.want {
			t.Errorf("call %d: got %d, want %d", i, got, tc.want)
		}
	}
	f.control(t, "DELETE", "rules/"+last, "")
	if got := len(listAt(t, f.control(t, "GET", "rules", ""), "rules")); got != 4 {
		t.Errorf("rules: got %d, want 4", got)
	}
	f.control(t, "DELETE", "rules", "")
	if got := chat("sk-upstream-a", "special"); got != 200 {
		t.Errorf("without rules: got %d", got)
	}
	for _, bad := range []string{
		`{}`, `{"action":"explode"}`, `{"action":"status"}`, `{"action":"delay"}`, `{"action":"slow"}`, `{"action":"size"}`,
		`{"action":"job_unknown_word"}`, `{"action":"drop","typo":1}`, `{"action":"progress","state":"odd"}`, `{"action":"cut","chunks":-1}`,
	} {
		if a := f.do(t, "POST", "/_control/rules", bad); a.status != http.StatusBadRequest {
			t.Errorf("rule %s: got %d, want 400", bad, a.status)
		}
	}
}

func TestHangingSubmit(t *testing.T) {
	t.Parallel()
	const body = `{"model":"sora-2-manual","prompt":"x"}`
	for name, tc := range map[string]struct {
		accept bool
		leave  bool // the client goes away instead of being released
		jobs   int
	}{
		"refused, released":  {jobs: 1},
		"refused, left":      {leave: true, jobs: 0},
		"accepted, released": {accept: true, jobs: 1},
		"accepted, left":     {accept: true, leave: true, jobs: 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, upstream.Options{})
			id := f.rule(t, fmt.Sprintf(`{"operation":"video.create","action":"hang","accept":%t}`, tc.accept))
			ctx, leave := context.WithCancel(t.Context())
			defer leave()
			ended := make(chan answer, 1)
			go func() {
				a, _ := f.try(ctx, "POST", "/openai/v1/videos", body)
				ended <- a
			}()
			phase := "arrived"
			if tc.accept {
				phase = "accepted"
			}
			wants(t, f.control(t, "GET", "wait?vendor=openai&operation=video.create&phase="+phase, ""), map[string]any{"reached": true, "count": 1})
			wants(t, f.control(t, "GET", "stats", ""), map[string]any{"total.open": 1, "total.canceled": 0})
			if tc.leave {
				leave()
				<-ended
				f.control(t, "GET", "wait?operation=video.create&phase=canceled", "")
			} else {
				f.control(t, "POST", "release?rule="+id, "")
				if a := <-ended; a.status != 200 {
					t.Errorf("released call: got %d %s", a.status, a.body)
				}
				f.control(t, "GET", "wait?operation=video.create&phase=ended", "")
			}
			wants(t, f.control(t, "GET", "stats", ""), map[string]any{"total.open": 0, "videos.created": tc.jobs})
		})
	}
}

func TestUnknownOutcomes(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		rule string
		jobs int
	}{
		"dropped":               {`"action":"drop"`, 1},
		"dropped before":        {`"action":"drop","accept":false`, 0},
		"garbage":               {`"action":"garbage"`, 1},
		"refused":               {`"action":"status","status":500`, 0},
		"refused, yet it works": {`"action":"status","status":500,"accept":true`, 1},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			f := start(t, upstream.Options{})
			f.rule(t, `{"operation":"video.create",`+tc.rule+`}`)
			if a, err := f.try(t.Context(), "POST", "/openai/v1/videos", `{"model":"sora-2-manual","prompt":"x"}`); err == nil &&
				strings.Contains(string(a.body), "video_") {
				t.Errorf("the client learned of the job: %s", a.body)
			}
			wants(t, f.control(t, "GET", "stats", ""), map[string]any{"videos.created": tc.jobs, "videos.submissions": tc.jobs})
		})
	}
}

func TestRulesOnJobs(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const body = `{"model":"sora-2","prompt":"x"}`
	get := func(id string) map[string]any { return f.do(t, "GET", "/openai/v1/videos/"+id, "").json(t) }

	f.rule(t, `{"operation":"video.create","action":"manual","times":1}`)
	f.rule(t, `{"operation":"video.create","action":"job_fail","code":"moderation_blocked","message":"no","times":1}`)
	id := f.createVideo(t, body)
	wants(t, f.control(t, "GET", "jobs/"+id, ""), map[string]any{"manual": true, "failure.code": "moderation_blocked"})
	f.control(t, "POST", "jobs/"+id, `{"state":"failed","progress":7}`)
	wants(t, get(id), map[string]any{"status": "failed", "error.code": "moderation_blocked", "error.message": "no", "progress": 7})

	id = f.createVideo(t, body)
	f.rule(t, `{"job":"`+id+`","operation":"video.get","action":"job_unknown_word","word":"painting","times":1}`)
	wants(t, get(id), map[string]any{"status": "painting"})
	f.rule(t, `{"operation":"video.get","action":"progress","progress":60,"times":1}`)
	wants(t, get(id), map[string]any{"progress": 60})
	f.control(t, "POST", "jobs/"+id, `{"word":""}`)
	wants(t, get(id), map[string]any{"progress": 60, "status": "in_progress"})
	f.rule(t, `{"operation":"video.get","action":"job_fail","code":"c","message":"m","times":1}`)
	wants(t, get(id), map[string]any{"status": "failed", "error.code": "c"})
	f.rule(t, `{"operation":"video.get","action":"job_forget","times":1}`)
	if a := f.do(t, "GET", "/openai/v1/videos/"+id, ""); a.status != 404 {
		t.Errorf("forgotten job: got %d", a.status)
	}

	f.rule(t, `{"operation":"video.create","action":"size","bytes":500000,"times":1}`)
	f.rule(t, `{"operation":"video.create","action":"progress","state":"completed","times":1}`)
	id = f.createVideo(t, body)
	content := "/openai/v1/videos/" + id + "/content"
	if a := f.do(t, "GET", content, ""); len(a.body) != 500000 {
		t.Errorf("content: got %d %d bytes", a.status, len(a.body))
	}
	f.rule(t, `{"operation":"video.content","action":"cut","bytes":100000,"times":1}`)
	if a := f.do(t, "GET", content, ""); a.err == nil || len(a.body) != 100000 {
		t.Errorf("cut content: got %d bytes, error %v", len(a.body), a.err)
	}
	f.rule(t, `{"operation":"video.content","action":"link","ms":1}`)
	eventually(t, func() bool { return f.do(t, "GET", content, "").status == 404 })
}

// TestServed: chats that were written to their end count with their tokens, and no others do.
func TestServed(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	whole := chatBody // 15 bytes of content make 4 tokens, "You said: one two three" 5
	stream := strings.Replace(chatBody, "{", `{"stream":true,`, 1)
	for _, rule := range []string{
		`"contains":"status","action":"status","status":500,"accept":true`, `"contains":"drop","action":"drop"`,
		`"contains":"garbage","action":"garbage"`, `"contains":"cut","action":"cut","chunks":3`,
		`"contains":"late","action":"delay","ms":1,"accept":true`,
	} {
		f.rule(t, "{"+rule+"}")
	}
	for _, body := range []string{
		whole, stream, strings.Replace(whole, "three", "late", 1), // these three are served
		strings.Replace(whole, "three", "status", 1), strings.Replace(whole, "three", "drop", 1),
		strings.Replace(whole, "three", "garbage", 1), strings.Replace(stream, "three", "cut", 1),
	} {
		_, _ = f.try(t.Context(), "POST", "/openai/v1/chat/completions", body) // some break
	}
	f.control(t, "GET", "wait?operation=chat&phase=ended&count=7", "")
	wants(t, f.control(t, "GET", "stats", ""), map[string]any{
		"total.calls": 7, "total.served": 3, "total.input_tokens": 12, "total.output_tokens": 15,
	})
}

// TestSent: the bytes of a stream count while it is in progress, so that a test knows how much an upstream has sent.
func TestSent(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	f.rule(t, `{"operation":"chat","action":"stall","chunks":2,"times":1}`)
	streamed := strings.Replace(chatBody, "{", `{"stream":true,`, 1)
	stalled := make(chan answer, 1)
	go func() {
		a, _ := f.try(t.Context(), "POST", "/openai/v1/chat/completions", streamed)
		stalled <- a
	}()
	sent := func() float64 {
		n, _ := at(f.control(t, "GET", "stats?model=gpt-4o", ""), "total", "sent").(float64)
		return n
	}
	eventually(t, func() bool { return sent() > 0 })
	begun := sent()
	f.control(t, "POST", "release", "")
	whole := len((<-stalled).body)
	if ended := sent(); begun >= ended || ended != float64(whole) {
		t.Errorf("got %v bytes sent of the begun stream and %v of the whole, want all %d of the answer", begun, ended, whole)
	}
}

func TestCanceledStream(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{ChunkInterval: time.Hour})
	ctx, leave := context.WithCancel(t.Context())
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		_, _ = f.try(ctx, "POST", "/openai/v1/chat/completions", strings.Replace(chatBody, "{", `{"stream":true,`, 1))
	}()
	f.control(t, "GET", "wait?operation=chat&phase=accepted", "")
	leave()
	<-ended
	wants(t, f.control(t, "GET", "wait?operation=chat&phase=canceled", ""), map[string]any{"reached": true})
	wants(t, at(f.control(t, "GET", "stats", ""), "vendors", "openai", "chat"),
		map[string]any{"calls": 1, "accepted": 1, "answered": 0, "canceled": 1, "open": 0})
}

func TestWaitIsBounded(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	wants(t, f.control(t, "GET", "wait?operation=chat&timeout=1ms", ""), map[string]any{"reached": false, "count": 0})
	for _, bad := range []string{"wait?phase=born", "wait?count=x", "wait?timeout=x", "requests?last=x"} {
		if a := f.do(t, "GET", "/_control/"+bad, ""); a.status != http.StatusBadRequest {
			t.Errorf("%s: got %d, want 400", bad, a.status)
		}
	}
	for method, path := range map[string]string{"GET": "jobs/none", "POST": "release?rule=none", "DELETE": "rules/none"} {
		if a := f.do(t, method, "/_control/"+path, ""); a.status != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", path, a.status)
		}
	}
}

func TestRecordedRequests(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	for i := range 200 {
		f.do(t, "POST", "/openai/v1/chat/completions", strings.Replace(chatBody, "one", fmt.Sprint("number ", i), 1), "X-Mark", fmt.Sprint(i))
	}
	list := listAt(t, f.control(t, "GET", "requests?operation=chat", ""), "requests")
	if len(list) != 128 {
		t.Errorf("kept: got %d, want 128", len(list))
	}
	list = listAt(t, f.control(t, "GET", "requests?operation=chat&last=2", ""), "requests")
	sent := strings.Replace(chatBody, "one", "number 199", 1)
	wants(t, list, map[string]any{
		"0.header.X-Mark.0": "198", "1.header.X-Mark.0": "199", "1.sha256": digest([]byte(sent)), "1.size": len(sent), "1.key": testKey,
		"1.header.Authorization.0": "Bearer " + testKey, "1.target": "/openai/v1/chat/completions", "1.model": "gpt-4o",
	})
	f.control(t, "POST", "reset", "")
	if got := len(listAt(t, f.control(t, "GET", "requests", ""), "requests")); got != 0 {
		t.Errorf("after reset: got %d", got)
	}
	stats := f.control(t, "GET", "stats", "")
	wants(t, stats, map[string]any{"total.calls": 0})
	if n, _ := at(stats, "connections", "accepted").(float64); n < 1 {
		t.Errorf("connections: got %v", n)
	}
}
