package console

import (
	"net/http"
	"net/http/httptest"
	"net/url"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/storage/calllog"
	"modelrelay/storage/ledger"
	"modelrelay/storage/tokens"
	"modelrelay/workflows/tasks"
)

// routeRow is the status that a route, or one form of it, returns to each role; anonymous is a browser without a
// session. served (0): the console passes the request to the API, as the user of the session.
type routeRow struct {
	route                                      string // "METHOD path", and the form's "do"
	anonymous, holder, other, viewer, operator int
}

const served = 0 // the API answers

// accessTable has what each role may do. A route or a form that is not here fails the test.
func accessTable() []routeRow {
	const (
		ok     = http.StatusOK
		away   = http.StatusSeeOther // to the sign-in, or on
		over   = http.StatusUnauthorized
		none   = http.StatusNotFound
		denied = http.StatusForbidden
		unsaid = http.StatusPreconditionRequired
	)
	return []routeRow{
		{"GET /{$}", ok, ok, ok, ok, ok},
		{"GET /console/assets/", ok, ok, ok, ok, ok},
		{"GET /console/sign-in", ok, away, away, away, away},
		{"POST /console/sign-in", denied, denied, denied, denied, denied}, // without a key
		{"GET /console/enter/{code}", none, none, none, none, none},       // a code that there is not
		{"POST /console/enter/{code}", none, none, none, none, none},
		{"POST /console/sign-out", away, away, away, away, away},
		{"POST /console/appearance", away, away, away, away, away},
		{"GET /console/as/{token}/", away, served, none, none, served},
		{"POST /console/as/{token}/", over, served, none, none, unsaid},
		{"GET /console/tasks/{id}/content", away, served, served, served, served},
		{"GET /console/tasks/{id}/text", away, served, served, served, served},
		{"GET /console/", none, none, none, none, none},
		{"GET /console", away, served, served, served, served},
		{"GET /console/{$}", away, away, away, away, away},
		{"PUT /console", none, none, none, none, none},
		{"POST /console wake", over, denied, denied, denied, served},
		{"POST /console resume", over, denied, denied, denied, served},

		{"GET /console/calls", away, served, served, served, served},
		{"GET /console/calls/{id}", away, served, served, served, served},
		{"GET /console/tasks", away, served, served, served, served},
		{"POST /console/tasks cancel", over, denied, denied, denied, served},
		{"POST /console/tasks fail", over, denied, denied, denied, served},
		{"POST /console/tasks redeliver", over, denied, denied, denied, served},
		{"GET /console/tasks/{id}", away, served, served, served, served},
		{"POST /console/tasks/{id} cancel", over, served, served, denied, served},
		{"POST /console/tasks/{id} fail", over, denied, denied, denied, served},
		{"POST /console/tasks/{id} retry-archive", over, denied, denied, denied, served},
		{"POST /console/tasks/{id} redeliver", over, denied, denied, denied, served},
		{"POST /console/tasks/{id} delete", over, served, served, denied, denied},
		{"POST /console/tasks/{id} remix", over, served, served, denied, denied},
		{"GET /console/tokens", away, none, none, served, served},
		{"POST /console/tokens disable", over, none, none, denied, served},
		{"POST /console/tokens enable", over, none, none, denied, served},
		{"POST /console/tokens change", over, none, none, denied, served},
		{"GET /console/tokens/new", away, none, none, none, served},
		{"POST /console/tokens/new create", over, none, none, none, served},
		{"GET /console/tokens/{token}", away, none, none, served, served},
		{"POST /console/tokens/{token} change", over, none, none, denied, served},
		{"POST /console/tokens/{token} disable", over, none, none, denied, served},
		{"POST /console/tokens/{token} enable", over, none, none, denied, served},
		{"POST /console/tokens/{token} rotate", over, none, none, denied, served},
		{"POST /console/tokens/{token} secret", over, none, none, denied, served},
		{"POST /console/tokens/{token} revoke", over, none, none, denied, served},
		{"POST /console/tokens/{token} link", over, none, none, denied, served},
		{"GET /console/try", away, served, served, none, served},
		{"GET /console/setup", away, none, none, served, served},
		{"POST /console/setup test", over, none, none, denied, served},
		{"GET /console/channels", away, none, none, served, served},
		{"GET /console/channels/{name}", away, none, none, served, served},
		{"POST /console/channels/{name} pause", over, none, none, denied, served},
		{"POST /console/channels/{name} resume", over, none, none, denied, served},
		{"POST /console/channels/{name} wake", over, none, none, denied, served},
		{"POST /console/channels/{name} test", over, none, none, denied, served},
		{"GET /console/models", away, served, served, served, served},
		{"POST /console/models draft", over, denied, denied, denied, served},
		{"GET /console/usage", away, served, served, served, served},
		{"POST /console/usage charge", over, denied, denied, denied, served},
		{"POST /console/usage refund", over, denied, denied, denied, served},
		{"GET /console/audit", away, none, none, served, served},
		{"GET /console/you", away, served, served, served, served},
		{"POST /console/you end", over, served, served, served, served},
		{"POST /console/you everywhere", over, served, served, served, served},
		{"GET /console/find", away, served, served, served, served},
	}
}

// TestAccess: each route and each form of each page answers each role as the table has it, made from the router. The API is
// asked as the user of the session, or as the holder's token, and never where the answer is a refusal.
func TestAccess(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte(`{"data":[{"name":"x"}]}`)) })
	h.router.Load([]providers.Channel{channelOf("x", "x")}, nil)
	h.tokens = []tokens.Token{{ID: "x", Name: "x"}}
	h.stories = map[string]tasks.Details{"x": {}}
	h.own = []tasks.Task{{ID: "x"}}
	h.calls.Calls = []calllog.Call{{Record: calllog.Record{Names: calllog.Names{ID: "x"}}}}
	h.unsettled = []ledger.Reservation{{ID: "x", Lost: true}}
	h.keys["pad"] = User{Kind: "token", Owner: "tok_pad", Name: "pad", Role: Holder, Fingerprint: "p1"}
	h.people["tokentok_pad"] = h.keys["pad"]
	rows := make(map[string]routeRow)
	for _, row := range accessTable() {
		rows[row.route] = row
	}
	for _, name := range routeNames(h.server) {
		row, ok := rows[name]
		if !ok {
			t.Errorf("%s: the table lacks it", name)
			continue
		}
		delete(rows, name)
		for _, test := range []struct {
			key  string
			want int
		}{{"", row.anonymous}, {"app", row.holder}, {"pad", row.other}, {"vera", row.viewer}, {"anna", row.operator}} {
			h.checkAccess(t, name, test.key, test.want)
		}
	}
	for name := range rows {
		t.Errorf("%s: there is no such route", name)
	}
}

// routeNames are the routes as the table names them: those with forms once for each.
func routeNames(s *Server) []string {
	forms := make(map[string][]string)
	for i := range s.pages {
		for do := range s.pages[i].acts {
			pattern := "POST " + Root + s.pages[i].path
			forms[pattern] = append(forms[pattern], pattern+" "+do)
		}
	}
	var names []string
	for _, route := range s.routes() {
		pattern := route.pattern
		switch {
		case !strings.HasPrefix(pattern, "/"):
		case strings.HasPrefix(pattern, Root+"/as/"):
			names = append(names, "POST "+pattern)
			pattern = "GET " + pattern
		case pattern == Root: // what no page takes
			pattern = "PUT " + pattern
		default:
			pattern = "GET " + pattern
		}
		if dos := forms[pattern]; dos != nil {
			names = append(names, dos...)
			continue
		}
		names = append(names, pattern)
	}
	return names
}

// checkAccess sends what a route takes as the user of the key, "" for none.
func (h *house) checkAccess(t *testing.T, name, key string, want int) {
	t.Helper()
	b := &browser{h: h}
	if key != "" {
		b = h.as(t, key)
	}
	h.mu.Lock()
	h.asked, h.used, h.wrong = nil, nil, 0
	h.mu.Unlock()
	method, path, _ := strings.Cut(name, " ")
	path, do, _ := strings.Cut(path, " ")
	path = strings.NewReplacer("{$}", "", "/as/{token}/", "/as/tok_app/v1/videos", "{token}", "x", "{id}", "x", "{name}", "x", "{code}",
		"x").Replace(path)
	switch {
	case path == Root+"/assets/":
		path += h.server.assets.Folder() + "/app.js"
	case path == Root+"/" && !strings.HasSuffix(name, "{$}"):
		path += "nothing"
	}
	var rec *httptest.ResponseRecorder
	switch method {
	case http.MethodGet:
		rec = b.get(path)
	case http.MethodPut:
		r := httptest.NewRequest(method, "http://localhost:8080"+path, http.NoBody)
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		rec = b.do(r)
	default:
		rec = b.post(path, url.Values{"do": {do}, "id": {"x"}, "channel": {"x"}, "reservation": {"x"}, "reason": {"x"}})
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, call := range h.asked {
		user := h.keys[key]
		if path != "/" && (call.user.Kind != user.Kind || call.user.Owner != user.Owner) &&
			(user.Role == Holder || call.user.Kind != "token" || user.Role == Viewer && !call.looks) {
			t.Errorf("%s as %q: the API was asked as %+v", name, key, call.user)
		}
	}
	refused := rec.Code == http.StatusNotFound || rec.Code == http.StatusForbidden || rec.Code == http.StatusUnauthorized
	switch {
	case want == served && refused, want != served && rec.Code != want:
		t.Errorf("%s as %q: got %d, want %d", name, key, rec.Code, want)
	case want != served && want != http.StatusOK && len(h.asked)+len(h.used) > 0:
		t.Errorf("%s as %q: the API was asked %+v, the stores %q", name, key, h.asked, h.used)
	}
	for _, used := range h.used {
		if user := h.keys[key]; user.Role == Holder && !slices.Contains([]string{"calls", "limits", "balances", "usage"}, used) &&
			!strings.HasSuffix(used, "of "+user.Owner) && used != "cancel" && used != "delete" {
			t.Errorf("%s as %q: a holder read %s", name, key, used)
		}
	}
}
