package console

import (
	"cmp"
	"net/http"
	"slices"
	"strings"

	"modelrelay/api/console/inprocess"
	"modelrelay/storage/sessions"
)

// View is one request of a page and what its template sees. One goroutine uses it.
type View struct {
	W http.ResponseWriter
	R *http.Request
	// User identifies the owner of the session; its zero value is none.
	User    User
	Session sessions.Session
	// Problem is why a form that was sent was refused, nil for none. The page shows it on top, and at the field.
	Problem *Problem
	// Away is why the main part of the page is not there, nil where it is. The page says so above what is there without it, its
	// filters as they were, and a refresh keeps what was shown before.
	Away       *Problem
	Form       *Form
	Appearance Appearance
	// Page is the page's name, "" for one outside of the frame; Data is what its functions gave the template.
	Page   string
	Status int
	Data   any
	// Landed: the reader of the landing page has a session.
	Landed bool

	s    *Server
	page *page
}

func (s *Server) view(w http.ResponseWriter, r *http.Request) *View {
	return &View{W: w, R: r, Form: new(Form), Appearance: appearanceOf(r), s: s}
}

// readerOf returns the reader of a token's data: its holder, or an operator or viewer, to which the token's limits do not apply.
func (v *View) readerOf(token string) User {
	return User{Kind: TokenKind, Owner: token, Role: v.User.Role}
}

// T is a text in the view's language; see words.Texts.
func (v *View) T(key string, pairs ...any) string {
	return v.s.words.Say(v.Appearance.lang, key, pairs...)
}

// Finding is the sentence of a code in the view's language; see words.Texts.
func (v *View) Finding(code string, values map[string]string) string {
	return v.s.words.Finding(v.Appearance.lang, code, values)
}

// Link is the address of a path of the gateway, relative to the page: a proxy may have the gateway below a folder of its own.
func (v *View) Link(path string) string {
	depth := strings.Count(strings.TrimPrefix(v.R.URL.EscapedPath(), "/"), "/")
	if depth == 0 {
		return "." + path
	}
	return strings.Repeat("../", depth)[:3*depth-1] + path
}

// To is the address of a page of the console; parts of the path are escaped.
func (v *View) To(parts ...string) string { return v.Link(pathOf(parts...)) }

// pathOf is the path of a page of the console from the gateway's root; its parts are escaped.
func pathOf(parts ...string) string {
	segments := []string{Root}
	for _, part := range parts {
		segments = append(segments, inprocess.Segment(part))
	}
	return strings.Join(segments, "/")
}

// Asset is the address of a file that pages load.
func (v *View) Asset(name string) string {
	return v.Link(Root + "/assets/" + v.s.assets.Folder() + "/" + name)
}

// refreshHeader says that a page is fetched once more for its live regions alone.
const refreshHeader = "Console-Refresh"

// Refreshes reports that only the live regions of the page are fetched: what only the rest of the page needs is not read.
func (v *View) Refreshes() bool { return v.R.Header.Get(refreshHeader) != "" }

// Here is the page's own path from the gateway's root, with its query.
func (v *View) Here() string {
	if v.R.Method != http.MethodGet {
		return v.R.URL.EscapedPath()
	}
	return v.R.URL.RequestURI()
}

// Query is a value of the address, "" for none.
func (v *View) Query(name string) string { return v.R.URL.Query().Get(name) }

// With is the page's own address with other values of its query: name, value, name, value; "" drops one. It drops the place in a list.
func (v *View) With(pairs ...string) string {
	q := v.R.URL.Query()
	for _, drop := range []string{"after", "done", "format"} {
		q.Del(drop)
	}
	for i := 0; i+1 < len(pairs); i += 2 {
		q.Del(pairs[i])
		if pairs[i+1] != "" {
			q.Set(pairs[i], pairs[i+1])
		}
	}
	for name, values := range q {
		if len(values) == 1 && values[0] == "" {
			q.Del(name)
		}
	}
	return "?" + q.Encode()
}

// next is the address of the next page of a list, "" where the cursor of the list is nil.
func (v *View) next(cursor *string) string {
	if cursor == nil {
		return ""
	}
	return v.With("after", *cursor)
}

// Filtered reports whether the address narrows what is shown.
func (v *View) Filtered() bool {
	for name, values := range v.R.URL.Query() {
		if !slices.Contains([]string{"after", "done", "format", "sort", "as", "view"}, name) && strings.Join(values, "") != "" {
			return true
		}
	}
	return false
}

// Done is the key of the sentence that says what a form has done, "" for none.
func (v *View) Done() string {
	key := "done." + v.Query("done")
	if v.s.words.Has(key) {
		return key
	}
	return ""
}

// May reports whether the session may change what operators change.
func (v *View) May() bool { return v.User.Role == Operator }

// Staff reports whether the session is an operator's or a viewer's.
func (v *View) Staff() bool { return v.User.Role == Operator || v.User.Role == Viewer }

// Money writes an amount, with the currency where there is one.
func (v *View) Money(amount any) string {
	text := money(amount)
	if text == "" || v.s.o.Currency == "" {
		return text
	}
	return text + " " + v.s.o.Currency
}

// Nav are the pages that the frame leads to, for the session.
func (v *View) Nav() []NavEntry {
	var list []NavEntry
	for i := range v.s.pages {
		p := &v.s.pages[i]
		if p.nav == "" || !p.admits(v.User.Role) {
			continue
		}
		list = append(list, NavEntry{
			Word: "nav." + p.nav, Address: v.Link(Root + p.path), Key: p.key,
			Here: v.page != nil && cmp.Or(v.page.under, v.page.nav) == p.nav,
		})
	}
	return list
}

// NavEntry is one line of the navigation.
type NavEntry struct {
	Word, Address, Key string
	Here               bool
}

func (v *View) redirect(path string) {
	v.W.Header().Set("Location", v.Link(path))
	v.W.WriteHeader(http.StatusSeeOther)
}
