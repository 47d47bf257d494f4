package edge

import (
	"net/http"
	"slices"
	"strings"
)

// anyOrigin among the origins opens the API to the pages of every one.
const anyOrigin = "*"

// What browsers are told of the API.
const (
	corsMethods = "GET, HEAD, POST, PUT, PATCH, DELETE"
	// corsMaxAge is how long they remember it, in seconds: two hours are the most that any takes.
	corsMaxAge = "7200"
	// corsExposed are the headers of answers that a page may read beside those that are always shown to it.
	corsExposed = "X-Request-Id, Request-Id, Retry-After, X-Should-Retry, " +
		"X-Ratelimit-Limit-Requests, X-Ratelimit-Remaining-Requests, X-Ratelimit-Reset-Requests, " +
		"X-Ratelimit-Limit-Tokens, X-Ratelimit-Remaining-Tokens, X-Ratelimit-Reset-Tokens, " +
		"Anthropic-Ratelimit-Requests-Limit, Anthropic-Ratelimit-Requests-Remaining, Anthropic-Ratelimit-Requests-Reset, " +
		"Anthropic-Ratelimit-Tokens-Limit, Anthropic-Ratelimit-Tokens-Remaining, Anthropic-Ratelimit-Tokens-Reset, " +
		"X-Relay-Translated, X-Relay-Dropped, X-Relay-Changed, Content-Range, Content-Disposition, Etag"
)

// CORS lets pages of Options.Origins read what the API answers, faults included, and answers what their browsers ask
// before (OPTIONS, without a token). What a browser would add by itself, such as cookies, is never asked for: a page sends
// its token. Without origins it is next.
func (e *Edge) CORS(next http.Handler) http.Handler {
	origins := e.options.Origins
	if len(origins) == 0 {
		return next
	}
	every := slices.Contains(origins, anyOrigin)
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if !strings.HasPrefix(r.URL.Path, "/v1/") && !strings.HasPrefix(r.URL.Path, "/v1beta/") {
			next.ServeHTTP(w, r)
			return
		}
		header, origin := w.Header(), r.Header.Get("Origin")
		if !every {
			header.Add("Vary", "Origin")
		}
		switch {
		case origin == "" || !every && !slices.Contains(origins, origin):
			next.ServeHTTP(w, r)
			return
		case every:
			origin = anyOrigin
		}
		header.Set("Access-Control-Allow-Origin", origin)
		if r.Method != http.MethodOptions || r.Header.Get("Access-Control-Request-Method") == "" {
			header.Set("Access-Control-Expose-Headers", corsExposed)
			next.ServeHTTP(w, r)
			return
		}
		header.Set("Access-Control-Allow-Methods", corsMethods)
		// "*" would not stand for Authorization.
		if asked := r.Header.Get("Access-Control-Request-Headers"); isHeaderList(asked) {
			header.Set("Access-Control-Allow-Headers", asked)
		}
		header.Add("Vary", "Access-Control-Request-Headers")
		header.Set("Access-Control-Max-Age", corsMaxAge)
		At(w).Operation = Probe
		w.WriteHeader(http.StatusNoContent)
	})
}

// isHeaderList tells whether the text is names of headers with commas between.
func isHeaderList(text string) bool {
	for i := range len(text) {
		switch c := text[i]; {
		case 'a' <= c && c <= 'z', 'A' <= c && c <= 'Z', '0' <= c && c <= '9':
		case c == '-' || c == '_' || c == ',' || c == ' ':
		default:
			return false
		}
	}
	return text != ""
}
