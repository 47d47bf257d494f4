package edge

import (
	"net/http"
	"strings"

	"github.com/rs/cors"
)

// corsMaxAge is how long a browser may use the answer of a preflight, in seconds. No browser uses one for more than two hours.
const corsMaxAge = 7200

// CORS permits pages of Options.Origins to read the answers of the API, with its faults, and answers the preflights of their browsers
// (OPTIONS, without a token). Browsers add no cookies: a page sends its token. Without origins CORS returns next.
func (e *Edge) CORS(next http.Handler) http.Handler {
	if len(e.options.Origins) == 0 {
		return next
	}
	shared := cors.New(cors.Options{
		AllowedOrigins: e.options.Origins, AllowedHeaders: []string{"*"}, MaxAge: corsMaxAge,
		AllowedMethods: []string{http.MethodGet, http.MethodHead, http.MethodPost, http.MethodPut, http.MethodPatch, http.MethodDelete},
		ExposedHeaders: []string{ // in addition to those that every page may read
			"X-Request-Id", "Request-Id", "Retry-After", "X-Should-Retry", "Location", "Preference-Applied", "Content-Location",
			"X-Ratelimit-Limit-Requests", "X-Ratelimit-Remaining-Requests", "X-Ratelimit-Reset-Requests",
			"X-Ratelimit-Limit-Tokens", "X-Ratelimit-Remaining-Tokens", "X-Ratelimit-Reset-Tokens",
			"Anthropic-Ratelimit-Requests-Limit", "Anthropic-Ratelimit-Requests-Remaining", "Anthropic-Ratelimit-Requests-Reset",
			"Anthropic-Ratelimit-Tokens-Limit", "Anthropic-Ratelimit-Tokens-Remaining", "Anthropic-Ratelimit-Tokens-Reset",
			"X-Relay-Translated", "X-Relay-Dropped", "X-Relay-Changed", "Content-Range", "Content-Disposition", "Etag",
		},
	}).Handler(next)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") && !strings.HasPrefix(r.URL.Path, "/v1beta/") {
			next.ServeHTTP(w, r)
			return
		}
		if r.Method == http.MethodOptions && r.Header.Get("Access-Control-Request-Method") != "" {
			At(w).Operation = Probe
		}
		shared.ServeHTTP(w, r)
	})
}
