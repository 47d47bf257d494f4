package console

import (
	"bytes"
	"cmp"
	"compress/gzip"
	"embed"
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
	"modelrelay/storage"
)

// page is one kind of page. build/console-page.md of the manual has the steps for a new one.
type page struct {
	// name is of its template, pages/<name>.html; its title is the word title.<name>.
	name string
	// path is below Root as http.ServeMux has it: "/tokens/{token}".
	path string
	// roles may open it; for others there is nothing.
	roles []Role
	// nav is the word nav.<nav> of its entry in the navigation, "" for none; under is the entry of the page above; key opens it, after a g.
	nav, under, key string
	// scripts are modules next to app.js, by their names.
	scripts []string
	// show reads what the page shows. A refusal is shown in the frame.
	show func(v *View) (any, error)
	// csv writes the page's table, nil for none: ?format=csv
	csv func(data any) *Table
	// acts do what its forms ask for, by the value of their field "do".
	acts map[string]act
}

// act does what a form asks for. It returns a path of the gateway to go on to, or data for the page, which is then the answer and nowhere
// else: that is for secrets that are shown once. A refusal shows the page again, with what was typed.
type act struct {
	roles []Role
	do    func(v *View) (to string, data any, err error)
	// most is what its form may send in bytes; 0 is maxForm.
	most int64
}

// mostFrom is what a form of the page may send in bytes when it comes from a role, and whether that role has any form here.
// It is known before the body is read: a role with few rights must not send much.
func (p *page) mostFrom(role Role) (most int64, found bool) {
	for _, a := range p.acts {
		if slices.Contains(a.roles, role) {
			most, found = max(most, cmp.Or(a.most, maxForm)), true
		}
	}
	return most, found
}

// formMargin is for what a browser writes around the fields of a form.
const formMargin = 4 << 10

func staff() []Role     { return []Role{Operator, Viewer} }
func everybody() []Role { return []Role{Operator, Viewer, Holder} }

func (p *page) admits(role Role) bool { return slices.Contains(p.roles, role) }

// holderHome is the path of a holder's first page, below Root.
const holderHome = ""

// allPages are the pages in the order of the navigation.
func allPages() []page {
	return []page{
		startPage(),
		callsPage(), callPage(),
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

// templates are those of the pages by language and page. Those of a language are parsed when it is first read: they take five megabytes,
// which a process without a reader does not need.
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
		panic("console: " + err.Error()) // a pattern that is right
	}
	names, err := fs.Glob(pageFiles, "pages/*.html")
	if err != nil {
		panic("console: " + err.Error())
	}
	base := template.New("").Funcs(template.FuncMap{
		"t":    func(key string, pairs ...any) string { return w.Say(language, key, pairs...) },
		"dict": dict, "state": stateCell, "number": number, "browser": browserOf, "list": func(items ...any) []any { return items },
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

// dict makes a map for a part of a template: name, value, name, value.
func dict(pairs ...any) (map[string]any, error) {
	m := make(map[string]any, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		name, ok := pairs[i].(string)
		if !ok {
			return nil, errors.New("dict: a name is no text")
		}
		m[name] = pairs[i+1]
	}
	return m, nil
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
	err := v.R.ParseMultipartForm(most + formMargin) // all of it in memory
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
	case err == nil && data != nil: // a secret, for once
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

// failed answers with the refusal that kept a page from being made, or with a page that says nothing of a defect.
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

// render writes a page. It is made whole before the first byte is sent, so that a defect is a page of its own.
func (s *Server) render(v *View, status int, name string, data any) {
	v.Page, v.Status, v.Data = name, status, data
	page := s.templates[v.Appearance.lang]()[name]
	if page == nil {
		panic("console: no template pages/" + name + ".html")
	}
	var out bytes.Buffer
	if err := page.ExecuteTemplate(&out, "layout", v); err != nil {
		if name == "sentence" {
			panic(fmt.Sprintf("console: %v", err)) // the page of defects has one
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
	_, _ = v.W.Write(body) // a browser that is gone needs no answer
}

// Scripts are the page's modules.
func (v *View) Scripts() []string {
	if v.page == nil || v.Page != v.page.name {
		return nil
	}
	return v.page.scripts
}
