package tasks

import (
	"cmp"
	"maps"
	"net/http"
	"slices"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// retryTask is the Retry-After, in seconds, of a task that has not ended.
const retryTask = "2"

func (s *Service) addResult(g *edge.Group, tags []string) {
	file := map[string]*huma.MediaType{"*/*": {Schema: &huma.Schema{}}}
	op := huma.Operation{
		OperationID: "getTaskResult", Method: http.MethodGet, Path: root + "/{task_id}/result", Tags: tags, Summary: "Get the result of a task",
		Description: "Answers as the synchronous call would: with its status, content type and body. An error of an ended task is final.",
		Parameters:  []*huma.Param{edge.PathParameter("task_id", "Task id")},
		Responses: map[string]*huma.Response{
			"200": {Description: "The answer of the call, or the video", Content: file},
			"202": {Description: "The task has not ended"},
			"206": {Description: "The ranges of the request", Content: file},
			"304": {Description: "The client's copy of the result is current"},
		},
	}
	g.Handle(op, s.serveResult)
	op.Method, op.OperationID, op.Hidden = http.MethodHead, "headTaskResult", true
	g.Handle(op, s.serveResult)
}

func (s *Service) serveResult(x *edge.Request, r *http.Request) error {
	found, err := s.Tasks.Find(r.Context(), r.PathValue("task_id"), x.Caller.ID)
	if err != nil {
		return err
	}
	if err := x.WhilePermitted(); err != nil {
		return err
	}
	return s.ServeResult(x, r, found)
}

// ServeResult answers with the result of a task. The caller has checked the permissions.
func (s *Service) ServeResult(x *edge.Request, r *http.Request, t tasks.Task) error {
	x.Outcome.Model = t.Request.Model
	missing := noResult(t)
	switch {
	case !t.Ended():
		x.Header().Set("Retry-After", retryTask)
		return x.JSONStatus(http.StatusAccepted, newTask(t))
	case t.Expired():
		return missing
	case len(t.Outputs) == 0 || statusOf(t) == workflows.Cancelled:
		s.edge.Speak(x, t.Format)
		status, fault := faultOf(t)
		x.FailWith(status, fault)
		return nil
	}
	output := t.Outputs[0]
	object := Object{
		Key: output.Object, ContentType: output.ContentType, SHA256: output.SHA256, Size: output.Size, Modified: t.CompletedAt,
		Noun: "result", Gone: missing,
	}
	if t.Call == nil {
		return ServeObject(x, r, s.Archive, object)
	}
	maps.Copy(x.Header(), t.Call.Header)
	if t.Call.Status != http.StatusOK {
		object.Status = t.Call.Status
		if t.Call.Status/100 != 2 {
			x.Header().Set("X-Should-Retry", "false")
		}
	}
	return ServeObject(x, r, s.Archive, object)
}

// faultOf returns the status and the fault of a task that ended without an answer.
func faultOf(t tasks.Task) (int, *providers.Fault) {
	fault := &providers.Fault{Kind: providers.Internal, Unrepeatable: true, Message: "The task failed."}
	code := ""
	if t.Failure != nil {
		code, fault.Message = t.Failure.Code, cmp.Or(t.Failure.Message, fault.Message)
	}
	switch {
	case statusOf(t) == workflows.Cancelled:
		fault.Kind, fault.Message = providers.Conflict, "The task was cancelled."
	case code == workflows.CodeQueueTimeout:
		fault.Kind = providers.Overloaded
	case code == workflows.CodeDeadlineExceeded:
		fault.Kind = providers.Timeout
	case !slices.Contains([]string{workflows.CodeArchiveFailed, workflows.CodeFailedByOperator, workflows.CodeInternal}, code):
		fault.Kind = providers.Upstream
	}
	return edge.Status(fault.Kind), fault
}
