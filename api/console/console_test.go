package console

import (
	"context"
	"crypto/rand"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"net/url"
	"regexp"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/api/console/words"
	"modelrelay/api/edge"
	"modelrelay/api/openai"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/sessions"
	"modelrelay/storage/tokens"
)

// house is a console over services and an API of the test's, with sessions in memory.
type house struct {
	*stores

	server   *Server
	edge     http.Handler // the server behind an edge, as in the gateway
	sessions *memory

	people map[string]User // by kind and owner
	keys   map[string]User
	asked  []asked           // of the API
	wrong  int               // keys and links
	failed map[string]string // checks of the gateway
	reads  int               // a minute, of every token; 0: the default
}

// mostWrong is how many wrong keys and links a house takes before it refuses sign-ins with 429.
const mostWrong = 10

type asked struct {
	user   User
	looks  bool
	method string
	path   string
}

// newHouse opens a console with an operator, a viewer and a holder, whose keys are their names. api answers for the API; nil: 404.
func newHouse(t *testing.T, api http.HandlerFunc) *house {
	t.Helper()
	h := &house{stores: new(stores), sessions: &memory{
		sessions: make(map[string]sessions.Session), links: make(map[string]sessions.Link),
		words: make(map[string]bool),
	}}
	anna := User{Kind: "operator", Owner: "anna", Name: "anna", Role: Operator, Fingerprint: "a1"}
	vera := User{Kind: "operator", Owner: "vera", Name: "vera", Role: Viewer, Fingerprint: "v1"}
	app := User{Kind: "token", Owner: "tok_app", Name: "app", Role: Holder, Fingerprint: "t1"}
	h.keys = map[string]User{"anna": anna, "vera": vera, "app": app}
	h.people = make(map[string]User)
	for _, user := range h.keys {
		h.people[user.Kind+user.Owner] = user
	}
	if api == nil {
		api = func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusNotFound, "There is nothing at this path.")
		}
	}
	service, own := h.services()
	h.server = New(Options{
		Operator: service,
		Backend: Backend{
			Account: own, Ready: func(context.Context) (string, map[string]string) { return "degraded", h.failed },
			API: http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
				inside := edge.InternalCallerOf(r.Context())
				user := User{Kind: OperatorKind, Owner: inside.Operator, Role: inside.Role}
				if inside.Find != nil {
					user = User{Kind: TokenKind, Owner: inside.Token, Role: Holder}
				}
				h.mu.Lock()
				h.asked = append(h.asked, asked{user, inside.Impersonates, r.Method, r.URL.Path})
				h.mu.Unlock()
				api(w, r)
			}),
		},
		Token: func(_ context.Context, id string) (*tokens.Token, error) {
			return &tokens.Token{
				ID: id, Name: strings.TrimPrefix(id, "tok_"), Hint: "sk-…TKar",
				Limits: tokens.Limits{RequestsPerMinute: 600, ReadsPerMinute: h.reads}, Budget: 100,
			}, nil
		},
		Key: func(_ *http.Request, key string) (User, error) {
			if user, ok := h.keys[key]; ok {
				return user, nil
			}
			return User{}, storage.ErrNotFound
		},
		Lookup: func(_ context.Context, kind, owner string) (User, error) {
			h.mu.Lock()
			defer h.mu.Unlock()
			if user, ok := h.people[kind+owner]; ok {
				return user, nil
			}
			return User{}, storage.ErrNotFound
		},
		Wrong: func(*http.Request) time.Duration {
			h.mu.Lock()
			defer h.mu.Unlock()
			if h.wrong++; h.wrong > mostWrong {
				return time.Minute
			}
			return 0
		},
		Opened:   func() bool { return true },
		Sessions: h.sessions, Currency: "USD",
	})
	h.edge = edge.New(edge.Options{}, openai.Format()).Handler(h.server)
	return h
}

// refuse answers as the API does.
func refuse(w http.ResponseWriter, status int, message string) {
	w.Header().Set("X-Request-Id", "req_test")
	w.WriteHeader(status)
	_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]any{"message": message, "param": nil, "code": "x"}})
}

// browser is one that has a cookie.
type browser struct {
	h      *house
	cookie *http.Cookie
	lang   string // what it prefers, "" for nothing said
}

// as returns the browser of the user with that key, signed in.
func (h *house) as(t *testing.T, key string) *browser {
	t.Helper()
	b := &browser{h: h}
	rec := b.post("/console/sign-in", url.Values{"key": {key}})
	if rec.Code != http.StatusSeeOther || b.cookie == nil {
		t.Fatalf("sign in as %s: got %d, %s", key, rec.Code, rec.Body)
	}
	return b
}

func (b *browser) do(r *http.Request) *httptest.ResponseRecorder {
	if b.cookie != nil {
		r.AddCookie(b.cookie)
	}
	if b.lang != "" {
		r.Header.Set("Accept-Language", b.lang)
	}
	rec := httptest.NewRecorder()
	b.h.edge.ServeHTTP(rec, r)
	for _, c := range rec.Result().Cookies() {
		if c.Name == plainCookie || c.Name == secureCookie {
			b.cookie = c
			if c.MaxAge < 0 {
				b.cookie = nil
			}
		}
	}
	return rec
}

func (b *browser) get(path string) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodGet, "http://localhost:8080"+path, http.NoBody)
	return b.do(r)
}

func (b *browser) post(path string, form url.Values) *httptest.ResponseRecorder {
	r := httptest.NewRequest(http.MethodPost, "http://localhost:8080"+path, strings.NewReader(form.Encode()))
	r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
	r.Header.Set("Sec-Fetch-Site", "same-origin")
	r.Header.Set("Origin", "http://localhost:8080")
	return b.do(r)
}

// memory keeps sessions for a test.
type memory struct {
	mu       sync.Mutex
	sessions map[string]sessions.Session
	links    map[string]sessions.Link
	words    map[string]bool
	away     bool
	full     bool // Begin refuses each session with TooManyError
}

func (m *memory) lock() (func(), error) {
	m.mu.Lock()
	if m.away {
		m.mu.Unlock()
		return nil, storage.ErrUnavailable
	}
	return m.mu.Unlock, nil
}

// Begin starts a session.
func (m *memory) Begin(_ context.Context, s sessions.Session) (string, sessions.Session, error) {
	unlock, err := m.lock()
	if err != nil {
		return "", s, err
	}
	defer unlock()
	if m.full {
		return "", s, &sessions.TooManyError{For: time.Minute}
	}
	secret := rand.Text()
	s.ID, s.Since, s.Seen = "id-"+secret, time.Now(), time.Now()
	m.sessions[secret] = s
	return secret, s, nil
}

// Find returns one.
func (m *memory) Find(_ context.Context, secret string) (sessions.Session, error) {
	unlock, err := m.lock()
	if err != nil {
		return sessions.Session{}, err
	}
	defer unlock()
	s, ok := m.sessions[secret]
	if !ok {
		return s, storage.ErrNotFound
	}
	return s, nil
}

// List returns an owner's.
func (m *memory) List(_ context.Context, kind, owner string) ([]sessions.Session, error) {
	unlock, err := m.lock()
	if err != nil {
		return nil, err
	}
	defer unlock()
	var list []sessions.Session
	for _, s := range m.sessions {
		if s.Kind == kind && s.Owner == owner {
			list = append(list, s)
		}
	}
	return list, nil
}

func (m *memory) end(fits func(sessions.Session) bool) error {
	unlock, err := m.lock()
	if err != nil {
		return err
	}
	defer unlock()
	for secret, s := range m.sessions {
		if fits(s) {
			delete(m.sessions, secret)
		}
	}
	return nil
}

// End ends one.
func (m *memory) End(_ context.Context, kind, owner, id string) error {
	return m.end(func(s sessions.Session) bool { return s.Kind == kind && s.Owner == owner && s.ID == id })
}

// EndAll ends an owner's.
func (m *memory) EndAll(_ context.Context, kind, owner string) error {
	return m.end(func(s sessions.Session) bool { return s.Kind == kind && s.Owner == owner })
}

// Offer makes a link.
func (m *memory) Offer(_ context.Context, link sessions.Link, _ time.Duration) (string, error) {
	unlock, err := m.lock()
	if err != nil {
		return "", err
	}
	defer unlock()
	code := rand.Text()
	m.links[code] = link
	return code, nil
}

// Peek reads one.
func (m *memory) Peek(_ context.Context, code string) (link sessions.Link, err error) {
	unlock, err := m.lock()
	if err != nil {
		return link, err
	}
	defer unlock()
	link, ok := m.links[code]
	if !ok {
		return link, storage.ErrNotFound
	}
	return link, nil
}

// Take uses one up.
func (m *memory) Take(ctx context.Context, code string) (sessions.Link, error) {
	link, err := m.Peek(ctx, code)
	m.mu.Lock()
	defer m.mu.Unlock()
	delete(m.links, code)
	return link, err
}

// Once notes a word.
func (m *memory) Once(_ context.Context, _, _, word string) (bool, error) {
	unlock, err := m.lock()
	if err != nil {
		return false, err
	}
	defer unlock()
	first := !m.words[word]
	m.words[word] = true
	return first, nil
}

var (
	inlineScript = regexp.MustCompile(`<script[^>]*>[^<]+`)
	handler      = regexp.MustCompile(`(?i)<[^>]*\son[a-z]+\s*=`)
	styled       = regexp.MustCompile(`(?i)<[^>]*\sstyle\s*=|<style`)
	address      = regexp.MustCompile(`(?:href|src|action|formaction|poster)="([^"]*)"`)
	rawKey       = regexp.MustCompile(`>[a-z]+(?:\.[a-z_-]+)+<`)
)

// checkPage checks what holds for every page: headers, no inline code, no absolute address, no raw key, one h1.
func checkPage(t *testing.T, what string, rec *httptest.ResponseRecorder) {
	t.Helper()
	h, body := rec.Header(), rec.Body.String()
	if got := h.Get("Content-Security-Policy"); got != policy {
		t.Errorf("%s: policy is %q", what, got)
	}
	for name, want := range map[string]string{
		"X-Content-Type-Options": "nosniff", "Referrer-Policy": "no-referrer", "Cache-Control": "no-store",
		"Cross-Origin-Opener-Policy": "same-origin", "Cross-Origin-Resource-Policy": "same-origin", "Content-Type": "text/html; charset=utf-8",
	} {
		if got := h.Get(name); got != want {
			t.Errorf("%s: %s is %q, want %q", what, name, got, want)
		}
	}
	for name, bad := range map[string]*regexp.Regexp{"an inline script": inlineScript, "a handler": handler, "a style": styled} {
		if found := bad.FindString(body); found != "" {
			t.Errorf("%s: has %s: %s", what, name, found)
		}
	}
	for _, found := range address.FindAllStringSubmatch(body, -1) {
		if to := found[1]; strings.HasPrefix(to, "/") || strings.Contains(to, "://") || strings.HasPrefix(to, "javascript:") {
			t.Errorf("%s: has an absolute address: %s", what, to)
		}
	}
	if found := rawKey.FindString(body); found != "" {
		t.Errorf("%s: shows a key in place of a text: %s", what, found)
	}
	if n := strings.Count(body, "<h1"); n != 1 {
		t.Errorf("%s: has %d h1, want one", what, n)
	}
	if strings.Contains(body, "ZgotmplZ") || strings.Contains(body, "<no value>") || strings.Contains(body, "%!") {
		t.Errorf("%s: a value was not written: %.3000s", what, body)
	}
}

// params of paths, for pages of one thing.
var pathParameter = regexp.MustCompile(`\{[a-z]+\}`)

// TestEveryPage: every page renders for every role, also if the API has no data or is unavailable.
func TestEveryPage(t *testing.T) {
	t.Parallel()
	for state, api := range map[string]http.HandlerFunc{
		"away": func(w http.ResponseWriter, _ *http.Request) {
			refuse(w, http.StatusServiceUnavailable, "Redis does not answer.")
		},
		"empty": func(w http.ResponseWriter, _ *http.Request) {
			_, _ = w.Write([]byte(`{"object":"list","data":[],"after":null}`))
		},
	} {
		h := newHouse(t, api)
		if state == "away" {
			h.err = &providers.Fault{Kind: providers.Overloaded, Message: "Redis does not answer.", Err: storage.ErrUnavailable}
		}
		for key, user := range h.keys {
			b := h.as(t, key)
			for i := range h.server.pages {
				p := &h.server.pages[i]
				for _, language := range words.Languages() {
					path := Root + pathParameter.ReplaceAllString(p.path, "x")
					r := httptest.NewRequest(http.MethodGet, "http://localhost:8080"+path, http.NoBody)
					r.Header.Set("Accept-Language", language)
					rec := b.do(r)
					what := state + " " + key + " " + language + " " + path
					checkPage(t, what, rec)
					if !slices.Contains(p.roles, user.Role) && rec.Code != http.StatusNotFound {
						t.Errorf("%s: got %d without permission, want 404", what, rec.Code)
					}
					if slices.Contains(p.roles, user.Role) && rec.Code >= 500 && rec.Code != http.StatusServiceUnavailable {
						t.Errorf("%s: got %d, %s", what, rec.Code, rec.Body)
					}
				}
			}
		}
	}
}

// TestEntryPages: the pages that need no session.
func TestEntryPages(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	b := &browser{h: h}
	checkPage(t, "sign-in", b.get("/console/sign-in"))
	checkPage(t, "landing", b.get("/"))
	code, err := h.sessions.Offer(t.Context(), sessions.Link{Kind: OperatorKind, Owner: "anna"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // a GET does not use the link up
		rec := b.get("/console/enter/" + code)
		checkPage(t, "enter", rec)
		if rec.Code != http.StatusOK || !strings.Contains(rec.Body.String(), "anna") {
			t.Errorf("enter: got %d, %s", rec.Code, rec.Body)
		}
	}
	if rec := b.post("/console/enter/"+code, nil); rec.Code != http.StatusSeeOther || b.cookie == nil {
		t.Errorf("use of a link: got %d", rec.Code)
	}
	if rec := b.post("/console/enter/"+code, nil); rec.Code != http.StatusNotFound {
		t.Errorf("second use of a link: got %d, want 404", rec.Code)
	}
	h.sessions.away = true
	for _, path := range []string{"/console/you", "/console/enter/x"} {
		if rec := b.get(path); rec.Code != http.StatusServiceUnavailable || !strings.Contains(rec.Body.String(), "Redis") {
			t.Errorf("%s with Redis away: got %d, want 503", path, rec.Code)
		}
	}
}

// TestGuard: the console answers only at its own host, refuses forms of other sites, and leads a browser without a session to the sign-in.
func TestGuard(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	request := func(method, address string, header ...string) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, address, strings.NewReader("key=anna"))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		for i := 0; i < len(header); i += 2 {
			r.Header.Set(header[i], header[i+1])
		}
		return (&browser{h: h}).do(r)
	}
	for what, test := range map[string]struct {
		rec  *httptest.ResponseRecorder
		want int
	}{
		"another host":           {request("GET", "http://gateway.example/console/sign-in"), 404},
		"another host's landing": {request("GET", "http://gateway.example/"), 200},
		"a host like loopback":   {request("GET", "http://localhost.example/console/sign-in"), 404},
		"loopback by address":    {request("GET", "http://[::1]:8080/console/sign-in"), 200},
		"no origin at all":       {request("POST", "http://localhost/console/sign-in"), 403},
		"another site": {request("POST", "http://localhost/console/sign-in", "Sec-Fetch-Site", "cross-site", "Origin",
			"http://evil.example"), 403},
		"another port": {request("POST", "http://localhost:8080/console/sign-in", "Sec-Fetch-Site", "same-site", "Origin",
			"http://localhost:3000"), 403},
		"an old browser elsewhere": {request("POST", "http://localhost/console/sign-in", "Origin", "http://evil.example"), 403},
		"its own form": {request("POST", "http://localhost/console/sign-in", "Sec-Fetch-Site", "same-origin", "Origin",
			"http://localhost"), 303},
		"anonymous":           {request("GET", "http://localhost/console/tokens"), 303},
		"an anonymous script": {request("GET", "http://localhost/console/tokens", "Sec-Fetch-Dest", "empty"), 401},
		"a link from elsewhere": {request("GET", "http://localhost/console/tokens", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode",
			"navigate"), 200},
		"the choice elsewhere":   {request("GET", "http://gateway.example/console/appearance"), 404},
		"assets to write":        {request("POST", "http://gateway.example/console/assets/x", "Origin", "http://gateway.example"), 404},
		"a foreign asset folder": {request("GET", "http://localhost/console/assets/x/app.js"), 404},
	} {
		if test.rec.Code != test.want {
			t.Errorf("%s: got %d, want %d: %.200s", what, test.rec.Code, test.want, test.rec.Body)
		}
	}
	if rec := request("GET", "http://localhost/console/tokens", "Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode",
		"navigate"); !strings.Contains(rec.Body.String(), `http-equiv="refresh"`) {
		t.Error("a link from elsewhere is not loaded once more")
	}
	if rec := request("GET", "http://gateway.example/"); strings.Contains(rec.Body.String(), "console/sign-in") {
		t.Error("the landing page of another host offers a sign-in")
	}
	// Over plain http elsewhere browsers send Origin alone, and with no-referrer it is "null" of a form.
	for address, want := range map[string]string{
		"http://localhost:8080/": "no-referrer", "http://gateway.example/": "same-origin",
		"https://gateway.example/": "no-referrer",
	} {
		if got := request("GET", address).Header().Get("Referrer-Policy"); got != want {
			t.Errorf("%s: Referrer-Policy %q, want %q", address, got, want)
		}
	}
}

// TestLandingAnywhere: the landing page has its assets and keeps the chosen language, also at a host that refuses sign-ins.
func TestLandingAnywhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	ask := func(method, path, body string, cookies ...*http.Cookie) *httptest.ResponseRecorder {
		r := httptest.NewRequest(method, "http://gateway.example"+path, strings.NewReader(body))
		r.Header.Set("Content-Type", "application/x-www-form-urlencoded")
		r.Header.Set("Origin", "http://gateway.example")
		for _, c := range cookies {
			r.AddCookie(c)
		}
		rec := httptest.NewRecorder()
		h.edge.ServeHTTP(rec, r)
		return rec
	}
	parts := regexp.MustCompile(`(?:href|src)="([^"]*/assets/[^"]*)"`).FindAllStringSubmatch(ask("GET", "/", "").Body.String(), -1)
	if len(parts) < 3 {
		t.Fatalf("the page names %d assets", len(parts))
	}
	for _, part := range parts {
		path := (&url.URL{Path: "/"}).ResolveReference(&url.URL{Path: part[1]}).Path
		if rec := ask("GET", path, ""); rec.Code != http.StatusOK {
			t.Errorf("%s: got %d", path, rec.Code)
		}
	}
	chosen := ask("POST", "/console/appearance", "lang=zh&next=/")
	if chosen.Code != http.StatusSeeOther || chosen.Header().Get("Location") != "../" {
		t.Fatalf("the choice of a language: %d, to %q", chosen.Code, chosen.Header().Get("Location"))
	}
	cookies := chosen.Result().Cookies()
	if len(cookies) != 1 || cookies[0].Path != "/" {
		t.Fatalf("cookies %v, want one for all paths", cookies)
	}
	if page := ask("GET", "/", "", cookies...).Body.String(); !strings.Contains(page, `lang="zh-Hans"`) {
		t.Errorf("the page is not in the language that was chosen: %.200s", page)
	}
}

// TestSessions: each sign-in starts a new session, and a session ends with its key.
func TestSessions(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	b := h.as(t, "anna")
	first := b.cookie
	if !first.HttpOnly || first.SameSite != http.SameSiteStrictMode || first.Path != Root || first.Name != plainCookie {
		t.Errorf("cookie: %+v", first)
	}
	b.post("/console/sign-in", url.Values{"key": {"anna"}})
	if b.cookie.Value == first.Value {
		t.Error("the session from before a sign-in is still valid")
	}
	old := &browser{h: h, cookie: first}
	if rec := old.get("/console/you"); rec.Code != http.StatusSeeOther {
		t.Errorf("the session before: got %d, want the sign-in", rec.Code)
	}
	attacker := &browser{h: h, cookie: &http.Cookie{Name: plainCookie, Value: "chosen-by-attacker"}}
	attacker.post("/console/sign-in", url.Values{"key": {"anna"}})
	if attacker.cookie == nil || attacker.cookie.Value == "chosen-by-attacker" {
		t.Error("the console accepted a session id that the client chose")
	}
	wrong := (&browser{h: h}).post("/console/sign-in", url.Values{"key": {"wrong"}})
	empty := (&browser{h: h}).post("/console/sign-in", url.Values{"key": {""}})
	if wrong.Code != http.StatusForbidden || wrong.Body.String() != empty.Body.String() ||
		strings.Contains(wrong.Body.String(), `value="wrong"`) {
		t.Errorf("refusals differ or repeat the key: %d, %d", wrong.Code, empty.Code)
	}
	h.mu.Lock()
	anna := h.people["operatoranna"]
	anna.Fingerprint = "a2"
	h.people["operatoranna"] = anna
	h.mu.Unlock()
	if rec := b.get("/console/you"); rec.Code != http.StatusSeeOther {
		t.Errorf("after the key was replaced: got %d, want the sign-in", rec.Code)
	}
	holder := h.as(t, "app")
	if rec := holder.post("/console/sign-out", nil); rec.Code != http.StatusSeeOther || holder.cookie != nil {
		t.Errorf("sign-out: got %d", rec.Code)
	}
	if n := len(h.sessions.sessions); n != 1 { // the session of the user with the replaced key
		t.Errorf("%d sessions are left, want one", n)
	}
}

// TestNext: a form leads only to a page of the console.
func TestNext(t *testing.T) {
	t.Parallel()
	for to, want := range map[string]string{
		"": Root, "/": Root, "//evil.example": Root, "https://evil.example": Root, "/console//evil": Root, "/console/../admin": Root,
		"/console\\evil": Root, "/consolex": Root, "/console/sign-in": Root, "/console": "/console", "/console/tokens?q=a": "/console/tokens?q=a",
		"/console?x=1": "/console?x=1",
	} {
		if got := next(to); got != want {
			t.Errorf("%q: got %q, want %q", to, got, want)
		}
	}
}

// TestRelayIsTheTokensOwn: a holder calls the API only as its own token, a viewer not at all.
func TestRelayIsTheTokensOwn(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = w.Write([]byte("{}")) })
	for key, test := range map[string]map[string]int{
		"app":  {"tok_app": 200, "tok_other": 404},
		"vera": {"tok_app": 404},
		"anna": {"tok_app": 200, "tok_other": 200},
	} {
		for token, want := range test {
			r := httptest.NewRequest(http.MethodPost, "http://localhost:8080/console/as/"+token+"/v1/chat/completions", strings.NewReader("{}"))
			r.Header.Set("Sec-Fetch-Site", "same-origin")
			r.Header.Set(paysHeader, token)
			if rec := h.as(t, key).do(r); rec.Code != want {
				t.Errorf("%s as %s: got %d, want %d", key, token, rec.Code, want)
			}
		}
	}
	b := h.as(t, "anna")
	for _, path := range []string{"/admin/tokens", "/v1/../admin/tokens", "/v1/files", "/v1/videosx", "/v1/videos/..%2f..%2fadmin"} {
		if rec := b.get("/console/as/tok_app" + path); rec.Code == http.StatusOK {
			t.Errorf("%s: got 200", path)
		}
	}
	for _, call := range h.asked {
		if call.path != "/v1/chat/completions" || call.user.Kind != "token" {
			t.Errorf("the API was asked %+v", call)
		}
	}
}

// TestPayerIsNamed: an operator's call that another token pays for must name that token, and the audit log records it. It also
// records that an operator watched the video of a token.
func TestPayerIsNamed(t *testing.T) {
	t.Parallel()
	h := newHouse(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = w.Write([]byte("{}"))
	})
	h.tokens = []tokens.Token{{ID: "tok_console", Name: consoleToken}}
	for _, test := range []struct {
		user, method, token, path, pays string
		status                          int
		noted                           string // the action and its subject
	}{
		{"anna", "POST", "tok_app", "/v1/chat/completions", "", 428, ""},
		{"anna", "POST", "tok_app", "/v1/chat/completions", "tok_other", 428, ""},
		{"anna", "DELETE", "tok_app", "/v1/videos/video_1", "", 428, ""},
		{"anna", "POST", "tok_app", "/v1/chat/completions", "tok_app", 200, audit.TryAsToken + " tok_app"},
		{"anna", "POST", consoleToken, "/v1/chat/completions", "", 200, audit.TryAsToken + " tok_console"},
		{"anna", "GET", "tok_app", "/v1/videos/video_1", "", 200, ""},
		{"anna", "GET", "tok_app", "/v1/videos/video_1/content", "", 200, watchWord + " video_1"},
		{"app", "POST", "tok_app", "/v1/chat/completions", "", 200, ""},
		{"app", "GET", "tok_app", "/v1/videos/video_1/content", "", 200, ""},
		{"vera", "GET", "tok_app", "/v1/videos/video_1", "", 404, ""},
		{"vera", "POST", consoleToken, "/v1/chat/completions", consoleToken, 404, ""},
	} {
		b := h.as(t, test.user)
		h.entries, h.asked = nil, nil
		r := httptest.NewRequest(test.method, "http://localhost:8080/console/as/"+test.token+test.path, strings.NewReader("{}"))
		r.Header.Set("Sec-Fetch-Site", "same-origin")
		if test.pays != "" {
			r.Header.Set(paysHeader, test.pays)
		}
		rec := b.do(r)
		noted := ""
		for _, act := range h.entries {
			noted += act.What + " " + act.Subject
		}
		reached := slices.ContainsFunc(h.asked, func(a asked) bool { return a.path == test.path })
		if rec.Code != test.status || noted != test.noted || reached != (test.status == 200) {
			t.Errorf("%+v: got %d, noted %q, reached %t", test, rec.Code, noted, reached)
		}
	}
}

func TestLinksFromEverywhere(t *testing.T) {
	t.Parallel()
	h := newHouse(t, nil)
	for path, want := range map[string]string{
		"/": "./console/tokens/a%2Fb", "/console": "./console/tokens/a%2Fb", "/console/tokens": "../console/tokens/a%2Fb",
		"/console/tokens/a%2Fb": "../../console/tokens/a%2Fb",
	} {
		r := httptest.NewRequest(http.MethodGet, "http://localhost"+path, http.NoBody)
		got := h.server.view(httptest.NewRecorder(), r).To("tokens", "a/b")
		if got != want {
			t.Errorf("from %s: got %s, want %s", path, got, want)
		}
		base, _ := url.Parse("http://localhost" + path)
		if led, err := base.Parse(got); err != nil || led.EscapedPath() != "/console/tokens/a%2Fb" {
			t.Errorf("from %s: %s leads to %v", path, got, led)
		}
	}
}
