package tasks

import (
	"bytes"
	"net/http"
	"strings"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/sse"
)

// Rewriter makes the upstream's answer to a background call that of its task. It holds an event whole, and nothing of another answer.
type Rewriter struct {
	http.ResponseWriter

	event    func(sse.Event) []byte
	document rawjson.Editor
	status   int
}

// NewRewriter returns a Rewriter. event returns the events in place of one of the upstream's. The edits are made in the object of a 2xx
// answer, of which the values of the names in keep are kept, up to the sizes there. Other answers stay as they are.
func NewRewriter(w http.ResponseWriter, event func(sse.Event) []byte, edits []rawjson.Edit, keep map[string]int) *Rewriter {
	return &Rewriter{ResponseWriter: w, event: event, document: rawjson.Editor{To: w, Edits: edits, Keep: keep}}
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
		if w.status/100 == 2 {
			return w.document.Write(p)
		}
		return w.ResponseWriter.Write(p)
	}
	var out []byte
	sse.EachIn(bytes.Clone(p), func(event sse.Event) {
		if events := w.event(event); len(out) == 0 {
			out = events
		} else {
			out = append(out, events...)
		}
	})
	if len(out) > 0 {
		if _, err := w.ResponseWriter.Write(out); err != nil {
			return 0, err
		}
	}
	return len(p), nil
}

// Kept returns the kept values of an object, the upstream's; false if the answer is none.
func (w *Rewriter) Kept() (kept rawjson.Value, ok bool) {
	return w.document.Kept(), w.document.IsObject()
}

// Held returns the whole answer that is no stream, if the writer of the task has it in memory; else nil.
func (w *Rewriter) Held() []byte {
	if holder, ok := w.ResponseWriter.(interface{ Held() []byte }); ok {
		return holder.Held()
	}
	return nil
}
