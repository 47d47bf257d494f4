package api

import (
	"bytes"
	"errors"
	"io"
	"net/http"
	"os"
	"strings"
	"time"

	"modelrelay/providers"
)

const (
	// maxUnread bounds the wait for a body that is not read, or not to its end.
	maxUnread = 10 * time.Second
	// maxTrailing is how much may follow what was read of a body, such as the end of a form, in bytes.
	maxTrailing = 4 << 10
)

// readBody reads a whole request body into one buffer of its own size. The error is a fault: TooLarge past the limit,
// at once where Content-Length says so, Invalid when the body is encoded or does not arrive in full.
func (s *Server) readBody(x *exchange, r *http.Request) ([]byte, error) {
	stop, err := s.openBody(x, r)
	if err != nil {
		return nil, err
	}
	defer stop()
	if r.ContentLength >= 0 {
		raw := make([]byte, r.ContentLength)
		if _, err := io.ReadFull(r.Body, raw); err != nil {
			return nil, readFault(r, err)
		}
		return raw, nil
	}
	var buf bytes.Buffer
	if _, err := buf.ReadFrom(r.Body); err != nil {
		return nil, readFault(r, err)
	}
	return buf.Bytes(), nil
}

// openBody bounds a body in size and time before it is read. stop follows the reading: it lifts the time limit of a body
// that came to its end, where it would cut off the answer, and shortens that of any other.
func (s *Server) openBody(x *exchange, r *http.Request) (stop func(), err error) {
	if encoding := r.Header.Get("Content-Encoding"); encoding != "" && !strings.EqualFold(encoding, "identity") {
		return nil, providers.InvalidField("", "The request body must not be compressed.")
	}
	if r.ContentLength > s.maxBody {
		return nil, tooLarge()
	}
	r.Body = http.MaxBytesReader(x.ResponseWriter, r.Body, s.maxBody)
	control := http.NewResponseController(x.ResponseWriter)
	_ = control.SetReadDeadline(time.Now().Add(s.bodyTimeout)) // a connection without deadlines has none
	return func() {
		_ = control.SetReadDeadline(time.Now().Add(s.unreadTimeout()))
		if _, err := io.CopyN(io.Discard, r.Body, maxTrailing); errors.Is(err, io.EOF) {
			_ = control.SetReadDeadline(time.Time{})
		}
	}, nil
}

// unreadTimeout is how long the rest of a body that nobody wants may keep its answer waiting: net/http reads on before
// it sends one, and would do so for ever.
func (s *Server) unreadTimeout() time.Duration { return min(s.bodyTimeout, maxUnread) }

func tooLarge() *providers.Fault {
	return providers.Faultf(providers.TooLarge, "The request body is too large.")
}

// readFault says why a body did not arrive.
func readFault(r *http.Request, err error) *providers.Fault {
	var fault *providers.Fault
	var limit *http.MaxBytesError
	switch {
	case errors.As(err, &fault):
		return fault
	case errors.As(err, &limit):
		return tooLarge()
	case errors.Is(err, os.ErrDeadlineExceeded): // net/http ends the request's context with it
		fault = providers.InvalidField("", "The request body did not arrive in time.")
	case r.Context().Err() != nil:
		return providers.AsFault(r.Context().Err())
	default:
		fault = providers.InvalidField("", "The request body ended early.")
	}
	fault.Err = err
	return fault
}
