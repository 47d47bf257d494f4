// Package inprocess calls the API inside the process, on behalf of a browser's request or of a command. It knows no page and no
// session: the context that its caller makes has the operator or the token that a call acts for.
package inprocess

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
)

// NewRequest makes a request to the API because of a browser's request. It has nothing of the browser's own but its address and its
// user agent. body is JSON unless the caller changes its type, nil for none.
func NewRequest(ctx context.Context, from *http.Request, method, path string, body io.Reader) (*http.Request, error) {
	sent := body
	if body == nil {
		sent = http.NoBody // a handler may read what a server gives it
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

// Pass copies the headers of these names, which are in canonical form.
func Pass(to, from http.Header, names ...string) {
	for _, name := range names {
		if values := from.Values(name); len(values) > 0 {
			to[name] = values
		}
	}
}

// Segment is a text as one segment of a path.
func Segment(text string) string {
	if text == "." || text == ".." { // which a server would take for folders
		return strings.ReplaceAll(text, ".", "%2E")
	}
	return url.PathEscape(text)
}
