package api

import (
	"cmp"
	_ "embed" // the landing page
	"encoding/json"
	"fmt"
	"io/fs"
	"net/http"
	"strings"
	"sync"

	"github.com/go-chi/chi/v5"

	"modelrelay/api/console"
	"modelrelay/api/docs"
	"modelrelay/api/edge"
)

//go:embed root.html
var rootPage []byte

// addDocs adds the OpenAPI document, which is encoded at the first request, and the manual.
func (s *Server) addDocs(mux chi.Router, manual fs.FS) {
	encoded := func(contentType string, encode func() ([]byte, error)) http.HandlerFunc {
		doc := sync.OnceValue(func() []byte {
			doc, err := encode()
			if err != nil {
				panic(fmt.Sprintf("api: the openapi document does not encode: %v", err)) // its input is only this code
			}
			return doc
		})
		return func(w http.ResponseWriter, r *http.Request) { document(contentType, doc())(w, r) }
	}
	mux.Get("/openapi.json", encoded("application/json", func() ([]byte, error) { return json.Marshal(s.api.OpenAPI()) }))
	mux.Get("/openapi.yaml", encoded("application/yaml", s.api.OpenAPI().YAML))
	docs.Routes(mux, manual, s.edge.Origin)
}

const consoleRoot = console.Root

// addConsole adds the pages of the console, and the landing page.
func (s *Server) addConsole(mux chi.Router, pages http.Handler) {
	serve := func(w http.ResponseWriter, r *http.Request) {
		pages.ServeHTTP(w, r)
		operation := cmp.Or(r.Pattern[strings.Index(r.Pattern, " ")+1:], consoleRoot)
		if operation == consoleRoot+"/assets/" { // the page's own log line is enough
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

func addRoot(mux chi.Router, serve http.Handler) {
	mux.Method(http.MethodGet, rootPath, serve)
	mux.Method(http.MethodHead, rootPath, serve)
}

func forBrowser(r *http.Request) bool { return strings.Contains(r.Header.Get("Accept"), "text/html") }

// rootPath is the path of the landing page, with which people and tools check that the gateway runs.
const rootPath = "/"

const rootLine = "Model Relay. /docs/ is the manual, /llms.txt its index, /docs/api the API reference, /readyz the health.\n"

func root(w http.ResponseWriter, r *http.Request) {
	edge.At(w).Operation = rootPath
	w.Header().Set("Vary", "Accept")
	if !forBrowser(r) {
		document("text/plain; charset=utf-8", []byte(rootLine))(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy", docs.Policy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	document("text/html; charset=utf-8", rootPage)(w, r)
}
