package console

import (
	"bufio"
	"io"
	"net/http"
	"strings"
	"time"

	"modelrelay/api/console/inprocess"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
)

// taskText streams the text of a call's answer from the beginning, while its events arrive. It ends with the call, or at the maximum of a
// page.
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
	answer, err := v.call(user, "/v1/tasks/"+inprocess.Segment(id)+"/events", nil)
	if err != nil {
		s.failed(v, err)
		return
	}
	defer func() { _ = answer.Body.Close() }() // which ends the events
	v.W.Header().Set("Content-Type", "text/plain; charset=utf-8")
	v.W.Header().Set("X-Accel-Buffering", "no") // as for events
	v.W.WriteHeader(answer.StatusCode)
	if answer.StatusCode != http.StatusOK { // the body has no events
		return
	}
	out, events := http.NewResponseController(v.W), bufio.NewReader(answer.Body)
	for shown, size := new(callAnswer), 0; err == nil; {
		var text strings.Builder
		line, end := events.ReadBytes('\n')
		shown.events(line, &text)
		if size += text.Len(); size > answerText || end != nil {
			return
		}
		_ = out.SetWriteDeadline(time.Now().Add(edge.DefaultWriteTimeout)) // the writer of a test has no deadlines
		if _, err = io.WriteString(v.W, text.String()); err == nil {
			err = out.Flush()
		}
	}
}
