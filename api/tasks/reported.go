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

// Reported finds the failure in a background call's answer with a status 2xx: in an event, or in the status of a response.
type Reported struct {
	http.ResponseWriter

	status   int
	failure  *providers.VideoFailure
	document rawjson.Editor // extracts the members that search reads from an answer that is not a stream
}

// Unwrap gives http.ResponseController access to the writer.
func (w *Reported) Unwrap() http.ResponseWriter { return w.ResponseWriter }

// WriteHeader implements http.ResponseWriter.
func (w *Reported) WriteHeader(status int) {
	w.status = status
	w.ResponseWriter.WriteHeader(status)
}

// Write implements http.ResponseWriter. Each call has whole events.
func (w *Reported) Write(p []byte) (int, error) {
	switch kind := w.Header().Get("Content-Type"); {
	case w.status/100 != 2: // the status is a failure
	case strings.HasPrefix(kind, "text/event-stream"):
		if len(p) <= maxReported && bytes.Contains(p, []byte(`"error"`)) {
			_ = sse.Each(bytes.NewReader(p), func(event sse.Event) { w.search(event.Data) }) // reading memory never fails
		}
	case strings.HasPrefix(kind, "application/json"):
		w.document.Keep = map[string]int{"error": maxFailure, "type": maxWord, "object": maxWord, "status": maxWord}
		_, _ = w.document.Write(p) // an Editor without a writer never fails
	}
	return w.ResponseWriter.Write(p)
}

// Failure returns the failure after the end of the answer, nil for none.
func (w *Reported) Failure() *providers.VideoFailure {
	if w.failure == nil {
		w.search(w.document.Kept())
	}
	return w.failure
}

// search searches an event, or the extracted members of another answer.
func (w *Reported) search(document []byte) {
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
	case value.Get("type").Text().Is("error"): // an event of Responses has flat members
		failed = value
	case value.Get("object").Text().Is("response") && value.Get("status").Text().Is("failed"):
		failed = rawjson.Value("{}")
	default:
		return
	}
	w.failure = activities.FailureOf(slices.Concat([]byte(`{"error":`), failed, []byte("}")), nil)
}
