package api

import (
	_ "embed" // the page and its script
	"encoding/json"
	"fmt"
	"net/http"
	"strings"

	"github.com/go-chi/chi/v5"

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

// addDocs adds the OpenAPI document and the page that shows it.
func (s *Server) addDocs(mux chi.Router) {
	asJSON, err := json.Marshal(s.api.OpenAPI())
	if err != nil {
		panic(fmt.Sprintf("api: the openapi document does not encode: %v", err)) // it depends on nothing but this code
	}
	asYAML, err := s.api.OpenAPI().YAML()
	if err != nil {
		panic(fmt.Sprintf("api: the openapi document does not encode: %v", err))
	}
	mux.Get("/openapi.json", document("application/json", asJSON))
	mux.Get("/openapi.yaml", document("application/yaml", asYAML))
	mux.Get(rootPath, root)
	mux.Head(rootPath, root)
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

// rootPath is what people and tools open to see whether anything is there.
const rootPath = "/"

// rootLine is what it says to those that are no browser.
const rootLine = "Model Relay answers here. /docs lists the paths that there are, /readyz tells how it is.\n"

// root answers with a page for browsers and a line for others.
func root(w http.ResponseWriter, r *http.Request) {
	edge.At(w).Operation = rootPath
	w.Header().Set("Vary", "Accept")
	if !strings.Contains(r.Header.Get("Accept"), "text/html") {
		document("text/plain; charset=utf-8", []byte(rootLine))(w, r)
		return
	}
	w.Header().Set("Content-Security-Policy", docsPolicy)
	w.Header().Set("Referrer-Policy", "no-referrer")
	document("text/html; charset=utf-8", rootPage)(w, r)
}
