package inprocess

import (
	"context"
	"errors"
	"fmt"
	"io"
	"maps"
	"net/http"
)

// Fetch reads the bytes that a GET of a path answers with, for a command. begin is called once with the answer's header, before the
// first byte, and returns what takes them. It returns how many came; the error is a *Problem where the API refuses, and then nothing began.
func (a API) Fetch(ctx context.Context, path string, header http.Header, begin func(http.Header) (io.Writer, error)) (int64, error) {
	r, err := a.Request(ctx, nil, http.MethodGet, path, nil)
	if err != nil {
		return 0, err
	}
	maps.Copy(r.Header, header)
	answer := &stream{recorder: newRecorder(), begin: begin}
	answer.serve(a.Handler, r)
	switch {
	case answer.status >= http.StatusBadRequest:
		return 0, problemOf(answer.recorder)
	case answer.err != nil:
		return answer.n, fmt.Errorf("write what %s answers: %w", path, answer.err)
	}
	return answer.n, ctx.Err()
}

// stream hands on the body of an answer as it comes, and keeps that of a refusal.
type stream struct {
	*recorder

	begin func(http.Header) (io.Writer, error)
	to    io.Writer // nil before the answer has begun
	n     int64
	err   error
}

// errCut says that the handler gave the answer up after it had begun.
var errCut = errors.New("the answer broke off")

// serve lets a handler answer. One that gives up says so by the panic that net/http knows.
func (s *stream) serve(h http.Handler, r *http.Request) {
	defer func() {
		switch cut := recover(); cut {
		case nil:
		case http.ErrAbortHandler:
			s.err = errors.Join(s.err, errCut)
		default:
			panic(cut)
		}
	}()
	h.ServeHTTP(s, r)
	s.start()
}

// start begins an answer that is no refusal.
func (s *stream) start() {
	s.WriteHeader(http.StatusOK)
	if s.status < http.StatusBadRequest && s.to == nil && s.err == nil {
		s.to, s.err = s.begin(s.header)
	}
}

// Write hands on a part of the body.
func (s *stream) Write(p []byte) (int, error) {
	s.start()
	if s.status >= http.StatusBadRequest {
		return s.recorder.Write(p)
	}
	if s.err != nil {
		return 0, s.err
	}
	n, err := s.to.Write(p)
	s.n += int64(n)
	s.err = err
	return n, err
}
