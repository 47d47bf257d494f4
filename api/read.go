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

// openBody bounds a body in size and time before it is read. stop lifts the time limit, which would else end the
// answer too.
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
	return func() { _ = control.SetReadDeadline(time.Time{}) }, nil
}

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
	case r.Context().Err() != nil:
		return providers.AsFault(r.Context().Err())
	case errors.Is(err, os.ErrDeadlineExceeded):
		fault = providers.InvalidField("", "The request body did not arrive in time.")
	default:
		fault = providers.InvalidField("", "The request body ended early.")
	}
	fault.Err = err
	return fault
}
