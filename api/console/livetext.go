package console

import (
	"errors"
	"io"
	"net/http"
	"strings"

	"modelrelay/api/console/inprocess"
	"modelrelay/api/operator"
)

// taskText streams the text of a call's answer as its events come, from the first. It ends with the call, or after what a page shows.
func (s *Server) taskText(v *View) {
	id, user := v.R.PathValue("id"), v.User
	if user.Role != Holder {
		story, err := s.o.Operator.Task(v.R.Context(), v.actor(), &operator.TaskName{ID: id})
		if err != nil {
			s.failed(v, err)
			return
		}
		v.note(v.User, watchWord, id, "")
		user = v.readerOf(story.Token)
	}
	r, err := v.request(user, "/v1/tasks/"+inprocess.Segment(id)+"/events", nil)
	if err != nil {
		s.fail(v, http.StatusNotFound, "refused.nothing")
		return
	}
	s.o.API.ServeHTTP(&textWriter{to: v.W, header: make(http.Header)}, r)
}

// errShown ends a text of which a page shows no more.
var errShown = errors.New("the page shows no more of the answer")

// textWriter writes the text of the events that the API writes to it. It implements http.ResponseWriter.
type textWriter struct {
	to     http.ResponseWriter
	header http.Header
	status int
	answer callAnswer
	size   int
}

// Header returns the header of the events.
func (w *textWriter) Header() http.Header { return w.header }

// WriteHeader begins the text.
func (w *textWriter) WriteHeader(status int) {
	if w.status != 0 || status < http.StatusOK {
		return
	}
	w.status = status
	w.to.Header().Set("Content-Type", "text/plain; charset=utf-8")
	w.to.Header().Set("X-Accel-Buffering", "no") // as that of events
	w.to.WriteHeader(status)
}

// Write writes the text of an event. Events come whole; the body of an error has none.
func (w *textWriter) Write(event []byte) (int, error) {
	w.WriteHeader(http.StatusOK)
	if w.status != http.StatusOK {
		return len(event), nil
	}
	var text strings.Builder
	w.answer.events(event, &text)
	if w.size += text.Len(); w.size > answerText {
		return 0, errShown
	}
	if _, err := io.WriteString(w.to, text.String()); err != nil {
		return 0, err
	}
	return len(event), nil
}

// FlushError sends what was written.
func (w *textWriter) FlushError() error { return http.NewResponseController(w.to).Flush() }

// Unwrap lets http.ResponseController reach the connection.
func (w *textWriter) Unwrap() http.ResponseWriter { return w.to }
