package tasks

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"slices"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// TaskEvents is the shape of a stream. An event is the task after a change.
type TaskEvents struct {
	// ID identifies a state of a task. Name is the name of the events, "" for none.
	ID   func(task tasks.Task) string
	Name string
	// Object returns the data of an event.
	Object func(ctx context.Context, task tasks.Task) any
	// EndedStatus is the status for a client that has already received the end.
	EndedStatus int
}

// Stream streams a task until it ends, the client leaves or the process stops.
func (t *Reader) Stream(x *edge.Request, r *http.Request, shape TaskEvents) error {
	task, err := t.tasks.Find(r.Context(), r.PathValue("task_id"), x.Caller.ID)
	if err != nil {
		return err
	}
	x.Outcome.Model = task.Request.Model
	seen := r.Header.Get("Last-Event-ID") == shape.ID(task)
	if seen && task.Ended() {
		x.WriteHeader(shape.EndedStatus)
		return nil
	}
	out, done, err := t.begin(x)
	if err != nil {
		return err
	}
	defer done()
	ctx, stop := t.edge.UntilStopping(r.Context())
	defer stop()
	if !seen {
		err = out.Send(shape.ID(task), shape.Name, shape.Object(ctx, task))
	}
	for err == nil && !task.Ended() {
		task, err = t.next(ctx, out, task, shape)
	}
	switch {
	case err == nil:
		return nil
	case edge.IsClientGone(r.Context()):
		return r.Context().Err()
	case r.Context().Err() != nil: // the token is no longer valid
		err = context.Cause(r.Context())
	case ctx.Err() != nil: // the process stops; the client reconnects to another
		return nil
	}
	fault := providers.AsFault(err)
	if fault.Kind != providers.Canceled {
		_ = out.WriteEvent(slices.Concat(x.FaultEvents(fault)...)) // the client may have left
	}
	return fault
}

func (t *Reader) begin(x *edge.Request) (out *EventStream, done func(), err error) {
	unwatch, err := x.Watch()
	if err != nil {
		return nil, nil, err
	}
	if err := x.WhilePermitted(); err != nil {
		unwatch()
		return nil, nil, err
	}
	x.Header().Set("Content-Type", "text/event-stream")
	x.Header().Set("X-Accel-Buffering", "no") // nginx must not buffer events
	x.WriteHeader(http.StatusOK)
	t.Open.Add(1)
	done = func() {
		t.Open.Add(-1)
		unwatch()
	}
	out = &EventStream{Writer: x.Paced()}
	if err := out.Flush(); err != nil {
		done()
		return nil, nil, edge.ClientGone(err)
	}
	return out, done, nil
}

const keepAlive = ":\n\n"

// next sends the next change of a task, or a comment after a silence.
func (t *Reader) next(ctx context.Context, out *EventStream, last tasks.Task, shape TaskEvents) (tasks.Task, error) {
	quiet, cancel := context.WithTimeout(ctx, t.Every)
	defer cancel()
	task, err := t.tasks.Watch(quiet, last)
	switch {
	case err == nil:
		return task, out.Send(shape.ID(task), shape.Name, shape.Object(ctx, task))
	case ctx.Err() == nil && quiet.Err() != nil:
		return last, out.WriteEvent([]byte(keepAlive))
	default:
		return last, err
	}
}

// EventStream writes server-sent events and flushes each.
type EventStream struct {
	*edge.Writer
	buf bytes.Buffer
}

// Send writes one event with data on one line; name is "" for none.
func (e *EventStream) Send(id, name string, data any) error {
	e.buf.Reset()
	e.buf.WriteString("id: " + id + "\n")
	if name != "" {
		e.buf.WriteString("event: " + name + "\n")
	}
	e.buf.WriteString("data: ")
	encoder := json.NewEncoder(&e.buf)
	encoder.SetEscapeHTML(false)
	if err := encoder.Encode(data); err != nil {
		return err
	}
	e.buf.WriteByte('\n')
	return e.WriteEvent(e.buf.Bytes())
}

// WriteEvent writes one encoded event.
func (e *EventStream) WriteEvent(event []byte) error {
	if _, err := e.Write(event); err != nil {
		return edge.ClientGone(err)
	}
	if err := e.Flush(); err != nil {
		return edge.ClientGone(err)
	}
	return nil
}
