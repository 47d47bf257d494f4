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

// maxReported bounds a document or an event that is searched for a failure, in bytes. What fails has little output.
const maxReported = 1 << 20

// Reported finds the failure that the answer to a background call reports although its status is 2xx: in an event of its stream, or in the
// status of a response. It implements http.ResponseWriter.
type Reported struct {
	http.ResponseWriter

	status   int
	failure  *providers.VideoFailure
	document []byte // an answer that is no stream, as far as it is searched
	length   int
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
	w.length += len(p)
	switch kind := w.Header().Get("Content-Type"); {
	case w.status/100 != 2: // it is a failure anyway
	case strings.HasPrefix(kind, "text/event-stream"):
		if len(p) <= maxReported && bytes.Contains(p, []byte(`"error"`)) {
			_ = sse.Each(bytes.NewReader(p), func(event sse.Event) { w.look(event.Data) }) // it is in memory
		}
	case w.length <= maxReported && strings.HasPrefix(kind, "application/json"):
		w.document = append(w.document, p...)
	}
	return w.ResponseWriter.Write(p)
}

// Failure returns the failure once the answer has ended, nil for none.
func (w *Reported) Failure() *providers.VideoFailure {
	if len(w.document) > 0 && len(w.document) == w.length {
		w.look(w.document)
	}
	return w.failure
}

// look searches an event or the whole answer.
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
