// Package inprocess calls the API in this process, for a request of a browser or for a command. It must not know pages and sessions: its
// caller's context has the operator or the token of the call.
package inprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync"
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

// errCut is the error of an answer that the handler aborted after its beginning.
var errCut = errors.New("the answer ended early")

// Transport sends requests to a handler in this process. It implements http.RoundTripper.
type Transport struct {
	Handler http.Handler
	// As returns the context for the handler; nil: that of the request.
	As func(ctx context.Context) context.Context
}

// RoundTrip serves the request and returns when its answer has begun. The caller closes the body, which waits for the handler.
func (t Transport) RoundTrip(r *http.Request) (*http.Response, error) {
	out, in := io.Pipe()
	answer := &streamed{header: make(http.Header), body: in, begun: make(chan struct{})}
	served := r.WithContext(r.Context())
	if t.As != nil {
		served = r.WithContext(t.As(r.Context()))
	}
	served.RequestURI = r.URL.RequestURI()
	if served.Body == nil {
		served.Body = http.NoBody // handlers may read the body, as from a server
	}
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		defer answer.WriteHeader(http.StatusOK)
		defer func() {
			if cut := recover(); cut != nil { // http.ErrAbortHandler, or a defect
				_ = in.CloseWithError(errCut)
			}
		}()
		t.Handler.ServeHTTP(answer, served)
		_ = in.CloseWithError(r.Context().Err()) // nil: end of file
	}()
	<-answer.begun
	return &http.Response{StatusCode: answer.status, Header: answer.sent, Body: body{out, ended}, Request: r, ContentLength: -1}, nil
}

type body struct {
	*io.PipeReader

	ended <-chan struct{}
}

// Close discards the unread rest, and waits for the end of the handler.
func (b body) Close() error {
	err := b.PipeReader.Close()
	<-b.ended
	return err
}

// streamed is an answer in progress. The handler writes the body while the client reads it.
type streamed struct {
	header, sent http.Header
	status       int
	body         *io.PipeWriter
	once         sync.Once
	begun        chan struct{}
}

// Header returns the header of the answer.
func (s *streamed) Header() http.Header { return s.header }

// WriteHeader begins the answer.
func (s *streamed) WriteHeader(status int) {
	if status >= http.StatusOK {
		s.once.Do(func() {
			s.status, s.sent = status, s.header.Clone()
			close(s.begun)
		})
	}
}

// Write passes bytes of the body on.
func (s *streamed) Write(p []byte) (int, error) {
	s.WriteHeader(http.StatusOK)
	return s.body.Write(p)
}

// FlushError begins the answer: a part of the body is never kept back.
func (s *streamed) FlushError() error {
	s.WriteHeader(http.StatusOK)
	return nil
}
