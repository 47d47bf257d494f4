package api

import (
	"cmp"
	_ "embed" // the page and its script
	"encoding/json"
	"fmt"
	"net/http"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"modelrelay/api/console"
	"modelrelay/api/edge"
)

//go:embed docs/index.html
var docsPage []byte

//go:embed docs/root.html
var rootPage []byte

//go:embed docs/rapidoc-min.js
var docsScript []byte

// docsPolicy lets the page load nothing that this server does not serve. The renderer puts style elements into its
// shadow tree, hence the inline styles.
const docsPolicy = "default-src 'none'; script-src 'self'; style-src 'unsafe-inline'; img-src 'self' data:; " +
	"connect-src 'self'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'"

// addDocs adds the OpenAPI document, which is encoded when somebody first asks for it, and the page that shows it.
func (s *Server) addDocs(mux chi.Router) {
	encoded := func(contentType string, encode func() ([]byte, error)) http.HandlerFunc {
		doc := sync.OnceValue(func() []byte {
			doc, err := encode()
			if err != nil {
				panic(fmt.Sprintf("api: the openapi document does not encode: %v", err)) // it depends on nothing but this code
			}
			return doc
		})
		return func(w http.ResponseWriter, r *http.Request) { document(contentType, doc())(w, r) }
	}
	mux.Get("/openapi.json", encoded("application/json", func() ([]byte, error) { return json.Marshal(s.api.OpenAPI()) }))
	mux.Get("/openapi.yaml", encoded("application/yaml", s.api.OpenAPI().YAML))
	mux.Get("/docs", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Content-Security-Policy", docsPolicy)
		w.Header().Set("Referrer-Policy", "no-referrer")
		document("text/html; charset=utf-8", docsPage)(w, r)
	})
	mux.Get("/docs/rapidoc-min.js", func(w http.ResponseWriter, r *http.Request) {
		w.Header().Set("Cache-Control", "public, max-age=3600")
		document("text/javascript; charset=utf-8", docsScript)(w, r)
	})
}

// consoleRoot is the folder of the console's paths.
const consoleRoot = console.Root

// addConsole adds the pages of a browser, which have the landing page too. Who is no browser finds what there is without
// them.
func (s *Server) addConsole(mux chi.Router, pages http.Handler) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		pages.ServeHTTP(w, r)
		operation := cmp.Or(operationOf(r.Pattern), consoleRoot)
		if operation == consoleRoot+"/assets/" { // parts of pages, whose own line is enough
			operation = edge.Probe
		}
		edge.At(w).Operation = operation
	}
	mux.HandleFunc(consoleRoot, serve)
	mux.HandleFunc(consoleRoot+"/*", serve)
	addRoot(mux, http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !forBrowser(r) {
			root(w, r)
			return
		}
		w.Header().Set("Vary", "Accept, Cookie, Accept-Language")
		pages.ServeHTTP(w, r)
		edge.At(w).Operation = rootPath
	}))
}

// operationOf is the path of a pattern that may begin with a method.
func operationOf(pattern string) string {
	_, path, found := strings.Cut(pattern, " ")
	if !found {
		return pattern
	}
	return path
}

func addRoot(mux chi.Router, serve http.Handler) {
	mux.Method(http.MethodGet, rootPath, serve)
	mux.Method(http.MethodHead, rootPath, serve)
}

// forBrowser tells whether a page is wanted.
func forBrowser(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// rootPath is what people and tools open to see whether anything is there.
const rootPath = "/"

// rootLine is what it says to those that are no browser.
const rootLine = "Model Relay answers here. /docs lists the paths that there are, /readyz tells how it is.\n"

// root answers with a page for browsers and a line for others.
func root(w http.ResponseWriter, r *http.Request) {
	edge.At(w).Operation = rootPath
	w.Header().Set("Vary", "Accept")
	if !forBrowser(r) {
		document("text/plain; charset=utf-8", []byte(rootLine))(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy", docsPolicy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	document("text/html; charset=utf-8", rootPage)(w, r)
}
