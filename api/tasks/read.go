package tasks

import (
	"context"
	"sync/atomic"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/workflows/tasks"
)

// MaxWait bounds the wait of a status read. It is shorter than the idle timeouts of common proxies.
const MaxWait = 60 * time.Second

// WaitParameter declares the wait of a status read that is not registered with PathAndWait.
func WaitParameter() *huma.Param {
	return &huma.Param{
		Name: "wait", In: "query", Description: "Seconds to wait for the next change before the current state is returned",
		Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0), Maximum: new(MaxWait.Seconds())},
	}
}

// ParseWait parses a wait in seconds; empty is 0.
func ParseWait(text []byte) (time.Duration, error) {
	if len(text) == 0 {
		return 0, nil
	}
	seconds, ok := rawjson.Value(text).Int()
	if !ok || seconds < 0 || seconds > int64(MaxWait/time.Second) {
		return 0, providers.InvalidField("wait", "Invalid request: 'wait' must be a number of seconds from 0 to %d.", MaxWait/time.Second)
	}
	return time.Duration(seconds) * time.Second, nil
}

// eventsEvery is the longest silence of an event stream: then a comment shows that it is alive, and finds clients that are gone.
const eventsEvery = 15 * time.Second

// Reader reads tasks for their tokens, waits for changes, and streams them.
type Reader struct {
	tasks Tasks
	edge  *edge.Edge
	// Every is the longest silence of a stream.
	Every time.Duration
	// Open is the number of open streams.
	Open atomic.Int64
}

// NewReader returns a Reader for the requests of an edge.
func NewReader(e *edge.Edge, of Tasks) *Reader {
	return &Reader{tasks: of, edge: e, Every: eventsEvery}
}

// Read reads a task of the caller. With a wait it returns at the next change, at the end of the wait, or when the process stops.
func (t *Reader) Read(ctx context.Context, id string, wait time.Duration) (tasks.Task, error) {
	x := edge.Of(ctx)
	task, err := t.tasks.Find(ctx, id, x.Caller.ID)
	if err != nil {
		return tasks.Task{}, err
	}
	x.Outcome.Model = task.Request.Model
	return t.await(ctx, task, wait, func(tasks.Task) bool { return true })
}

// Status is Read, but waits only for a change of the status.
func (t *Reader) Status(ctx context.Context, id string, wait time.Duration) (tasks.Task, error) {
	task, err := t.Read(ctx, id, 0)
	if err != nil {
		return tasks.Task{}, err
	}
	return t.await(ctx, task, wait, func(now tasks.Task) bool { return now.State != task.State })
}

// End returns the task after its end, or its state after the wait. If the token has too many waits, End returns the present state.
func (t *Reader) End(ctx context.Context, task tasks.Task, wait time.Duration) (tasks.Task, error) {
	now, err := t.await(ctx, task, wait, tasks.Task.Ended)
	if providers.AsFault(err) != nil && providers.AsFault(err).Kind == providers.RateLimited {
		return task, nil
	}
	return now, err
}

// await returns the task at the first change for which enough is true.
func (t *Reader) await(ctx context.Context, task tasks.Task, wait time.Duration, enough func(tasks.Task) bool) (tasks.Task, error) {
	x := edge.Of(ctx)
	if wait <= 0 || task.Ended() {
		return task, nil
	}
	unwatch, err := x.Watch()
	if err != nil {
		return tasks.Task{}, err
	}
	defer unwatch()
	if err := x.WhilePermitted(); err != nil {
		return tasks.Task{}, err
	}
	waiting, done := t.edge.UntilStopping(ctx)
	defer done()
	waiting, cancel := context.WithTimeout(waiting, wait)
	defer cancel()
	for {
		changed, err := t.tasks.Watch(waiting, task)
		switch {
		case err == nil && (enough(changed) || changed.Ended()):
			return changed, nil
		case err == nil:
			task = changed
		case ctx.Err() != nil:
			return tasks.Task{}, providers.AsFault(context.Cause(ctx))
		case waiting.Err() != nil:
			return task, nil
		default:
			return tasks.Task{}, err
		}
	}
}
