package api

import (
	"context"
	"time"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// maxWait is the longest that a status read may wait for a change: below the idle limits of common proxies.
const maxWait = 60 * time.Second

// waitQuery is the input of status reads that may wait.
type waitQuery struct {
	ID   string `path:"task_id" doc:"Video task id"`
	Wait int    `query:"wait" minimum:"0" maximum:"60" doc:"Seconds to wait for the next change before the task is answered as it is"`
}

func (q waitQuery) wait() time.Duration { return time.Duration(q.Wait) * time.Second }

// parseWait reads a wait in seconds; empty is none.
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

// look reads a task of the caller. With a wait it answers at the next change of state, progress or queue position, at
// the end of the wait, or when the process stops; a task that has ended is answered at once.
func (s *Server) look(ctx context.Context, id string, wait time.Duration) (tasks.Task, error) {
	x := edge.Of(ctx)
	task, err := s.tasks.Find(ctx, id, x.Caller.ID)
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
	waiting, done := s.edge.UntilStopping(ctx)
	defer done()
	waiting, cancel := context.WithTimeout(waiting, wait)
	defer cancel()
	changed, err := s.tasks.Watch(waiting, task)
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
