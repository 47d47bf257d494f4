package console

import (
	"io"
	"net/http"
	"net/url"
	"strings"
	"testing"
)

// TestChannelAndAuditPages: what stands in them, what their forms ask of the API, who may, and that a typed key is in no page.
func TestChannelAndAuditPages(t *testing.T) {
	t.Parallel()
	const canary = "sk-canary-typed-by-hand"
	sent := make(chan string, 8)
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if r.Method == http.MethodPost {
			sent <- r.URL.Path + " " + string(body)
		}
		switch {
		case strings.HasPrefix(r.URL.Path, "/admin/audit"):
			_, _ = io.WriteString(w, `{"data":[{"time":"2026-11-22T13:00:00Z","by":"operator","who":"anna","what":"update_token","subject":"tok_1","from":"10.0.0.1","outcome":"done",
				"changes":[{"field":"max_tasks","old":0,"new":3}]},{"time":"2026-11-22T12:00:00Z","by":"cli","who":"cli","what":"revoke_token","subject":"tok_2","outcome":"refused","reason":"no such token"}],"after":"17-0"}`)
		case strings.HasSuffix(r.URL.Path, "/test"):
			_, _ = io.WriteString(w, `{"ok":false,"operation":"openai.chat","model":"gpt-4o","key":"0123456789ab","status":401,"said":"Incorrect API key provided: ***","first_byte_ms":12,"ms":13}`)
		default:
			_, _ = io.WriteString(w, `{"data":[{"name":"main","vendor":"openai","state":"paused","groups":["default"],"served":["gpt-4o"],"calls_per_minute":7,
				"pause":{"until":"2026-11-22T20:00:00Z","by":"anna","reason":"billing"},"slots":{"max":4,"taken":1,"line":2},
				"keys":[{"fingerprint":"0123456789ab","state":"open","rest_left":41,"last_fault":{"at":"2026-11-22T13:00:00Z","kind":"rate_limited","status":429,"code":"billing_hard_limit"}}]}]}`)
		}
	})
	anna, vera := h.as(t, "anna"), h.as(t, "vera")
	for path, want := range map[string][]string{
		"/console/channels":         {"main", "anna billing", "1 of 4", "2 in line", "gpt-4o"},
		"/console/channels/main":    {"0123456789ab", "41s left", "rate_limited 429 billing_hard_limit", `name="minutes"`, "<dialog"},
		"/console/audit":            {"update_token", "max_tasks: 0 → 3", "no such token", "after=17-0", "?who=anna"},
		"/console/audit?format=csv": {"When,Who,What", "max_tasks: 0 → 3"},
	} {
		rec := anna.get(path)
		for _, text := range want {
			if !strings.Contains(rec.Body.String(), text) {
				t.Errorf("%s: %d lacks %q", path, rec.Code, text)
			}
		}
	}
	if body := vera.get("/console/channels/main").Body.String(); strings.Contains(body, `value="pause"`) || strings.Contains(body, `value="test"`) {
		t.Error("a viewer is offered to change a channel")
	}
	if rec := anna.get("/console/channels/none"); rec.Code != 404 {
		t.Errorf("no channel: %d", rec.Code)
	}
	for form, want := range map[string]string{
		"do=pause&minutes=30&reason=billing": `/admin/channels/main/pause {"minutes":30,"reason":"billing"}`,
		"do=resume":                          "/admin/channels/main/resume",
		"do=wake":                            "/admin/channels/main/wake",
	} {
		values, _ := url.ParseQuery(form)
		rec := anna.post("/console/channels/main", values)
		if got := <-sent; rec.Code != http.StatusSeeOther || !strings.HasPrefix(strings.TrimSpace(got), want) {
			t.Errorf("%s: %d asked for %s", form, rec.Code, got)
		}
		if rec := vera.post("/console/channels/main", values); rec.Code < 400 {
			t.Errorf("%s by a viewer: %d", form, rec.Code)
		}
	}
	rec := anna.post("/console/channels/main", url.Values{"do": {"test"}, "key": {canary}, "prompt": {"Hello"}})
	if got := <-sent; !strings.Contains(got, canary) || !strings.Contains(rec.Body.String(), "Incorrect API key provided: ***") || strings.Contains(rec.Body.String(), canary) {
		t.Errorf("test: %d asked for %s, answered %s", rec.Code, got, rec.Body)
	}
}
