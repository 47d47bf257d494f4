package videos

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"
	"strconv"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// eventsEvery is the longest silence of an event stream. After it a comment shows clients and proxies that the stream is alive, and the
// server notices a client that is gone.
const eventsEvery = 15 * time.Second

// events serves the event streams of tasks.
type events struct {
	tasks Tasks
	edge  *edge.Edge
	open  atomic.Int64
	// every is the longest silence of a stream.
	every time.Duration
}

// add adds the event stream of a task at a path. object returns the task in the format of the path.
func (e *events) add(g *edge.Group, operationID, path string, object func(context.Context, tasks.Task) any) {
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
	}, func(x *edge.Request, r *http.Request) error { return e.serve(x, r, object) })
}

// eventID identifies a state of a task.
func eventID(task tasks.Task) string {
	return string(task.State) + "-" + strconv.Itoa(task.Progress)
}

// serve streams a task until it ends, the client leaves or the process stops.
func (e *events) serve(x *edge.Request, r *http.Request, object func(context.Context, tasks.Task) any) error {
	task, err := e.tasks.Find(r.Context(), r.PathValue("task_id"), x.Caller.ID)
	if err != nil {
		return err
	}
	x.Outcome.Model = task.Request.Model
	seen := r.Header.Get("Last-Event-ID") == eventID(task)
	if seen && task.Ended() {
		x.WriteHeader(http.StatusNoContent)
		return nil
	}
	unwatch, err := x.Watch()
	if err != nil {
		return err
	}
	defer unwatch()
	if err := x.WhilePermitted(); err != nil {
		return err
	}
	header := x.Header()
	header.Set("Content-Type", "text/event-stream")
	header.Set("X-Accel-Buffering", "no") // nginx must not buffer events
	e.open.Add(1)
	defer e.open.Add(-1)
	out := eventStream{Writer: x.Paced()}
	x.WriteHeader(http.StatusOK)
	ctx, done := e.edge.UntilStopping(r.Context())
	defer done()
	if err := out.begin(); err != nil {
		return edge.ClientGone(err)
	}
	if !seen {
		err = out.send(eventID(task), object(ctx, task))
	}
	for err == nil && !task.Ended() {
		task, err = e.next(ctx, &out, task, object)
	}
	switch {
	case err == nil:
		return nil
	case edge.Left(r.Context()):
		return r.Context().Err()
	case r.Context().Err() != nil: // the token is no longer valid
		err = context.Cause(r.Context())
	case ctx.Err() != nil: // the process stops; the client reconnects to another
		return nil
	}
	fault := providers.AsFault(err)
	if fault.Kind != providers.Canceled {
		_ = out.write(slices.Concat(x.FaultEvents(fault)...)) // the client may be gone
	}
	return fault
}

// next sends the next change of a task, or a comment after a silence.
func (e *events) next(ctx context.Context, out *eventStream, last tasks.Task, object func(context.Context, tasks.Task) any) (tasks.Task, error) {
	quiet, cancel := context.WithTimeout(ctx, e.every)
	defer cancel()
	task, err := e.tasks.Watch(quiet, last)
	switch {
	case err == nil:
		return task, out.send(eventID(task), object(ctx, task))
	case ctx.Err() == nil && quiet.Err() != nil:
		return last, out.write([]byte(":\n\n"))
	default:
		return last, err
	}
}

// eventStream writes server-sent events and flushes each.
type eventStream struct {
	*edge.Writer
	buf bytes.Buffer
}

// begin sends the header.
func (e *eventStream) begin() error { return e.Flush() }

// send writes one event with data on one line.
func (e *eventStream) send(id string, data any) error {
	e.buf.Reset()
	e.buf.WriteString("id: " + id + "\ndata: ")
	encoder := json.NewEncoder(&e.buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		return err
	}
	e.buf.WriteByte('\n')
	return e.write(e.buf.Bytes())
}

func (e *eventStream) write(event []byte) error {
	if _, err := e.Write(event); err != nil {
		return edge.ClientGone(err)
	}
	if err := e.Flush(); err != nil {
		return edge.ClientGone(err)
	}
	return nil
}
