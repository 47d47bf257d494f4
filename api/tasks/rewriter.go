package tasks

import (
	"bytes"
	"net/http"
	"strings"

	"modelrelay/providers/rawjson"
	"modelrelay/providers/sse"
)

// Rewriter rewrites the upstream's answer to a background call as the answer of its task. It holds a whole event, but not other answers.
type Rewriter struct {
	http.ResponseWriter

	event    func(sse.Event) []byte
	document rawjson.Editor
	status   int
}

// NewRewriter returns a Rewriter. event returns the events that replace an event of the upstream. edits apply to the object of any other
// 2xx answer. Of that object, Kept returns the values of the names in keep, up to their sizes. Answers with other statuses are unchanged.
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

// Unwrap gives http.ResponseController access to the writer.
func (w *Rewriter) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// Add excludes n bytes, which the gateway adds to an answer, from the limit of answers.
func (w *Rewriter) Add(n int) {
	if limited, ok := w.ResponseWriter.(interface{ Add(n int) }); ok {
		limited.Add(n)
	}
}

// Write implements http.ResponseWriter. Each call has whole events.
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

// Kept returns the upstream's values of the kept names; false if the answer is not an object.
func (w *Rewriter) Kept() (kept rawjson.Value, ok bool) {
	return w.document.Kept(), w.document.IsObject()
}

// Held returns a whole answer that is not a stream, if the task's writer has it in memory; else nil.
func (w *Rewriter) Held() []byte {
	if holder, ok := w.ResponseWriter.(interface{ Held() []byte }); ok {
		return holder.Held()
	}
	return nil
}
