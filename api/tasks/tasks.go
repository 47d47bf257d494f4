// Package tasks has the operations on tasks of every kind, /v1/tasks, and the creates of background calls. Formats with their own tasks
// share its parts: the owner of a create, reads that wait, streams of events, and archived results.
//
// It must not know how a task is created or where it is stored.
package tasks

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/activities"
	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/storage/eventlog"
	"modelrelay/workflows/tasks"
)

// Tasks creates and reads tasks. Errors are *providers.Fault; a task of another token is NotFound.
type Tasks interface {
	Create(ctx context.Context, create tasks.Create) (tasks.Task, error)
	Find(ctx context.Context, id, tokenID string) (tasks.Task, error)
	// Repeated finds the task of an equal create, by its key or as an SDK's retry, without a create. It returns NotFound if there is none.
	Repeated(ctx context.Context, create tasks.Create) (tasks.Task, error)
	// List reads a page. An unknown After is Invalid.
	List(ctx context.Context, query tasks.ListQuery) (tasks.Page, error)
	// Cancel returns the state of the task after at most two seconds.
	Cancel(ctx context.Context, id, tokenID string) (tasks.Task, error)
	// Delete returns when the task can no longer be found.
	Delete(ctx context.Context, id, tokenID string) error
	// Watch returns the task at the first change after last, immediately if last has ended. The error is that of ctx, or NotFound.
	Watch(ctx context.Context, last tasks.Task) (tasks.Task, error)
}

// Options configure a Service. The caller owns all parts.
type Options struct {
	Tasks   Tasks
	Archive Archive
	Events  EventLog
	// Deleted is called after the deletion of a Response.
	Deleted func(ctx context.Context, tokenID, id string)
	// CallTTL is the longest time from the create of a call to its expiry.
	CallTTL time.Duration
	// Faults returns the final events of a call's stream that failed after n events.
	Faults func(call activities.StagedCall, fault *providers.Fault, n int64) []byte
	// Opening returns the function that makes the first events of a call's log from its request. They are available before the call is sent.
	// nil: there are none.
	Opening func(of tasks.Task) func(request []byte) [][]byte
}

// EventLog stores the events of streamed calls. *eventlog.Log implements it.
type EventLog interface {
	// Read calls each for every event after a number, in order, and waits for further events until the end of the log.
	Read(ctx context.Context, id, prefix string, after int64, each func(p eventlog.Piece) error) error
}

// Service has the operations on tasks of every kind. It is safe for concurrent use.
type Service struct {
	Options

	edge   *edge.Edge
	reader *Reader
}

// New returns a Service for the requests of an edge.
func New(e *edge.Edge, o Options) *Service {
	return &Service{Options: o, edge: e, reader: NewReader(e, o.Tasks)}
}

// Watchers returns the number of open event streams.
func (s *Service) Watchers() int64 { return s.reader.Open.Load() }

// Tag is the tag of the operations in the OpenAPI document.
const Tag = "Tasks"

const root = "/v1/tasks"

// Path is the input of an operation on a task.
type Path struct {
	ID string `path:"task_id" doc:"Task id"`
}

// PathAndWait is the input of a read of a task.
type PathAndWait struct {
	Path
	Wait int `query:"wait" minimum:"0" maximum:"60" doc:"Seconds to wait for the next change before the current state is returned"`
}

type taskList struct {
	Kind      string `query:"kind" enum:"call,video" doc:"Only tasks of this kind"`
	Status    string `query:"status" enum:"queued,in_progress,completed,failed,cancelled" doc:"Only tasks with this status"`
	Model     string `query:"model" doc:"Only tasks of this model"`
	Operation string `query:"operation" doc:"Only tasks of this operation, as POST /v1/chat/completions"`
	PageQuery
}

// PageQuery selects a page of a list of tasks.
type PageQuery struct {
	After string `query:"after" doc:"Id of the last task of the previous page"`
	Limit int    `query:"limit" minimum:"1" maximum:"100" default:"20" doc:"Length of the page"`
	Order string `query:"order" enum:"asc,desc" default:"desc" doc:"By creation: desc has the newest first"`
}

// Of returns the query of a token's tasks.
func (q PageQuery) Of(tokenID string) tasks.ListQuery {
	return tasks.ListQuery{TokenID: tokenID, After: q.After, Limit: q.Limit, Ascending: q.Order == "asc"}
}

// List is a page of a list of tasks.
type List[T any] struct {
	Object  string  `json:"object" enum:"list"`
	Data    []T     `json:"data" nullable:"false"`
	FirstID *string `json:"first_id" doc:"Null in an empty page"`
	LastID  *string `json:"last_id" doc:"Value of after for the next page; null in an empty page. With has_more it may be a task that the filters omit"`
	HasMore bool    `json:"has_more"`
}

// NewList returns a page of tasks as show renders them.
func NewList[T any](page tasks.Page, show func(tasks.Task) T) List[T] {
	list := List[T]{Object: "list", Data: make([]T, len(page.Tasks)), LastID: body.OrNull(page.Last), HasMore: page.More}
	for i, task := range page.Tasks {
		list.Data[i] = show(task)
	}
	if len(page.Tasks) > 0 {
		list.FirstID = &page.Tasks[0].ID
	}
	return list
}

// Deleted is the answer of a delete.
type Deleted struct {
	ID      string `json:"id"`
	Object  string `json:"object" enum:"task.deleted,video.deleted"`
	Deleted bool   `json:"deleted"`
}

// Add adds the operations to the group of their format.
func (s *Service) Add(group *edge.Group) {
	g := group.With(edge.Access{Meter: edge.MeterReads})
	tags := []string{Tag}
	edge.Register(g, huma.Operation{
		OperationID: "listTasks", Method: http.MethodGet, Path: root, Tags: tags, Summary: "List tasks of every kind",
		Description: "Lists the tasks of the token by creation, newest first. A filter applies to the tasks as they are now.",
	}, s.list)
	edge.Register(g, huma.Operation{
		OperationID: "getTask", Method: http.MethodGet, Path: root + "/{task_id}", Tags: tags, Summary: "Get a task",
		Description: "Reads a task of any kind. A wait of up to 60 seconds holds the answer until the status changes.",
	}, func(ctx context.Context, in *PathAndWait) (task, error) {
		found, err := s.reader.Status(ctx, in.ID, time.Duration(in.Wait)*time.Second)
		return newTask(found), err
	})
	edge.Register(g, huma.Operation{
		OperationID: "cancelTask", Method: http.MethodPost, Path: root + "/{task_id}/cancel", Tags: tags, Summary: "Cancel a task",
		Description: "Waits up to two seconds for the effect. A task that has ended does not change.",
	}, func(ctx context.Context, in *Path) (task, error) {
		found, err := s.Tasks.Cancel(ctx, in.ID, edge.Of(ctx).Caller.ID)
		return newTask(found), err
	})
	edge.Register(g, huma.Operation{
		OperationID: "deleteTask", Method: http.MethodDelete, Path: root + "/{task_id}", Tags: tags, Summary: "Delete a task",
		Description: "Removes the task and its result; a running task is cancelled first. Later reads do not find the task.",
	}, func(ctx context.Context, in *Path) (Deleted, error) {
		return Deleted{in.ID, "task.deleted", true}, s.Delete(ctx, edge.Of(ctx).Caller.ID, in.ID)
	})
	s.addResult(g, tags)
	s.addEvents(g, tags)
}

func (s *Service) list(ctx context.Context, in *taskList) (List[task], error) {
	query := in.Of(edge.Of(ctx).Caller.ID)
	query.Kind = activities.Kind(in.Kind)
	query.Match = func(t tasks.Task) bool {
		return (in.Status == "" || in.Status == string(statusOf(t))) && (in.Model == "" || in.Model == t.Request.Named()) &&
			(in.Operation == "" || in.Operation == t.Operation)
	}
	page, err := s.Tasks.List(ctx, query)
	return NewList(page, newTask), err
}

func (s *Service) addEvents(g *edge.Group, tags []string) {
	g.Handle(huma.Operation{
		OperationID: "followTask", Method: http.MethodGet, Path: root + "/{task_id}/events", Tags: tags,
		Summary: "Follow a task by server-sent events",
		Description: "The events of a streamed call as a synchronous client receives them, or the task object at every change of status. " +
			"The stream ends with the task.",
		Parameters: []*huma.Param{
			edge.PathParameter("task_id", "Task id"),
			edge.Parameter("header", "Last-Event-ID", "The last event that the client saw: the stream continues after it"),
		},
		Responses: map[string]*huma.Response{"200": {Description: "Events", Content: map[string]*huma.MediaType{
			"text/event-stream": {Schema: body.Text()},
		}}},
	}, func(x *edge.Request, r *http.Request) error {
		found, err := s.Tasks.Find(r.Context(), r.PathValue("task_id"), x.Caller.ID)
		if err != nil {
			return err
		}
		if found.Stream {
			return s.serveStream(x, r, found)
		}
		return s.reader.Stream(x, r, TaskEvents{
			ID:          func(t tasks.Task) string { return t.ID + "-" + string(statusOf(t)) },
			Name:        "task",
			Object:      func(_ context.Context, t tasks.Task) any { return newTask(t) },
			EndedStatus: http.StatusOK,
		})
	})
}
