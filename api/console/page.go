package console

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
	"encoding/json"
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"

	"modelrelay/api/console/assets"
	"modelrelay/api/console/words"
	"modelrelay/api/edge"
	"modelrelay/storage"
)

// page is one kind of page. build/console-page.md of the manual lists the steps for a new one.
type page struct {
	// name is the name of the template, pages/<name>.html. The title is the text title.<name>.
	name string
	// path is below Root, in the syntax of http.ServeMux: "/tokens/{token}".
	path string
	// roles may open the page; other roles get 404.
	roles []edge.Role
	// nav is the key nav.<nav> of the navigation entry, "" for none. under is the entry of the parent page. key is the shortcut after g.
	nav, under, key string
	// scripts are the names of modules in addition to app.js.
	scripts []string
	// show reads the page's data. The page shows a refusal in the frame.
	show func(v *View) (any, error)
	// csv returns the page's table for ?format=csv; nil: the page has none.
	csv func(data any) *Table
	// acts perform the page's forms, by the value of the field "do".
	acts map[string]act
}

// act performs a form. It returns a path of the gateway to redirect to. Or it returns data for the page in this answer, so that secrets are
// shown only once. A refusal shows the page again with the typed values.
type act struct {
	roles []edge.Role
	do    func(v *View) (to string, data any, err error)
	// most is the maximum size of the form in bytes; 0 is maxForm.
	most int64
}

// mostFrom returns the maximum size of a form of the page from a role in bytes, and whether the role has a form here. It is known before
// the body is read, so a role with few rights cannot send much.
func (p *page) mostFrom(role edge.Role) (most int64, found bool) {
	for _, a := range p.acts {
		if slices.Contains(a.roles, role) {
			most, found = max(most, cmp.Or(a.most, maxForm)), true
		}
	}
	return most, found
}

// formMargin is for the multipart syntax around the fields of a form.
const formMargin = 4 << 10

func staff() []edge.Role    { return []edge.Role{Operator, Viewer} }
func allRoles() []edge.Role { return []edge.Role{Operator, Viewer, Holder} }

func (p *page) admits(role edge.Role) bool { return slices.Contains(p.roles, role) }

// allPages returns the pages in the order of the navigation.
func allPages() []page {
	return []page{
		startPage(),
		callsPage(),
		{name: "call", path: "/calls/{id}", roles: allRoles(), under: "calls", show: showCall},
		tasksPage(), taskPage(),
		tokensPage(), newTokenPage(), tokenPage(),
		channelsPage(), channelPage(), modelsPage(),
		usagePage(),
		tryPage(),
		auditPage(), setupPage(),
		youPage(), findPage(),
	}
}

//go:embed all:pages
var pageFiles embed.FS

// templates are the templates by language and page. A language is parsed at its first use: its templates take five megabytes, which a
// process without readers does not need.
type templates map[string]func() map[string]*template.Template

func newTemplates(w words.Texts) templates {
	all := make(templates)
	for _, language := range words.Languages() {
		all[language] = sync.OnceValue(func() map[string]*template.Template { return parseTemplates(w, language) })
	}
	return all
}

// parseTemplates parses every page of a language with the layout and the parts (pages/_*.html).
func parseTemplates(w words.Texts, language string) map[string]*template.Template {
	parts, err := fs.Glob(pageFiles, "pages/_*.html")
	if err != nil {
		panic("console: " + err.Error()) // the pattern is valid
	}
	names, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		panic("console: " + err.Error())
	}
	base := template.New("").Funcs(template.FuncMap{
		"t":    func(key string, pairs ...any) string { return w.Text(language, key, pairs...) },
		"dict": dict, "state": stateCell, "number": number, "browser": browserOf, "list": func(items ...any) []any { return items },
		"quoted": quoted, "shell": shell, "lower": strings.ToLower, "join": strings.Join, "json": encoded,
	})
	base = template.Must(base.ParseFS(pageFiles, parts...))
	pages := make(map[string]*template.Template)
	for _, file := range names {
		name := strings.TrimSuffix(path.Base(file), ".html")
		if !strings.HasPrefix(name, "_") {
			pages[name] = template.Must(template.Must(base.Clone()).ParseFS(pageFiles, file))
		}
	}
	return pages
}

// encoded returns JSON as a text, which the templates escape.
func encoded(value any) (string, error) {
	raw, err := json.Marshal(value)
	return string(raw), err
}

// dict returns a map for a part of a template: name, value, name, value.
func dict(pairs ...any) map[string]any {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		m[fmt.Sprint(pairs[i])] = pairs[i+1]
	}
	return m
}

func (s *Server) show(v *View, p page) {
	v.page = &p
	if !p.admits(v.User.Role) {
		s.fail(v, http.StatusNotFound, "refused.nothing")
		return
	}
	data, err := p.show(v)
	if err != nil {
		s.failed(v, err)
		return
	}
	csv, status := p.csv != nil && v.Query("format") == "csv", http.StatusOK
	switch {
	case csv && v.Away != nil:
		s.refused(v, v.Away)
		return
	case csv:
		s.answerCSV(v, p.name, p.csv(data))
		return
	case v.Away != nil:
		status = v.Away.Status
	}
	s.render(v, status, p.name, data)
}

func (s *Server) act(v *View, p page) {
	v.page = &p
	if !p.admits(v.User.Role) {
		s.fail(v, http.StatusNotFound, "refused.nothing")
		return
	}
	most, mayAct := p.mostFrom(v.User.Role)
	if !mayAct {
		s.fail(v, http.StatusForbidden, "refused.role")
		return
	}
	v.R.Body = http.MaxBytesReader(v.W, v.R.Body, most+formMargin)
	err := v.R.ParseMultipartForm(most + formMargin) // all in memory
	if err != nil && !errors.Is(err, http.ErrNotMultipart) {
		s.fail(v, http.StatusBadRequest, "refused.form")
		return
	}
	v.Form.values = v.R.PostForm //nolint:forbidigo // a request's form, not the client's function
	a, ok := p.acts[v.Form.values.Get("do")]
	switch {
	case !ok:
		s.fail(v, http.StatusNotFound, "refused.nothing")
		return
	case !slices.Contains(a.roles, v.User.Role):
		s.fail(v, http.StatusForbidden, "refused.role")
		return
	}
	if once := v.Form.values.Get("once"); once != "" {
		first, err := s.o.Sessions.Once(v.R.Context(), v.User.Kind, v.User.Owner, cut(once, 64))
		if err != nil {
			s.fail(v, http.StatusServiceUnavailable, "session.away")
			return
		}
		if !first {
			s.fail(v, http.StatusConflict, "refused.twice")
			return
		}
	}
	to, data, err := a.do(v)
	status := http.StatusOK
	switch problem := v.problem(err); {
	case err == nil && to != "":
		v.redirect(to)
		return
	case err == nil && (v.Ask != nil || v.Results != nil):
		if data, err = p.show(v); err != nil {
			s.failed(v, err)
			return
		}
	case err == nil && data != nil: // a secret, which is shown once
	case err == nil:
		v.redirect(v.R.URL.EscapedPath())
		return
	case problem != nil:
		v.Problem, v.Form.problem, status = problem, problem, problem.Status
		if data, err = p.show(v); err != nil {
			s.failed(v, err)
			return
		}
	default:
		s.failed(v, err)
		return
	}
	s.render(v, status, p.name, data)
}

// failed answers with the failure of a page, or with a page without details for a defect.
func (s *Server) failed(v *View, err error) {
	switch problem := v.problem(err); {
	case errors.Is(err, storage.ErrUnavailable):
		s.fail(v, http.StatusServiceUnavailable, "session.away")
	case problem != nil:
		s.refused(v, problem)
	default:
		s.o.Log.ErrorContext(v.R.Context(), "a page of the console failed", "page", v.R.Pattern, "error", err.Error())
		s.fail(v, http.StatusInternalServerError, "refused.defect")
	}
}

func (s *Server) refused(v *View, problem *Problem) {
	v.Problem = problem
	s.render(v, problem.Status, "problem", problem)
}

// render writes a page. It executes the whole template before it sends a byte, so that a defect gets its own page.
func (s *Server) render(v *View, status int, name string, data any) {
	v.Page, v.Data = name, data
	page := s.templates[v.Appearance.lang]()[name]
	if page == nil {
		panic("console: no template pages/" + name + ".html")
	}
	var out bytes.Buffer
	if err := page.ExecuteTemplate(&out, "layout", v); err != nil {
		if name == "sentence" {
			panic(fmt.Sprintf("console: %v", err)) // the page for defects is defective
		}
		s.o.Log.ErrorContext(v.R.Context(), "a page of the console was not made", "page", name, "error", err.Error())
		s.fail(v, http.StatusInternalServerError, "refused.defect")
		return
	}
	body := out.Bytes()
	h := v.W.Header()
	h.Set("Content-Type", "text/html; charset=utf-8")
	if strings.Contains(v.R.Header.Get("Accept-Encoding"), "gzip") {
		h.Set("Content-Encoding", "gzip")
		h.Set("Vary", h.Get("Vary")+", Accept-Encoding")
		body = assets.Pack(body, gzip.BestSpeed)
	}
	h.Set("Content-Length", strconv.Itoa(len(body)))
	v.W.WriteHeader(status)
	_, _ = v.W.Write(body) // the browser may have left
}

// Scripts returns the page's modules.
func (v *View) Scripts() []string {
	if v.page == nil || v.Page != v.page.name {
		return nil
	}
	return v.page.scripts
}
