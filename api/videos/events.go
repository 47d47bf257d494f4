package videos

import (
	"context"
	"net/http"
	"strconv"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	apitasks "modelrelay/api/tasks"
	"modelrelay/workflows/tasks"
)

// addEvents adds the event stream of a task at a path. object returns the task in the format of the path.
func (s *Service) addEvents(g *edge.Group, operationID, path string, object func(context.Context, tasks.Task) any) {
	g.With(reads()).Handle(huma.Operation{
		OperationID: operationID, Method: http.MethodGet, Path: path, Tags: []string{edge.VideoTag},
		Summary: "Follow a video task by server-sent events",
		Description: "The task object at every change of state, progress or queue position. The stream ends with the " +
			"task; a client that reconnects after that is answered 204, which ends the reconnecting.",
		Parameters: []*huma.Param{
			edge.PathParameter("task_id", "Video task id"),
			{
				Name: "Last-Event-ID", In: "header", Description: "The last event the client saw: the task is sent at once if it differs",
				Schema: &huma.Schema{Type: huma.TypeString},
			},
		},
		Responses: map[string]*huma.Response{
			"200": {Description: "Events whose data is the task object", Content: map[string]*huma.MediaType{
				"text/event-stream": {Schema: &huma.Schema{Type: huma.TypeString}},
			}},
			"204": {Description: "The client has seen the end"},
		},
	}, func(x *edge.Request, r *http.Request) error {
		return s.reader.Stream(x, r, apitasks.TaskEvents{ID: eventID, Object: object, Over: http.StatusNoContent})
	})
}

// eventID identifies a state of a task.
func eventID(task tasks.Task) string {
	return string(task.State) + "-" + strconv.Itoa(task.Progress)
}
