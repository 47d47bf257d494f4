package activities

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/storage/taskindex"
)

const (
	// removalFirst and removalMost bound the wait between two looks at what a removal waits for, the end of its task or of
	// an execution: soon at first, since most take a moment, then ever more seldom, so that a thousand removals at once do
	// not keep the engine from what they wait for.
	removalFirst = 250 * time.Millisecond
	removalMost  = time.Minute
	// deleteAgain is when an execution is asked for once more to be deleted: Temporal does not forget that it was.
	deleteAgain = 30 * time.Minute
	// StageLimit is the longest from the first object that a create stages to the start of its task.
	StageLimit = 5 * time.Minute
)

// Standing is what Executions says of a task that shall end.
type Standing struct {
	// Closed: the task has ended, or there is none.
	Closed bool `json:"-"`
	// Run is its newest execution, "" where there is none, and Started when that began. A task that is made later under
	// the same id is another.
	Run     string    `json:"run,omitempty"`
	Started time.Time `json:"started,omitzero"`
	// Generation is what the task's own objects are found by.
	Generation string `json:"generation,omitempty"`
	// Outputs are the archive folders of its videos, with a slash at the end.
	Outputs []string `json:"outputs,omitempty"`
	// Single: no reset left an execution behind.
	Single bool `json:"single,omitempty"`
}

// Executions ends, deletes and finishes the executions of tasks. tasks.Executions implements it.
type Executions interface {
	// End asks a task to end and tells how it stands: as closed and without a run where it is not there any more, also when
	// another has its id. It may be asked again.
	End(ctx context.Context, task RemoveInput) (Standing, error)
	// Delete has the run that End told deleted, and those before it, and returns them; none where none is left. It touches no
	// later one, and does not wait.
	Delete(ctx context.Context, taskID string, standing Standing) (runs []string, err error)
	// Behind tells whether another task, which was made later under the same id, has ended behind a removal that has the id.
	Behind(ctx context.Context, task RemoveInput) (bool, error)
	// Generation returns the generation of the task that has the id, "" for none.
	Generation(ctx context.Context, taskID string) (string, error)
	// Left returns those of the runs that are there still.
	Left(ctx context.Context, taskID string, runs []string) ([]string, error)
	// Finish has those tasks finished whose execution ended without its finish, at the time or later (zero: whenever): an operator
	// terminated it in the engine's own tools, or it failed for a bug. It reads a page of them behind the cursor, which is empty for
	// the first page; next is empty behind the last. A task that is finished already, or runs again, is left alone.
	Finish(ctx context.Context, since time.Time, cursor []byte) (next []byte, err error)
}

// Remover takes tasks away with all that is kept of them.
type Remover struct {
	// Index is what lists the tasks of tokens; nil where nobody lists them.
	Index      *taskindex.Index
	Executions Executions
	Objects    Objects
	Log        *slog.Logger
}

// RemoveInput is a task that nobody wants to see again.
type RemoveInput struct {
	TaskID string `json:"task_id"`
	Token  string `json:"token"`
	// Created distinguishes the task from another that gets its id when it is gone.
	Created time.Time `json:"created"`
	// Run is the task's own execution where that had ended before its removal began; "" where it may run.
	Run string `json:"run,omitempty"`
	// Revision is the workflows' at the removal's start.
	Revision int `json:"revision"`
}

// callOff ends the task and returns what there is to remove once it has ended.
func (a *Remover) callOff(ctx context.Context, in RemoveInput) (Standing, error) {
	standing, err := a.Executions.End(ctx, in)
	switch {
	case err != nil:
		return Standing{}, fmt.Errorf("end %s: %w", in.TaskID, err)
	case !standing.Closed:
		return Standing{}, pending("still running", lookAgain(ctx))
	}
	return standing, nil
}

// erase removes a task's objects: its videos, and the inputs, request and tickets of every generation of its id. Without an execution
// nothing is left of the task, and the objects belong to one that is about to start. A newer object of another generation may be of a
// create under way. The removal, which has the id, refuses that create: erase waits until the object is older than StageLimit.
func (a *Remover) erase(ctx context.Context, taskID string, was Standing) error {
	if was.Run == "" {
		return nil
	}
	own := []string{GenerationPrefix(taskID, was.Generation), AttemptsPrefix(taskID) + was.Generation + "-"}
	for _, prefix := range slices.Concat(was.Outputs, own) {
		if err := a.Objects.DeletePrefix(ctx, prefix); err != nil {
			return again(record(err), 0)
		}
	}
	var wait time.Duration
	for object, err := range a.Objects.List(ctx, TaskPrefix(taskID)) {
		age := time.Since(object.Modified)
		switch {
		case err != nil:
		case age <= StageLimit:
			wait = max(wait, StageLimit-age)
		default:
			err = a.Objects.Delete(ctx, object.Key)
		}
		if err != nil {
			return again(record(err), 0)
		}
	}
	if wait > 0 {
		return pending("inputs of another create", min(wait, removalMost))
	}
	return nil
}

// deleted are the runs that Temporal was asked to delete, and when.
type deleted struct {
	Runs []string  `json:"runs"`
	At   time.Time `json:"at"`
}

// deleteRuns has what is left of the task's executions deleted, once, or looks for what is left of them.
func (a *Remover) deleteRuns(ctx context.Context, taskID string, was Standing, asked *deleted) (err error) {
	if time.Since(asked.At) < deleteAgain {
		asked.Runs, err = a.Executions.Left(ctx, taskID, asked.Runs)
	} else {
		asked.At = time.Now().UTC()
		asked.Runs, err = a.Executions.Delete(ctx, taskID, was)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", taskID, err)
	}
	return nil
}

// removed ends the removal of a task of which nothing is left. A removal that runs under the task's own id deletes itself
// so: it is the last step. One that came when its task was gone already may have taken the place of a later task with the id, which
// nobody would find any more if it deleted itself: then it only ends.
func (a *Remover) removed(ctx context.Context, in RemoveInput, was Standing) error {
	if a.Index != nil {
		if err := errors.Join(a.Index.Remove(ctx, in.Token, in.TaskID, in.Created), a.Index.Lift(ctx, in.TaskID, in.Created)); err != nil {
			return again(record(err), 0)
		}
	}
	if this := activity.GetInfo(ctx).WorkflowExecution; this.ID == in.TaskID {
		if was.Run == "" {
			if later, err := a.Executions.Behind(ctx, in); err != nil || later {
				return err
			}
		}
		if _, err := a.Executions.Delete(ctx, in.TaskID, Standing{Run: this.RunID, Single: true}); err != nil {
			return fmt.Errorf("delete the removal of %s: %w", in.TaskID, err)
		}
	}
	a.Log.InfoContext(ctx, "task removed", "task", in.TaskID)
	return nil
}

// removing is Remove's heartbeat: what was told of a task whose objects are erased, and what Temporal was asked to delete.
type removing struct {
	Standing *Standing `json:"standing,omitempty"`
	// Try is the one that saw the end of the task; the waits begin anew with it.
	Try   int32   `json:"try,omitempty"`
	Asked deleted `json:"asked,omitzero"`
}

// Remove ends a task, erases its objects, then deletes its executions, in this order. It may run any number of times. Another try
// goes on after the erased objects. Temporal is asked once to delete and deletes in its own time; another try only looks. A removal under its task's own id does not wait until Temporal has deleted the task's execution:
// nobody finds that by the id any more, and what Temporal was asked for it does.
func (a *Remover) Remove(ctx context.Context, in RemoveInput) error {
	var was removing
	if activity.HasHeartbeatDetails(ctx) {
		if err := activity.GetHeartbeatDetails(ctx, &was); err != nil {
			was = removing{}
		}
	}
	info := activity.GetInfo(ctx)
	if was.Standing == nil {
		standing, err := a.callOff(ctx, in)
		if err != nil {
			return err
		}
		if err := a.erase(ctx, in.TaskID, standing); err != nil {
			return err
		}
		was.Standing, was.Try = &standing, info.Attempt
	}
	if err := a.deleteRuns(ctx, in.TaskID, *was.Standing, &was.Asked); err != nil {
		return err
	}
	if len(was.Asked.Runs) > 0 && info.WorkflowExecution.ID != in.TaskID {
		activity.RecordHeartbeat(ctx, was)
		return pending("not gone yet", lookAfter(info.Attempt-was.Try))
	}
	return a.removed(ctx, in, *was.Standing)
}

// lookAgain is the wait before the next try of an activity that waits for something from its first try on.
func lookAgain(ctx context.Context) time.Duration {
	return lookAfter(activity.GetInfo(ctx).Attempt - 1)
}

// lookAfter is the wait before the next look, after so many in vain before this one.
func lookAfter(vain int32) time.Duration {
	wait := removalFirst
	for ; vain > 0 && wait < removalMost; vain-- {
		wait *= 2
	}
	return min(wait, removalMost)
}

// TaskPrefix is the archive folder of what the tasks with an id keep beside their outputs.
func TaskPrefix(taskID string) string { return "tasks/" + taskID + "/" }

// GenerationPrefix is the archive folder of what a create staged for the one task that it makes.
func GenerationPrefix(taskID, generation string) string { return TaskPrefix(taskID) + generation + "/" }
