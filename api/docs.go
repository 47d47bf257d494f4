package api

import (
	_ "embed" // the page and its script
	"encoding/json"
	"fmt"
	"net/http"

	"github.com/go-chi/chi/v5"
)

//go:embed docs/index.html
var docsPage []byte

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
