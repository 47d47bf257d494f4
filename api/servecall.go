package api

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strings"

	"modelrelay/activities"
	"modelrelay/api/edge"
	"modelrelay/api/gemini"
	"modelrelay/api/openai"
	"modelrelay/api/tasks"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/tokens"
	workflowtasks "modelrelay/workflows/tasks"
)

// ServeCall serves a background call like a client's own request. It implements activities.Caller.
func (s *Server) ServeCall(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
	ctx := activities.WithCallRun(r.Context(), run)
	ctx = edge.WithInternalCaller(ctx, &edge.InternalCaller{Token: run.Token, Find: s.tokenOfCall, Background: true})
	switch r = r.WithContext(ctx); {
	case strings.HasPrefix(run.TaskID, activities.ResponseIDs):
		s.serveResponse(w, r, run)
	case gemini.IsInteraction(r.URL.Path):
		s.serveInteraction(w, r, run)
	default:
		s.serveReported(w, r, run)
	}
}

// readCall reads the body of a background call and replaces it: by the result of running if the upstream already generates the answer, else
// by that of whole. It reports false if the body cannot be read now. The edge counts this body until the handler reads it and counts it
// again.
func (s *Server) readCall(r *http.Request, run *activities.CallRun, whole, running func([]byte) []byte) (request []byte, ok bool) {
	refuse := func(message string, err error) ([]byte, bool) {
		run.Fault = &providers.Fault{Kind: providers.Overloaded, Message: message, Accepted: providers.NotAccepted, Err: err}
		return nil, false
	}
	release, err := s.edge.HoldBackground(run.Token, max(0, r.ContentLength))
	if err != nil {
		return refuse("The worker has no room for the call.", err)
	}
	var read bytes.Buffer
	if r.ContentLength > 0 {
		read.Grow(int(r.ContentLength) + bytes.MinRead)
	}
	if _, err := read.ReadFrom(r.Body); err != nil {
		release()
		return refuse("The call cannot be read from the archive.", err)
	}
	if t := run.Ticketing; t != nil && t.At != (providers.KeyRef{}) {
		whole = running
	}
	sent := whole(read.Bytes())
	body := &releasing{release: release}
	body.Reset(sent)
	r.Body, r.ContentLength = body, int64(len(sent))
	return read.Bytes(), true
}

// releasing reads bytes, and drops them at their end. It calls release at the first read.
type releasing struct {
	bytes.Reader

	release func()
}

// Read implements io.Reader.
func (b *releasing) Read(p []byte) (int, error) {
	b.release()
	n, err := b.Reader.Read(p)
	if b.Len() == 0 {
		b.Reset(nil)
	}
	return n, err
}

// Close implements io.Closer.
func (b *releasing) Close() error {
	b.release()
	b.Reset(nil)
	return nil
}

// serveInteraction serves an interaction with background: true under the id of its task.
func (s *Server) serveInteraction(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
	request, ok := s.readCall(r, run, gemini.InteractionRequest, gemini.RunningInteraction)
	if !ok {
		return
	}
	defer func() { _ = r.Body.Close() }() // it never fails
	worker := gemini.NewInteractionWorker(w, run.TaskID, run.Created, request)
	defer func() { run.Copy = activities.TicketOf(run.By, worker.CopyID()) }()
	s.internal.ServeHTTP(worker, r)
	if failure, fault := worker.End(run.Fault == nil); run.Fault == nil {
		run.Failure, run.Fault = failure, fault
	}
}

// serveReported serves a background call, and records the failure in its answer.
func (s *Server) serveReported(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
	answer := &tasks.Reported{ResponseWriter: w}
	s.internal.ServeHTTP(answer, r)
	run.Failure = answer.Failure()
}

// tokenOfCall finds the token of a background call. An ended token stays in the store, so an unknown token was lost with Redis's data. Then
// the call waits until the process that has the token in its file writes it again.
func (s *Server) tokenOfCall(ctx context.Context, id string) (*tokens.Token, error) {
	token, err := s.tokenByID(ctx, id)
	if errors.Is(err, storage.ErrNotFound) {
		err = fmt.Errorf("token %q is unknown: %w", id, storage.ErrUnavailable)
	}
	return token, err
}

// serveResponse serves a response with background: true under the id of its task, and stores it like the responses of translated models.
func (s *Server) serveResponse(w http.ResponseWriter, r *http.Request, run *activities.CallRun) {
	request, ok := s.readCall(r, run, openai.Request, openai.Running)
	if !ok {
		return
	}
	defer func() { _ = r.Body.Close() }() // it never fails
	worker := openai.NewWorker(w, run.TaskID, run.Created, request)
	run.Holds = worker.Holds()
	s.serveReported(worker, r, run)
	status := worker.End()
	run.Copy = activities.TicketOf(run.By, worker.Made())
	switch {
	case run.Fault != nil || run.Failure != nil:
		return
	case status == "cancelled": // another client of the upstream cancelled it
		run.Failure = &providers.VideoFailure{Code: "server_error", Message: "The upstream cancelled the response."}
		return
	case status == "incomplete":
		run.Event = status
	}
	s.saveResponse.Save(context.WithoutCancel(r.Context()), run.Token, worker, run.Earlier)
}

// FaultEvents implements activities.Caller.
func (s *Server) FaultEvents(call activities.StagedCall, fault *providers.Fault, n int64) []byte {
	if call.Path == openai.ResponsesPath {
		return openai.ResponseError(fault, int(n))
	}
	if gemini.IsInteraction(call.Path) {
		return gemini.InteractionError(fault, n)
	}
	return s.edge.FaultEvents(call.Format, fault, call.Header.Get("X-Request-Id"))
}

// opening returns the function that makes the first events of a call's stream, which a client may read before the worker begins; nil: none.
func opening(of workflowtasks.Task) func(request []byte) [][]byte {
	if gemini.IsInteraction(strings.TrimPrefix(of.Operation, http.MethodPost+" ")) {
		return func(request []byte) [][]byte { return gemini.Opening(of, request) }
	}
	if strings.HasPrefix(of.ID, activities.ResponseIDs) {
		return openai.Opening(of)
	}
	return nil
}
