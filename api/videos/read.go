package videos

import (
	"context"
	"net/http"
	"strconv"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/workflows/tasks"
)

// addTask adds the operations on a task of a format. noun ends their ids, and words their summaries; show returns the task in the format.
func addTask[T any](s *Service, g *edge.Group, path, noun, words string, show func(ctx context.Context, task tasks.Task) T) {
	path += "/{task_id}"
	tags := []string{edge.VideoTag}
	g = g.With(reads())
	edge.Register(g, huma.Operation{
		OperationID: "get" + noun, Method: http.MethodGet, Path: path, Tags: tags, Summary: "Get a video task" + words,
	}, func(ctx context.Context, in *apitasks.PathAndWait) (T, error) {
		task, err := s.reader.Read(ctx, in.ID, time.Duration(in.Wait)*time.Second)
		return show(ctx, task), err
	})
	edge.Register(g, huma.Operation{
		OperationID: "cancel" + noun, Method: http.MethodPost, Path: path + "/cancel", Tags: tags, Summary: "Cancel a video task" + words,
		Description: cancelWords,
	}, func(ctx context.Context, in *apitasks.Path) (T, error) {
		task, err := s.tasks.Cancel(ctx, in.ID, edge.Of(ctx).Caller.ID)
		return show(ctx, task), err
	})
	edge.Register(g, huma.Operation{
		OperationID: "delete" + noun, Method: http.MethodDelete, Path: path, Tags: tags, Summary: "Delete a video task",
		Description: "Removes the task and its videos; a running task is cancelled first. Waits up to two seconds for the effect; " +
			"later reads do not find the task.",
	}, func(ctx context.Context, in *apitasks.Path) (apitasks.Deleted, error) {
		return apitasks.Deleted{ID: in.ID, Object: "video.deleted", Deleted: true}, s.tasks.Delete(ctx, in.ID, edge.Of(ctx).Caller.ID)
	})
	shape := apitasks.TaskEvents{
		ID:          func(task tasks.Task) string { return string(task.State) + "-" + strconv.Itoa(task.Progress) },
		Object:      func(ctx context.Context, task tasks.Task) any { return show(ctx, task) },
		EndedStatus: http.StatusNoContent,
	}
	g.Handle(huma.Operation{
		OperationID: "follow" + noun, Method: http.MethodGet, Path: path + "/events", Tags: tags,
		Summary: "Follow a video task by server-sent events",
		Description: "The task object at every change of state, progress or queue position. The stream ends with the " +
			"task; a client that reconnects after that is answered 204, which ends the reconnecting.",
		Parameters: []*huma.Param{
			edge.PathParameter("task_id", "Video task id"),
			edge.Parameter("header", "Last-Event-ID", "The last event the client saw: the task is sent at once if it differs"),
		},
		Responses: map[string]*huma.Response{
			"200": {Description: "Events whose data is the task object", Content: map[string]*huma.MediaType{
				"text/event-stream": {Schema: body.Text()},
			}},
			"204": {Description: "The client has seen the end"},
		},
	}, func(x *edge.Request, r *http.Request) error { return s.reader.Stream(x, r, shape) })
}
