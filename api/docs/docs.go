// Package docs serves the manual and the API reference.
//
// The manual is a file system of Markdown pages. Its index.md names every page: a heading of level two begins a section, and each link in
// the section is a page. /docs/PAGE is a page in HTML, for browsers. The same address with the ending of Markdown files is its Markdown,
// for programs. /llms.txt is the index with full addresses.
package docs

import (
	"bytes"
	_ "embed" // the reference page, its script, and the frame of a page
	"errors"
	"fmt"
	"html/template"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"
	"github.com/yuin/goldmark"
	"github.com/yuin/goldmark/ast"
	"github.com/yuin/goldmark/extension"
	"github.com/yuin/goldmark/parser"
	"github.com/yuin/goldmark/text"
)

//go:embed reference.html
var reference []byte

//go:embed page.html
var frame string

//go:embed rapidoc/rapidoc-min.js
var script []byte

// Policy is the Content-Security-Policy of the pages: they load only from this server. Inline styles are allowed, because the renderer of
// the reference adds style elements to its shadow tree.
const Policy = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// Placeholder is the address of a gateway in the pages. A served page has the gateway's own address in its place.
const Placeholder = "http://127.0.0.1:8080"

const index = "index.md"

// Routes adds the pages of the manual to mux. address returns the scheme and host at which the client reaches the gateway.
func Routes(mux chi.Router, manual fs.FS, address func(*http.Request) string) {
	p := &pages{manual: manual, address: address, frame: template.Must(template.New("page").Parse(frame))}
	p.sections = sync.OnceValues(p.readSections)
	mux.Get("/docs", func(w http.ResponseWriter, r *http.Request) {
		http.Redirect(w, r, "/docs/", http.StatusMovedPermanently)
	})
	mux.Get("/docs/*", p.serve)
	mux.Get("/docs/api", func(w http.ResponseWriter, _ *http.Request) { html(w, reference) })
	mux.Get("/docs/rapidoc-min.js", func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		write(w, "text/javascript; charset=utf-8", script)
	})
	mux.Get("/llms.txt", p.serveList)
}

type pages struct {
	manual   fs.FS
	address  func(*http.Request) string
	frame    *template.Template
	sections func() ([]section, error)
	rendered sync.Map // name of a page → its HTML, rendered at the first request
}

// section is one part of the index with the pages that it links to.
type section struct {
	Title string
	Links []link
}

// link is a page of the manual: its title in the index, and its path below /docs/ without ".md".
type link struct{ Title, Path string }

// serve answers with a page: Markdown if its name ends in .md, else HTML.
func (p *pages) serve(w http.ResponseWriter, r *http.Request) {
	name := strings.TrimPrefix(r.URL.Path, "/docs/")
	raw := strings.HasSuffix(name, ".md")
	switch {
	case name == "":
		name = index
	case !raw:
		name += ".md"
	}
	source, err := p.read(name)
	if err != nil {
		http.Error(w, "The manual has no page "+path.Base(name)+". "+p.address(r)+"/docs/ lists the pages.", http.StatusNotFound)
		return
	}
	if raw {
		write(w, "text/markdown; charset=utf-8", p.addressed(source, r))
		return
	}
	page, ok := p.rendered.Load(name)
	if !ok {
		if page, err = p.render(name, source); err != nil {
			http.Error(w, "The page cannot be rendered; "+p.address(r)+"/docs/"+name+" is its source.", http.StatusInternalServerError)
			return
		}
		p.rendered.Store(name, page)
	}
	html(w, p.addressed(page.([]byte), r))
}

// serveList answers with the index for programs, in the form of https://llmstxt.org.
func (p *pages) serveList(w http.ResponseWriter, r *http.Request) {
	source, err := p.read(index)
	if err != nil {
		http.NotFound(w, r)
		return
	}
	list := bytes.ReplaceAll(source, []byte("]("), []byte("]("+Placeholder+"/docs/"))
	write(w, "text/plain; charset=utf-8", p.addressed(list, r))
}

func (p *pages) read(name string) ([]byte, error) {
	if p.manual == nil {
		return nil, errors.New("the program has no manual")
	}
	return fs.ReadFile(p.manual, name)
}

// addressed replaces the placeholder by the gateway's own address. That address may contain the client's Host header.
func (p *pages) addressed(page []byte, r *http.Request) []byte {
	return bytes.ReplaceAll(page, []byte(Placeholder), []byte(template.HTMLEscapeString(p.address(r))))
}

func (p *pages) render(name string, source []byte) ([]byte, error) {
	markdown := Markdown()
	document := markdown.Parser().Parse(text.NewReader(source))
	title := "Model Relay"
	for node := range links(document) {
		node.Destination = []byte(strings.Replace(string(node.Destination), ".md", "", 1))
	}
	if first, ok := document.FirstChild().(*ast.Heading); ok {
		title = plain(first, source)
	}
	var body, page bytes.Buffer
	if err := markdown.Renderer().Render(&body, source, document); err != nil {
		return nil, fmt.Errorf("render %s: %w", name, err)
	}
	sections, err := p.sections()
	if err != nil {
		return nil, err
	}
	err = p.frame.Execute(&page, map[string]any{
		"Title": title, "Source": "/docs/" + name, "Here": strings.TrimSuffix(name, ".md"), "Sections": sections,
		"Body": template.HTML(body.String()), //nolint:gosec // the program's own pages
	})
	return page.Bytes(), err
}

func (p *pages) readSections() ([]section, error) {
	source, err := p.read(index)
	if err != nil {
		return nil, err
	}
	var sections []section
	document := Markdown().Parser().Parse(text.NewReader(source))
	for block := document.FirstChild(); block != nil; block = block.NextSibling() {
		if heading, ok := block.(*ast.Heading); ok && heading.Level == 2 {
			sections = append(sections, section{Title: plain(heading, source)})
		}
		for node := range links(block) {
			if last := len(sections) - 1; last >= 0 {
				sections[last].Links = append(sections[last].Links,
					link{plain(node, source), strings.TrimSuffix(string(node.Destination), ".md")})
			}
		}
	}
	return sections, nil
}

// Markdown returns the dialect of the pages: GitHub's tables, and headings with the ids that GitHub gives them.
func Markdown() goldmark.Markdown {
	return goldmark.New(goldmark.WithExtensions(extension.Table), goldmark.WithParserOptions(parser.WithAutoHeadingID()))
}

// links yields the links below node that lead to pages of the manual.
func links(node ast.Node) func(yield func(*ast.Link) bool) {
	return func(yield func(*ast.Link) bool) {
		_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
			target, ok := n.(*ast.Link)
			if !entering || !ok || strings.Contains(string(target.Destination), ":") {
				return ast.WalkContinue, nil
			}
			if file, _, _ := strings.Cut(string(target.Destination), "#"); path.Ext(file) == ".md" && !yield(target) {
				return ast.WalkStop, nil
			}
			return ast.WalkContinue, nil
		})
	}
}

func plain(node ast.Node, source []byte) string {
	var words strings.Builder
	_ = ast.Walk(node, func(n ast.Node, entering bool) (ast.WalkStatus, error) {
		if piece, ok := n.(*ast.Text); ok && entering {
			words.Write(piece.Value(source))
		}
		return ast.WalkContinue, nil
	})
	return words.String()
}

func html(w http.ResponseWriter, page []byte) {
	w.Header().Set("Content-Security-Policy", Policy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	write(w, "text/html; charset=utf-8", page)
}

func write(w http.ResponseWriter, contentType string, content []byte) {
	w.Header().Set("Content-Type", contentType)
	_, _ = w.Write(content) //nolint:gosec // a page of the program with an escaped address; the client may have left
}
