package console

import (
	"context"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/api/logs"
	"modelrelay/api/operator"
	"modelrelay/api/setup"
	"modelrelay/providers"
	"modelrelay/providers/channeltest"
	"modelrelay/providers/health"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/calllog"
	"modelrelay/storage/tokens"
)

// TestChannelAndAuditPages: the content of the pages, the API call and the role of each form. No page contains a typed key.
func TestChannelAndAuditPages(t *testing.T) {
	t.Parallel()
	const canary = "sk-canary-typed-by-hand"
	h := newHouse(t, nil)
	main := channelOf("main", "gpt-4o")
	main.MaxJobs = 4
	h.router.Load([]providers.Channel{main}, nil)
	h.router.Health.Pause("main", &health.Pause{Until: time.Now().Add(time.Hour), By: "anna", Reason: "billing"})
	key := main.Keys[0].Fingerprint()
	h.coolDown("main", key, 41*time.Second)
	h.slots = map[string]health.Slots{"main": {Max: 4, Taken: 1, Line: 2}}
	h.tested = channeltest.Result{
		Operation: "the list of models", Key: key, Status: 401, Code: "test.key_refused",
		Values: map[string]string{"detail": " (status 401: Incorrect API key provided: ***)"}, Took: 13,
	}
	value := func(text string) json.RawMessage { return json.RawMessage(text) }
	h.entries = []audit.Entry{
		{By: audit.Operator, Who: "anna", What: "update_token", Subject: "tok_1", From: "10.0.0.1", Outcome: audit.Done, Changes: []audit.Change{
			{Field: "max_tasks", Old: value("0"), New: value("3")},
			{Field: "reason", Old: value(`""`), New: value(`"a \u003e b"`)},
			{Field: "state", Old: value("null"), New: value("1")},
			{Field: "models.m", New: value(`""`)},
		}},
		{By: audit.CLI, Who: "cli", What: "revoke_token", Subject: "tok_2", Outcome: audit.Refused, Reason: "no such token"},
	}
	h.nextEntry = "17-0"
	anna, vera := h.as(t, "anna"), h.as(t, "vera")
	for path, want := range map[string][]string{
		"/console/channels":      {"main", "anna billing", "1 of 4", "2 in line", "gpt-4o", "Too many requests 429 billing_hard_limit"},
		"/console/channels/main": {key, "s left", "Too many requests 429 billing_hard_limit", `name="minutes"`, `value="wake"`, "<dialog"},
		"/console/audit": {
			"update_token", "max_tasks: 0 → 3",
			"reason: – → &#34;a &gt; b&#34;\nstate: – → 1\nmodels.m: – → &#34;&#34;", "no such token", "after=17-0", "?who=anna",
		},
		"/console/audit?format=csv": {"When,Who,What", "max_tasks: 0 → 3; reason: "},
	} {
		rec := anna.get(path)
		for _, text := range want {
			if !strings.Contains(rec.Body.String(), text) {
				t.Errorf("%s: %d lacks %q", path, rec.Code, text)
			}
		}
	}
	if body := vera.get("/console/channels/main").Body.String(); strings.Contains(body, `value="pause"`) ||
		strings.Contains(body, `value="test"`) {
		t.Error("a viewer is offered to change a channel")
	}
	if rec := anna.get("/console/channels/none"); rec.Code != 404 {
		t.Errorf("no channel: %d", rec.Code)
	}
	for form, want := range map[string]string{
		"do=pause&minutes=30&reason=billing": "pause main 30m0s anna billing", "do=resume": "resume main", "do=wake": "wake main",
	} {
		h.did = nil
		values, _ := url.ParseQuery(form)
		if rec := anna.post("/console/channels/main", values); rec.Code != http.StatusSeeOther || !slices.Equal(h.did, []string{want}) {
			t.Errorf("%s: %d did %v", form, rec.Code, h.did)
		}
		if rec := vera.post("/console/channels/main", values); rec.Code < 400 || len(h.did) != 1 {
			t.Errorf("%s by a viewer: %d", form, rec.Code)
		}
	}
	rec := anna.post("/console/channels/main", url.Values{"do": {"pause"}, "reason": {"long"}})
	if wantAll(t, "no minutes", rec.Body.String(), "minutes", `value="long"`); rec.Code != http.StatusBadRequest {
		t.Errorf("a pause without its length: %d", rec.Code)
	}
	h.did = nil
	rec = anna.post("/console/channels/main", url.Values{"do": {"test"}, "key": {canary}})
	if body := rec.Body.String(); !slices.Equal(h.did, []string{"test main " + canary}) ||
		!strings.Contains(body, "the key is refused (status 401: Incorrect API key provided: ***)") || strings.Contains(body, canary) {
		t.Errorf("test: %d did %v, answered %s", rec.Code, h.did, body)
	}
	h.err = storage.ErrUnavailable
	if rec := anna.get("/console/channels/main"); rec.Code != http.StatusServiceUnavailable {
		t.Errorf("with the store away: %d", rec.Code)
	}
}

// TestTokenFormGroups: the form offers the configured groups with what each permits and forbids, and what is in force if that is not the
// token's own. A group that the file no longer has stays the token's.
func TestTokenFormGroups(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.groups = map[string]operator.GroupRules{
		"default": {
			GroupLimits: tokens.GroupLimits{
				Defaults: tokens.Defaults{Limits: tokens.Limits{RequestsPerMinute: 60}, Budget: 5},
				Ceilings: tokens.Ceilings{Limits: tokens.Limits{MaxTasks: 3}},
			},
			Channels: []string{"main", "b"}, Forbid: []string{"hosted_tools"},
		},
		"empty": {},
	}
	h.tokens = []tokens.Token{
		{ID: "tok_1", Name: "studio", Group: "default", Limits: tokens.Limits{MaxTasks: 9}},
		{ID: "tok_2", Name: "old", Group: "gone"},
	}
	anna := h.as(t, "anna")
	rec := anna.get("/console/tokens/new")
	checkPage(t, "a new token", rec)
	wantAll(t, "a new token", rec.Body.String(), `<option value="default" selected>default</option><option value="empty">`,
		"Channels: main, b", "Where the token has no limit: Calls a minute 60 · Budget 5.00 USD",
		"At most: Unfinished videos 3", "Not allowed: hosted_tools", "No channel serves this group.")
	if strings.Contains(rec.Body.String(), "In force") {
		t.Error("a new token has limits in force")
	}
	wantAll(t, "a token", anna.get("/console/tokens/tok_1").Body.String(), "<b>In force: 60</b>", "<b>In force: 3</b>",
		"<b>In force: 5.00 USD</b>")
	wantAll(t, "a group of the past", anna.get("/console/tokens/tok_2").Body.String(), `<option value="gone" selected>gone</option>`,
		"does not name this group")
}

// TestRefreshesReadLess: what only the rest of a page needs is not read for its live regions.
func TestRefreshesReadLess(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	anna := h.as(t, "anna")
	for path, want := range map[string]string{
		"/console/channels": "states", "/console/tasks": "tasks", "/console/setup": "faults states tokens last used",
	} {
		h.used = nil
		r := httptest.NewRequest(http.MethodGet, "http://localhost:8080"+path, http.NoBody)
		r.Header.Set(refreshHeader, "1")
		rec := anna.do(r)
		checkPage(t, path, rec)
		if got := strings.Join(h.used, " "); got != want || rec.Code != http.StatusOK {
			t.Errorf("a refresh of %s: %d, read %s, want %s", path, rec.Code, got, want)
		}
	}
}

// TestReadsOfOthersAreFree: what an operator or a viewer reads of a token's own counts nothing against the token, and only the holder's
// reads do.
func TestReadsOfOthersAreFree(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "{}") })
	h.calls.Calls, h.reads = []calllog.Call{aCall()}, 2*logs.ScanReads
	h.tokens = []tokens.Token{{ID: "tok_app", Name: "app"}}
	for range 3 {
		for _, test := range []struct{ key, path string }{
			{"anna", "/console/calls/req_1"},
			{"vera", "/console/calls/req_1"},
			{"anna", "/console/tokens/tok_app"},
			{"anna", "/console/try?as=tok_app"},
		} {
			if rec := h.as(t, test.key).get(test.path); rec.Code != http.StatusOK {
				t.Errorf("%s for %s: %d", test.path, test.key, rec.Code)
			}
		}
	}
	app := h.as(t, "app")
	reads := 0
	for reads < 5 && app.get("/console/calls/req_1").Code == http.StatusOK {
		reads++
	}
	if reads < 2 || reads == 5 { // a new minute permits two more
		t.Errorf("%d reads of the holder are permitted, want two a minute", reads)
	}
	h.asked = nil
	h.as(t, "anna").get("/console/as/tok_app/v1/videos/video_1")
	if len(h.asked) != 1 || h.asked[0].user.Owner != "tok_app" || !h.asked[0].looks {
		t.Errorf("the API was asked as %+v", h.asked)
	}
}

// TestFindingsInChinese: what the set-up finds is formatted in the reader's language by its code.
func TestFindingsInChinese(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	h.server.o.Operator.Checks = []setup.Check{{Name: "redis", Run: func(context.Context) ([]setup.Finding, error) {
		return []setup.Finding{
			{Status: setup.OK, Code: "redis.ok", Values: map[string]string{"n": "3"}},
			{
				Status: setup.Warning, Code: "config.certificate", Values: map[string]string{"key": "tls.cert", "date": "2026-12-01"},
				Fix: "gateway config check",
			},
			{Status: setup.Warning, Code: "config.admin_listen", Values: map[string]string{"key": "admin.listen"}, Fix: "gateway config check"},
			{Status: setup.Unknown, Code: "unchecked", Values: map[string]string{"error": "dial tcp: connection refused", "reason": "refused"}},
		}, nil
	}}}
	anna := h.as(t, "anna")
	in := func(language string) string {
		r := httptest.NewRequest(http.MethodGet, "http://localhost:8080/console/setup", http.NoBody)
		r.Header.Set("Accept-Language", language)
		rec := anna.do(r)
		checkPage(t, language, rec)
		return rec.Body.String()
	}
	wantAll(t, "English", in("en"), "It answers and accepts writes. Tokens: 3.", "tls.cert: ends on 2026-12-01")
	chinese := in("zh-CN")
	wantAll(t, "Chinese", chinese, "令牌：3 个", "该地址没有服务在监听：dial tcp: connection refused", "tls.cert：将于 2026-12-01 到期", "gateway config check")
	if n := strings.Count(chinese, "gateway config check"); n != 1 {
		t.Errorf("what mends two findings is said %d times", n)
	}
	if strings.Contains(chinese, "It answers") || strings.Contains(chinese, "ends on") {
		t.Error("a finding is in English on a Chinese page")
	}
}
