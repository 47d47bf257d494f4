// Package inprocess calls the API in this process, for a request of a browser or for a command. It must not know pages and sessions: its
// caller's context has the operator or the token of the call.
package inprocess

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// NewRequest returns a request to the API for a request of a browser. It copies only the browser's address and user agent. body is JSON
// unless the caller changes its type, nil for none.
func NewRequest(ctx context.Context, from *http.Request, method, path string, body io.Reader) (*http.Request, error) {
	sent := body
	if body == nil {
		sent = http.NoBody // handlers may read the body, as from a server
	}
	r, err := http.NewRequestWithContext(ctx, method, path, sent)
	if err != nil {
		return nil, fmt.Errorf("call %s: %w", path, err)
	}
	r.RequestURI, r.RemoteAddr, r.Host, r.TLS = path, from.RemoteAddr, from.Host, from.TLS
	Pass(r.Header, from.Header, "X-Forwarded-For", "Forwarded", "User-Agent")
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	return r, nil
}

// Pass copies the headers with the names, which are in canonical form.
func Pass(to, from http.Header, names ...string) {
	for _, name := range names {
		if values := from.Values(name); len(values) > 0 {
			to[name] = values
		}
	}
}

// Segment escapes a text as one segment of a path.
func Segment(text string) string {
	if text == "." || text == ".." { // a server would interpret them as folders
		return strings.ReplaceAll(text, ".", "%2E")
	}
	return url.PathEscape(text)
}
