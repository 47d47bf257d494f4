package console

import (
	"cmp"
	"fmt"
	"html/template"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// View is one request of a page and what its template sees. One goroutine uses it.
type View struct {
	W http.ResponseWriter
	R *http.Request
	// Who has signed in; its zero value is nobody.
	Who     Who
	Session Session
	// Problem is what the API refused of a form that was sent, nil for none. The page shows it on top, and at the field.
	Problem *Problem
	// Page is the page's name, "" for one outside of the frame; Data is what its functions gave the template.
	Page   string
	Status int
	Data   any

	s    *Server
	look lookCookie
	lang string
	form url.Values // what was sent, nil where nothing was
	page *page
	// landed: who looks at the landing page has signed in.
	landed bool
}

// lookCookie is how somebody wants to see the console.
type lookCookie struct {
	Lang, Theme, Zone string
	Keys              string // "off": no shortcuts of single letters
}

// lookName is the cookie's. It holds no secret and no right.
const lookName = "relay-look"

func (s *Server) view(w http.ResponseWriter, r *http.Request) *View {
	v := &View{W: w, R: r, s: s}
	if c, err := r.Cookie(lookName); err == nil {
		chosen, _ := url.ParseQuery(c.Value) // one that does not parse has chosen nothing
		v.look = lookCookie{Lang: chosen.Get("l"), Theme: chosen.Get("t"), Zone: cut(chosen.Get("z"), 64), Keys: chosen.Get("k")}
	}
	v.lang = languageOf(r, v.look.Lang)
	return v
}

// setLook notes how somebody wants to see the console, and leads back to where they were.
func (s *Server) setLook(v *View) {
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, maxEntry)
	_ = v.R.ParseForm() // what did not arrive changes nothing
	values := url.Values{"l": {v.look.Lang}, "t": {v.look.Theme}, "z": {v.look.Zone}, "k": {v.look.Keys}}
	for field, key := range map[string]string{"lang": "l", "theme": "t", "zone": "z", "keys": "k"} {
		if v.R.PostForm.Has(field) { //nolint:forbidigo // a request's form, not the client's function
			values.Set(key, cut(v.R.PostFormValue(field), 64))
		}
	}
	path := Root
	if s.secure() {
		path = "/"
	}
	http.SetCookie(v.W, &http.Cookie{ //nolint:gosec // Secure wherever the console is reached by https
		Name: lookName, Value: values.Encode(), Path: path, MaxAge: 365 * 24 * 60 * 60, HttpOnly: true, Secure: s.secure(), SameSite: http.SameSiteStrictMode,
	})
	v.redirect(back(v.R.PostFormValue("next")))
}

// back is next, and the sign-in too, which setLook may lead to.
func back(to string) string {
	if to == Root+"/sign-in" || to == "/" {
		return to
	}
	return next(to)
}

// T is a text in the view's language; see words.say.
func (v *View) T(key string, pairs ...any) string { return v.s.words.say(v.lang, key, pairs...) }

// Lang is the language of the page.
func (v *View) Lang() string {
	if v.lang == "zh" {
		return "zh-Hans"
	}
	return v.lang
}

// Theme is light, dark, or "" for the system's.
func (v *View) Theme() string {
	if v.look.Theme == "light" || v.look.Theme == "dark" {
		return v.look.Theme
	}
	return ""
}

// Zone is the chosen time zone, "" for the browser's. Keys tells whether single letters are shortcuts.
func (v *View) Zone() string { return v.look.Zone }

// Keys tells whether single letters are shortcuts.
func (v *View) Keys() bool { return v.look.Keys != "off" }

// Link is the address of a path of the gateway, such as /console/tokens, as seen from the page: a proxy in front may have
// the gateway below a folder of its own.
func (v *View) Link(path string) string {
	depth := strings.Count(strings.TrimPrefix(v.R.URL.EscapedPath(), "/"), "/")
	if depth == 0 {
		return "." + path
	}
	return strings.Repeat("../", depth)[:3*depth-1] + path
}

// To is the address of a page of the console; parts of the path are escaped.
func (v *View) To(parts ...string) string {
	path := []string{Root}
	for _, part := range parts {
		path = append(path, Segment(part))
	}
	return v.Link(strings.Join(path, "/"))
}

// Asset is the address of a file that pages load.
func (v *View) Asset(name string) string {
	return v.Link(Root + "/assets/" + v.s.assets.folder + "/" + name)
}

// Here is the page's own path from the gateway's root, with its query.
func (v *View) Here() string {
	if v.R.Method != http.MethodGet {
		return v.R.URL.EscapedPath()
	}
	return v.R.URL.RequestURI()
}

// Query is a value of the address, "" for none.
func (v *View) Query(name string) string { return v.R.URL.Query().Get(name) }

// With is the page's own address with values of its query changed: name, value, name, value; "" drops one. What says where
// in a list one is goes, unless it is given.
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

// Filtered tells whether the address narrows what is shown.
func (v *View) Filtered() bool {
	for name, values := range v.R.URL.Query() {
		if !slices.Contains([]string{"after", "done", "format", "sort", "as"}, name) && strings.Join(values, "") != "" {
			return true
		}
	}
	return false
}

// Form is a value of the form that was sent, "" for none. Sent tells whether one was.
func (v *View) Form(name string) string { return strings.TrimSpace(v.form.Get(name)) }

// Sent tells whether the page answers a form.
func (v *View) Sent() bool { return v.form != nil }

// Field is what stands in a field: what was typed, so that a refusal loses nothing, else the value.
func (v *View) Field(name string, value any) string {
	if v.Problem != nil && v.form != nil {
		return v.form.Get(name)
	}
	if value == nil {
		return ""
	}
	return fmt.Sprint(value)
}

// Checked is Field for a box.
func (v *View) Checked(name, word string, value bool) bool {
	if v.Problem != nil && v.form != nil {
		return slices.Contains(v.form[name], word)
	}
	return value
}

// Wrong is what is wrong with a field, "" for nothing.
func (v *View) Wrong(name string) string {
	if v.Problem != nil && (v.Problem.Param == name || strings.HasPrefix(v.Problem.Param, name+".") || strings.HasPrefix(v.Problem.Param, name+"[")) {
		return v.Problem.Message
	}
	return ""
}

// Once is a word that lets a form be sent once.
func (v *View) Once() string { return randomWord() }

// Done is the key of the sentence that says what a form has done, "" for none.
func (v *View) Done() string {
	key := "done." + v.Query("done")
	if v.s.words.has(key) {
		return key
	}
	return ""
}

// May tells whether who has signed in may change things that operators change.
func (v *View) May() bool { return v.Who.Role == Operator }

// Staff tells operators and viewers from holders.
func (v *View) Staff() bool { return v.Who.Role == Operator || v.Who.Role == Viewer }

// Money writes an amount, with the currency where there is one.
func (v *View) Money(amount any) string {
	text := money(amount)
	if text == "" || v.s.o.Currency == "" {
		return text
	}
	return text + " " + v.s.o.Currency
}

// money writes an amount with two to six digits behind the point.
func money(amount any) string {
	var f float64
	switch a := amount.(type) {
	case nil:
		return ""
	case *float64:
		if a == nil {
			return ""
		}
		f = *a
	case float64:
		f = a
	case int:
		f = float64(a)
	default:
		return fmt.Sprint(amount)
	}
	digits := 2
	for limit := 1.0; digits < 6 && f != 0 && f < limit && f > -limit; digits++ {
		limit /= 10
	}
	whole, rest, _ := strings.Cut(strconv.FormatFloat(f, 'f', digits, 64), ".")
	return group(whole) + "." + rest
}

// group puts a comma between thousands.
func group(whole string) string {
	sign := ""
	if strings.HasPrefix(whole, "-") {
		sign, whole = "-", whole[1:]
	}
	for i := len(whole) - 3; i > 0; i -= 3 {
		whole = whole[:i] + "," + whole[i:]
	}
	return sign + whole
}

// Number writes a whole number.
func (v *View) Number(n any) string { return group(fmt.Sprint(n)) }

// Ago is a moment for <time>; the browser writes it in its own zone.
func (v *View) Ago(t time.Time) template.HTMLAttr {
	return template.HTMLAttr(`datetime="` + t.UTC().Format(time.RFC3339) + `"`) //nolint:gosec // digits and letters of a format
}

// Nav are the pages that the frame leads to, for who has signed in.
func (v *View) Nav() []NavEntry {
	var list []NavEntry
	for i := range v.s.pages {
		p := &v.s.pages[i]
		if p.nav == "" || !p.admits(v.Who.Role) {
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

// redirect leads the browser to a path of the gateway after a form.
func (v *View) redirect(path string) {
	v.W.Header().Set("Location", v.Link(path))
	v.W.WriteHeader(http.StatusSeeOther)
}
