package videos

import (
	"context"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// videoPath is the input of the operations on one task.
type videoPath struct {
	ID string `path:"task_id" doc:"Video task id"`
}

// maxWait bounds the wait of a status read: below the idle timeouts of common proxies.
const maxWait = 60 * time.Second

// waitQuery is the input of status reads that may wait.
type waitQuery struct {
	ID   string `path:"task_id" doc:"Video task id"`
	Wait int    `query:"wait" minimum:"0" maximum:"60" doc:"Seconds to wait for the next change before the task is answered as it is"`
}

func (q waitQuery) wait() time.Duration { return time.Duration(q.Wait) * time.Second }

// waitParameter declares the wait of a status read that is not registered with waitQuery.
func waitParameter() *huma.Param {
	return &huma.Param{
		Name: "wait", In: "query", Description: "Seconds to wait for the next change before the task is answered as it is",
		Schema: &huma.Schema{Type: huma.TypeInteger, Minimum: new(0.0), Maximum: new(maxWait.Seconds())},
	}
}

// parseWait parses a wait in seconds; empty is 0.
func parseWait(text []byte) (time.Duration, error) {
	if len(text) == 0 {
		return 0, nil
	}
	seconds, ok := body.Integer(text)
	if !ok || seconds < 0 || seconds > int64(maxWait/time.Second) {
		return 0, providers.InvalidField("wait", "Invalid request: 'wait' must be a number of seconds from 0 to %d.", maxWait/time.Second)
	}
	return time.Duration(seconds) * time.Second, nil
}

// reader reads tasks for their tokens, and waits for changes.
type reader struct {
	tasks Tasks
	edge  *edge.Edge
}

// read reads a task of the caller. With a wait it returns at the next change of state, progress or queue position, at the end of the wait, or
// when the process stops; an ended task is returned at once.
func (t reader) read(ctx context.Context, id string, wait time.Duration) (tasks.Task, error) {
	x := edge.Of(ctx)
	task, err := t.tasks.Find(ctx, id, x.Caller.ID)
	if err != nil {
		return tasks.Task{}, err
	}
	x.Outcome.Model = task.Request.Model
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
	changed, err := t.tasks.Watch(waiting, task)
	switch {
	case err == nil:
		return changed, nil
	case ctx.Err() != nil:
		return tasks.Task{}, providers.AsFault(context.Cause(ctx))
	case waiting.Err() != nil:
		return task, nil
	default:
		return tasks.Task{}, err
	}
}

// videoDeleted is the answer to a deletion.
type videoDeleted struct {
	ID      string `json:"id"`
	Object  string `json:"object" enum:"video.deleted"`
	Deleted bool   `json:"deleted"`
}

// addDelete adds the deletion of a task at a path.
func (s *Service) addDelete(g *edge.Group, operationID, path string) {
	edge.Register(g.With(reads()), huma.Operation{
		OperationID: operationID, Method: http.MethodDelete, Path: path, Tags: []string{edge.VideoTag},
		Summary: "Delete a video task",
		Description: "Removes the task and its videos; one that runs is cancelled first. Waits up to two seconds for the effect; " +
			"the task is not found from then on.",
	}, func(ctx context.Context, in *videoPath) (videoDeleted, error) {
		return videoDeleted{ID: in.ID, Object: "video.deleted", Deleted: true}, s.tasks.Delete(ctx, in.ID, edge.Of(ctx).Caller.ID)
	})
}

// expired reports whether a task's outputs have expired.
func expired(task tasks.Task) bool {
	return !task.ExpiresAt.IsZero() && !time.Now().Before(task.ExpiresAt)
}
