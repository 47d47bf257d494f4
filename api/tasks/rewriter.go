package tasks

import (
	"bytes"
	"net/http"
	"strings"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/sse"
)

// maxDocument bounds a document that is rewritten, in bytes. It is held whole, as an event is.
const maxDocument = sse.MaxEvent

// Rewriter makes the upstream's answer to a background call that of its task. It implements http.ResponseWriter for the worker. End must be
// called after the answer.
type Rewriter struct {
	http.ResponseWriter

	event    func(sse.Event) []byte
	document func(rawjson.Value) []byte
	status   int
	body     bytes.Buffer // of an answer that is no stream
}

// NewRewriter returns a Rewriter. event returns the events in place of one of the upstream's, document the object in place of that of a 2xx
// answer. Other answers stay as they are.
func NewRewriter(w http.ResponseWriter, event func(sse.Event) []byte, document func(rawjson.Value) []byte) *Rewriter {
	return &Rewriter{ResponseWriter: w, event: event, document: document}
}

// WriteHeader implements http.ResponseWriter.
func (w *Rewriter) WriteHeader(status int) {
	if w.status == 0 && status >= http.StatusOK {
		w.status = status
	}
	w.Header().Del("Content-Length") // the body changes
	w.ResponseWriter.WriteHeader(status)
}

// Unwrap lets http.ResponseController reach the writer.
func (w *Rewriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Add excludes n bytes, which the gateway adds to an answer, from the limit of answers.
func (w *Rewriter) Add(n int) {
	if limited, ok := w.ResponseWriter.(interface{ Add(n int) }); ok {
		limited.Add(n)
	}
}

// Write implements http.ResponseWriter. Events come whole.
func (w *Rewriter) Write(p []byte) (int, error) {
	if w.status == 0 {
		w.WriteHeader(http.StatusOK)
	}
	if !strings.HasPrefix(w.Header().Get("Content-Type"), "text/event-stream") {
		if refuser, ok := w.ResponseWriter.(interface{ Refuse() error }); ok && w.body.Len()+len(p) > maxDocument {
			return 0, refuser.Refuse()
		}
		return w.body.Write(p)
	}
	var out []byte
	err := sse.Each(bytes.NewReader(p), func(event sse.Event) { out = append(out, w.event(event)...) })
	if err == nil && len(out) > 0 {
		_, err = w.ResponseWriter.Write(out)
	}
	if err != nil {
		return 0, err
	}
	return len(p), nil
}

// End writes an answer that is no stream.
func (w *Rewriter) End() {
	if w.body.Len() == 0 {
		return
	}
	document := rawjson.Trim(w.body.Bytes())
	if w.status/100 == 2 && document.IsObject() {
		document = w.document(document)
	}
	_, _ = w.ResponseWriter.Write(document) // the writer of a task records its own error
}
