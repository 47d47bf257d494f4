package console

import (
	"cmp"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"modelrelay/api/console/inprocess"
	"modelrelay/storage/sessions"
)

// View is one request of a page, and the data of its template. Only one goroutine uses it.
type View struct {
	W http.ResponseWriter
	R *http.Request
	// User identifies the owner of the session; zero without a session.
	User    User
	Session sessions.Session
	// Problem is why a form was refused, nil for none. The page shows it at the top and at the field.
	Problem *Problem
	// Away is why the main part of the page could not be read; nil: it was read. The page shows the reason above the remaining parts and keeps
	// its filters. A refresh keeps the previous content.
	Away *Problem
	// Ask is the question before an act on several objects, and Results are its outcomes; nil for none.
	Ask        *question
	Results    *Table
	Form       *Form
	Appearance Appearance
	// Page is the page's name, "" for a page without the frame. Data is the result of its show function.
	Page string
	Data any

	s    *Server
	page *page
}

func (s *Server) view(w http.ResponseWriter, r *http.Request) *View {
	return &View{W: w, R: r, Form: new(Form), Appearance: appearanceOf(r), s: s}
}

// readerOf returns the reader of a token's data: its holder, or an operator or viewer, for which the token's limits do not apply.
func (v *View) readerOf(token string) User {
	return User{Kind: TokenKind, Owner: token, Role: v.User.Role}
}

// T returns a text in the view's language; see words.Texts.
func (v *View) T(key string, pairs ...any) string {
	return v.s.words.Text(v.Appearance.lang, key, pairs...)
}

// Finding returns the sentence of a code in the view's language; see words.Texts.
func (v *View) Finding(code string, values map[string]string) string {
	return v.s.words.Finding(v.Appearance.lang, code, values)
}

// Link returns the address of a path of the gateway, relative to the page: a proxy may serve the gateway below a folder.
func (v *View) Link(path string) string {
	depth := strings.Count(strings.TrimPrefix(v.R.URL.EscapedPath(), "/"), "/")
	if depth == 0 {
		return "." + path
	}
	return strings.Repeat("../", depth)[:3*depth-1] + path
}

// To returns the address of a page of the console. It escapes the parts of the path.
func (v *View) To(parts ...string) string { return v.Link(pathOf(parts...)) }

// List returns the address of a list of the console with query values: name, value, name, value.
func (v *View) List(page string, pairs ...string) string {
	query := make(url.Values)
	for i := 0; i+1 < len(pairs); i += 2 {
		query.Set(pairs[i], pairs[i+1])
	}
	return v.To(page) + "?" + query.Encode()
}

// pathOf returns the path of a page of the console from the gateway's root. It escapes the parts.
func pathOf(parts ...string) string {
	segments := []string{Root}
	for _, part := range parts {
		segments = append(segments, inprocess.Segment(part))
	}
	return strings.Join(segments, "/")
}

// Asset returns the address of an asset.
func (v *View) Asset(name string) string {
	return v.Link(Root + "/assets/" + v.s.assets.Folder() + "/" + name)
}

// refreshHeader is the header of a request that fetches the page again only for its live regions.
const refreshHeader = "Console-Refresh"

// Refreshes reports whether only the live regions of the page are fetched. Data of the other parts is then not read.
func (v *View) Refreshes() bool { return v.R.Header.Get(refreshHeader) != "" }

// Here returns the page's own path from the gateway's root, with its query.
func (v *View) Here() string {
	if v.R.Method != http.MethodGet {
		return v.R.URL.EscapedPath()
	}
	return v.R.URL.RequestURI()
}

// Query returns a value of the query, "" for none.
func (v *View) Query(name string) string { return v.R.URL.Query().Get(name) }

// With returns the page's own address with changed query values: name, value, name, value; "" removes one. It also removes the position in
// a list.
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

// next returns the address of the next page of a list, "" if the list's cursor is nil.
func (v *View) next(cursor *string) string {
	if cursor == nil {
		return ""
	}
	return v.With("after", *cursor)
}

// Filtered reports whether the query filters the page.
func (v *View) Filtered() bool {
	for name, values := range v.R.URL.Query() {
		if !slices.Contains([]string{"after", "done", "format", "sort", "as", "view"}, name) && strings.Join(values, "") != "" {
			return true
		}
	}
	return false
}

// Done returns the key of the sentence about the completed action of a form, "" for none.
func (v *View) Done() string {
	key := "done." + v.Query("done")
	if v.s.words.Has(key) {
		return key
	}
	return ""
}

// Ticked reports whether the row with the id was checked in the form about which the page asks.
func (v *View) Ticked(id string) bool { return v.Ask != nil && slices.Contains(v.Ask.IDs, id) }

// CanChange reports whether the session may perform the changes of operators.
func (v *View) CanChange() bool { return v.User.Role == Operator }

// boxes returns the name of the boxes of a table's rows if the session may change the rows, else "".
func (v *View) boxes(name string) string {
	if v.CanChange() {
		return name
	}
	return ""
}

// IsOperatorOrViewer reports whether an operator or a viewer owns the session.
func (v *View) IsOperatorOrViewer() bool { return v.User.Role == Operator || v.User.Role == Viewer }

// Money formats an amount, with the currency if there is one.
func (v *View) Money(amount any) string {
	text := money(amount)
	if text == "" || v.s.o.Currency == "" {
		return text
	}
	return text + " " + v.s.o.Currency
}

// Nav returns the navigation's pages for the session.
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
