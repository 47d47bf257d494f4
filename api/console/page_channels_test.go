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
				"changes":[{"field":"max_tasks","old":0,"new":3},{"field":"reason","new":"a \u003e b"}]},{"time":"2026-11-22T12:00:00Z","by":"cli","who":"cli","what":"revoke_token","subject":"tok_2","outcome":"refused","reason":"no such token"}],"after":"17-0"}`)
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
		"/console/audit":            {"update_token", "max_tasks: 0 → 3", "reason: – → &#34;a &gt; b&#34;", "no such token", "after=17-0", "?who=anna"},
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

// TestChannelDraftPage: what is typed becomes a draft's request, the answer shows what the file takes and what came of the key, and the key
// itself is in no page; what is refused stands at its field with all that was typed.
func TestChannelDraftPage(t *testing.T) {
	t.Parallel()
	const canary = "sk-canary-typed-by-hand"
	sent := make(chan string, 8)
	refused := false
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/admin/channels/draft":
			body, _ := io.ReadAll(r.Body)
			sent <- string(body)
			if refused {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":{"message":"Invalid request: 'base_url' wants http://host or https://host.","param":"base_url","code":"invalid_request"}}`)
				return
			}
			_, _ = io.WriteString(w, `{"yaml":"channels:\n  - name: second\n","variable":"SECOND_API_KEY","warnings":["SECOND_API_KEY is not set"],"tested":{"ok":false,"verdict":"the key is refused","key":"0123456789ab"}}`)
		case "/admin/vendors":
			_, _ = io.WriteString(w, `{"data":[{"name":"anthropic","base_url":"","operations":["relay"]},{"name":"openai","base_url":"","operations":["relay"]}]}`)
		case "/admin/groups":
			_, _ = io.WriteString(w, `{"data":[{"name":"gold"}]}`)
		default:
			_, _ = io.WriteString(w, `{"data":[]}`)
		}
	})
	anna := h.as(t, "anna")
	wantAll(t, "the form", anna.get("/console/channels").Body.String(), `<option>anthropic</option>`, `<option selected>openai</option>`, `<option value="gold">`, `name="variable"`)
	if body := h.as(t, "vera").get("/console/channels").Body.String(); strings.Contains(body, `value="draft"`) {
		t.Error("a viewer is offered to draft a channel")
	}
	form := url.Values{
		"do": {"draft"}, "name": {"second"}, "vendor": {"anthropic"}, "base_url": {"https://api.example"}, "models": {"gpt-4o, fast = gpt-4o-mini"}, "groups": {"gold default"},
		"weight": {"3"}, "priority": {""}, "variable": {"K"}, "key": {canary},
	}
	rec := anna.post("/console/channels", form)
	const want = `{"base_url":"https://api.example","groups":["gold","default"],"key":"` + canary + `","max_calls":0,"max_jobs":0,"models":{"fast":"gpt-4o-mini","gpt-4o":""},"name":"second","priority":0,"variable":"K","vendor":"anthropic","weight":3}`
	if got := <-sent; strings.TrimSpace(got) != want {
		t.Errorf("asked for %s, want %s", got, want)
	}
	checkPage(t, "the draft", rec)
	wantAll(t, "the draft", rec.Body.String(), "channels:\n  - name: second\n", "SECOND_API_KEY is not set", "the key is refused", `data-copy-of="draft-yaml"`, `value="gpt-4o, fast = gpt-4o-mini"`, `<option selected>anthropic</option>`)
	if strings.Contains(rec.Body.String(), canary) {
		t.Error("the page of the draft has the key")
	}
	refused = true
	rec = anna.post("/console/channels", form)
	<-sent
	checkPage(t, "the refusal", rec)
	wantAll(t, "the refusal", rec.Body.String(), `href="#f-base_url"`, `value="https://api.example" aria-invalid="true"`, "wants http://host", `value="3"`)
	if rec.Code != http.StatusBadRequest || strings.Contains(rec.Body.String(), canary) {
		t.Errorf("the refusal: %d", rec.Code)
	}
	form.Set("weight", "much")
	rec = anna.post("/console/channels", form)
	wantAll(t, "a number that is none", rec.Body.String(), "This wants a whole number.", `href="#f-weight"`)
}

// TestTokenFormGroups: the form offers the configured groups, says what each gives and takes, and what is in force where that is not the
// token's own; a group that the file has no more stays the token's.
func TestTokenFormGroups(t *testing.T) {
	t.Parallel()
	away := false
	h := newHouse(t, func(w http.ResponseWriter, r *http.Request) {
		switch {
		case r.URL.Path == "/admin/groups" && away:
			refuse(w, http.StatusServiceUnavailable, "not now")
		case r.URL.Path == "/admin/groups":
			_, _ = io.WriteString(w, `{"data":[{"name":"default","channels":["main","b"],"defaults":{"requests_per_minute":60,"budget":5},"ceilings":{"max_tasks":3,"budget":0},"forbid":["hosted_tools"]},{"name":"empty","channels":[]}]}`)
		case strings.HasPrefix(r.URL.Path, "/admin/tokens/"):
			_, _ = io.WriteString(w, `{"id":"tok_1","name":"studio","state":"active","group":"gone","lane":"normal","weight":1,"requests_per_minute":0,"max_tasks":9,"budget":0,"in_force":{"requests_per_minute":60,"max_tasks":3,"budget":5}}`)
		default:
			_, _ = io.WriteString(w, `{"data":[]}`)
		}
	})
	anna := h.as(t, "anna")
	rec := anna.get("/console/tokens/new")
	checkPage(t, "a new token", rec)
	wantAll(t, "a new token", rec.Body.String(), `<option value="default" selected>default</option><option value="empty">`, "Channels: main, b", "Where the token has no limit: Calls a minute 60 · Budget 5.00 USD",
		"At most: Unfinished videos 3", "Not allowed: hosted_tools", "No channel serves this group.")
	if strings.Contains(rec.Body.String(), "In force") {
		t.Error("a new token has limits in force")
	}
	wantAll(t, "a token", anna.get("/console/tokens/tok_1").Body.String(), `<option value="gone" selected>gone</option>`, "does not name this group", "<b>In force: 60</b>", "<b>In force: 3</b>", "<b>In force: 5.00 USD</b>")
	away = true
	wantAll(t, "groups away", anna.get("/console/tokens/new").Body.String(), `<input id="f-group" name="group"`)
}
