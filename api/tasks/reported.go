package tasks

import (
	"bytes"
	"net/http"
	"slices"
	"strings"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/sse"
)

// maxReported bounds an event that is searched for a failure, in bytes, maxFailure a document's failure, and maxWord the words of its kind.
const (
	maxReported = 1 << 20
	maxFailure  = 64 << 10
	maxWord     = 64
)

// Reported finds the failure that a background call's answer reports with a status 2xx: in an event, or in a response's status.
type Reported struct {
	http.ResponseWriter

	status   int
	failure  *providers.VideoFailure
	document rawjson.Editor // finds what look reads of an answer that is no stream
}

// Unwrap lets http.ResponseController reach the writer.
func (w *Reported) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *Reported) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. Events come whole.
func (w *Reported) Write(p []byte) (int, error) {
	switch kind := w.Header().Get("Content-Type"); {
	case w.status/100 != 2: // it is a failure anyway
	case strings.HasPrefix(kind, "text/event-stream"):
		if len(p) <= maxReported && bytes.Contains(p, []byte(`"error"`)) {
			_ = sse.Each(bytes.NewReader(p), func(event sse.Event) { w.look(event.Data) }) // it is in memory
		}
	case strings.HasPrefix(kind, "application/json"):
		w.document.Keep = map[string]int{"error": maxFailure, "type": maxWord, "object": maxWord, "status": maxWord}
		_, _ = w.document.Write(p) // it has no writer that may fail
	}
	return w.ResponseWriter.Write(p)
}

// Failure returns the failure once the answer has ended, nil for none.
func (w *Reported) Failure() *providers.VideoFailure {
	if w.failure == nil {
		w.look(w.document.Kept())
	}
	return w.failure
}

// look searches an event, or what is kept of another answer.
func (w *Reported) look(document []byte) {
	if !rawjson.Valid(document) {
		return
	}
	value := rawjson.Trim(document)
	if response := value.Get("response"); response.IsObject() {
		value = response
	}
	failed := value.Get("error")
	switch {
	case failed.IsObject():
	case value.Get("type").Text().Is("error"): // an event of Responses has its members flat
		failed = value
	case value.Get("object").Text().Is("response") && value.Get("status").Text().Is("failed"):
		failed = rawjson.Value("{}")
	default:
		return
	}
	w.failure = activities.FailureOf(slices.Concat([]byte(`{"error":`), failed, []byte("}")), nil)
}
