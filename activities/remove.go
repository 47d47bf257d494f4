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
	// removalFirst and removalMost bound the wait between two checks for the end of a task or an execution. Most take a moment; the later
	// waits are long, so that a thousand concurrent removals do not slow Temporal down.
	removalFirst = 250 * time.Millisecond
	removalMost  = time.Minute
	// deleteAgain is the time after which the deletion of an execution is requested again. Temporal does not lose such a request.
	deleteAgain = 30 * time.Minute
	// StageLimit is the longest time from the first staged object of a create to the start of its task.
	StageLimit = 5 * time.Minute
)

// Execution is the state of a task's execution for its removal.
type Execution struct {
	// Closed: the task has ended, or there is none.
	Closed bool `json:"-"`
	// Run is its newest execution, "" if there is none, and Started its start. A later task with the id is another task.
	Run     string    `json:"run,omitempty"`
	Started time.Time `json:"started,omitzero"`
	// Incarnation is part of the names of the task's objects.
	Incarnation string `json:"incarnation,omitempty"`
	// Outputs are the archive folders of its outputs, with a slash at the end.
	Outputs []string `json:"outputs,omitempty"`
	// Copy is the ticket of the answer that a vendor stores; nil: no vendor stores it.
	Copy *CallTicket `json:"copy,omitempty"`
	// Single: the task has no executions from before a reset.
	Single bool `json:"single,omitempty"`
}

// Executions ends, deletes and finishes the executions of tasks. tasks.Executions implements it.
type Executions interface {
	// End cancels a task and returns its state: closed and without a run if it does not exist or another task has its id. Idempotent.
	End(ctx context.Context, task RemoveInput) (Execution, error)
	// Delete requests the deletion of the run in standing and of earlier runs, without a wait, and returns those that exist.
	Delete(ctx context.Context, taskID string, standing Execution) (runs []string, err error)
	// LaterEnded reports whether a later task with the id has ended, and the execution of the removal has taken its place as the newest.
	LaterEnded(ctx context.Context, task RemoveInput) (bool, error)
	// Left returns the runs that still exist.
	Left(ctx context.Context, taskID string, runs []string) ([]string, error)
	// Finish starts the settlement of tasks that closed without it, at the time or later (zero: any time): terminated in Temporal's own
	// tools, or failed because of a bug. It reads one page after the cursor, which is empty for the first page; next is empty after the
	// last. It ignores tasks that are settled, or that run again.
	Finish(ctx context.Context, since time.Time, cursor []byte) (next []byte, err error)
}

// Remover removes tasks with all their data.
type Remover struct {
	*Upstreams

	// Index lists the tasks of tokens; nil: tasks are not listed.
	Index      *taskindex.Index
	Executions Executions
	Objects    Objects
	Log        *slog.Logger
}

// RemoveInput is a task to remove.
type RemoveInput struct {
	TaskID string `json:"task_id"`
	Token  string `json:"token"`
	// Created distinguishes the task from a later one with its id.
	Created time.Time `json:"created"`
	// Run is the task's execution if it had ended before the removal began; "" if it may run.
	Run      string `json:"run,omitempty"`
	Revision int    `json:"revision"`
}

// cancel cancels the task and returns its state once it has ended.
func (a *Remover) cancel(ctx context.Context, in RemoveInput) (Execution, error) {
	execution, err := a.Executions.End(ctx, in)
	switch {
	case err != nil:
		return Execution{}, fmt.Errorf("end %s: %w", in.TaskID, err)
	case !execution.Closed:
		return Execution{}, pending("still running", backoff(failedTries(ctx), removalFirst, removalMost))
	}
	return execution, nil
}

// erase removes a task's objects: its outputs, and the inputs, requests and tickets of every incarnation of its id. Without an execution
// the task no longer exists, and the objects are of a task that is about to start. A newer object of another incarnation may be of a
// create in progress. That create fails because the removal has the id, so erase waits until the object is older than StageLimit.
func (a *Remover) erase(ctx context.Context, taskID string, execution Execution) error {
	if execution.Run == "" {
		return nil
	}
	own := []string{IncarnationPrefix(taskID, execution.Incarnation), AttemptsPrefix(taskID) + execution.Incarnation + "-"}
	for _, prefix := range slices.Concat(execution.Outputs, own) {
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
		return pending("waiting for the objects of another create", min(wait, removalMost))
	}
	return nil
}

type deletedRuns struct {
	Runs []string  `json:"runs"`
	At   time.Time `json:"at"`
}

// deleteRuns requests the deletion of the task's executions once; later calls check which are left.
func (a *Remover) deleteRuns(ctx context.Context, taskID string, execution Execution, asked *deletedRuns) (err error) {
	if time.Since(asked.At) < deleteAgain {
		asked.Runs, err = a.Executions.Left(ctx, taskID, asked.Runs)
	} else {
		asked.At = time.Now().UTC()
		asked.Runs, err = a.Executions.Delete(ctx, taskID, execution)
	}
	if err != nil {
		return fmt.Errorf("delete %s: %w", taskID, err)
	}
	return nil
}

// removed completes the removal of a task. A removal with the task's id deletes itself as the last step. There is one exception: if the
// removal started after its task was gone, it may have replaced a later task with the id as the newest execution. That task could not
// be found if the removal deleted itself, so then it only ends.
func (a *Remover) removed(ctx context.Context, in RemoveInput, execution Execution) error {
	if a.Index != nil {
		if err := errors.Join(a.Index.Remove(ctx, in.Token, in.TaskID, in.Created), a.Index.EndRemoval(ctx, in.TaskID, in.Created)); err != nil {
			return again(record(err), 0)
		}
	}
	if this := activity.GetInfo(ctx).WorkflowExecution; this.ID == in.TaskID {
		if execution.Run == "" {
			if later, err := a.Executions.LaterEnded(ctx, in); err != nil || later {
				return err
			}
		}
		if _, err := a.Executions.Delete(ctx, in.TaskID, Execution{Run: this.RunID, Single: true}); err != nil {
			return fmt.Errorf("delete the removal of %s: %w", in.TaskID, err)
		}
	}
	a.Log.InfoContext(ctx, "task removed", "task", in.TaskID)
	return nil
}

// removeProgress is Remove's heartbeat: the state of a task whose objects are erased, and the requested deletions.
type removeProgress struct {
	Execution *Execution `json:"execution,omitempty"`
	// Try is the attempt that saw the end of the task; the waits start again with it.
	Try int32 `json:"try,omitempty"`
	// Forgotten: no vendor stores its answer any more.
	Forgotten bool        `json:"forgotten,omitempty"`
	Asked     deletedRuns `json:"asked,omitzero"`
}

// Remove cancels a task, erases its objects, deletes the vendor's copy of its answer, then deletes its executions, in this order. It is
// idempotent: another try continues after the erased objects. Temporal deletes an execution some time after one request, and later tries
// only check. A removal with its task's id does not wait for the deletion of the task's execution, because reads cannot find that by the
// id.
func (a *Remover) Remove(ctx context.Context, in RemoveInput) error {
	progress := lastHeartbeat[removeProgress](ctx, a.Log)
	info := activity.GetInfo(ctx)
	if progress.Execution == nil {
		execution, err := a.cancel(ctx, in)
		if err != nil {
			return err
		}
		if err := a.erase(ctx, in.TaskID, execution); err != nil {
			return err
		}
		progress.Execution, progress.Try = &execution, info.Attempt
	}
	if of := progress.Execution.Copy; of != nil && !progress.Forgotten {
		activity.RecordHeartbeat(ctx, progress)
		if err := a.forgetCopy(ctx, in.TaskID, *of); err != nil {
			return err
		}
		progress.Forgotten = true
	}
	if err := a.deleteRuns(ctx, in.TaskID, *progress.Execution, &progress.Asked); err != nil {
		return err
	}
	if len(progress.Asked.Runs) > 0 && info.WorkflowExecution.ID != in.TaskID {
		activity.RecordHeartbeat(ctx, progress)
		return pending("not deleted yet", backoff(int(info.Attempt-progress.Try), removalFirst, removalMost))
	}
	return a.removed(ctx, in, *progress.Execution)
}

// TaskPrefix returns the archive folder of the objects of a task id, without outputs.
func TaskPrefix(taskID string) string { return "tasks/" + taskID + "/" }

// IncarnationPrefix returns the archive folder of the objects that a create staged for its task.
func IncarnationPrefix(taskID, incarnation string) string {
	return TaskPrefix(taskID) + incarnation + "/"
}
