package workflows

import (
	"context"
	"fmt"
	"time"

	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
)

// endedEvery is the interval between two searches for tasks that closed without settlement. Each is settled within two minutes.
const endedEvery = time.Minute

// EndedID returns the id of the Schedule that runs SweepEnded for a task queue.
func EndedID(taskQueue string) string { return "ended-" + taskQueue }

// FinishID returns the id of the workflow that finishes one run of a task.
func FinishID(taskID, run string) string { return "finish_" + taskID + "_" + run }

// EnsureSweepEnded creates the Schedule of SweepEnded, or updates an existing one.
func EnsureSweepEnded(ctx context.Context, engine client.Client, taskQueue string) error {
	return ensureSchedule(ctx, engine, endedEvery, "Settles tasks that were terminated, or failed for a bug.",
		&client.ScheduleWorkflowAction{ID: EndedID(taskQueue), Workflow: SweepEnded, TaskQueue: taskQueue})
}

// SweepEnded searches for tasks that closed without settlement, from where the last search stopped, and starts Finish for each.
func SweepEnded(ctx workflow.Context) (activities.EndedMark, error) {
	var (
		acts activities.Activities // only names the activity; nothing calls it
		mark activities.EndedMark
	)
	if workflow.HasLastCompletionResult(ctx) && workflow.GetLastCompletionResult(ctx, &mark) != nil {
		mark = activities.EndedMark{}
	}
	if err := workflow.ExecuteActivity(withHeartbeats(ctx, endedLimit, "tasks that closed without settlement"), acts.Sweeper.SweepEnded,
		mark).Get(ctx, &mark); err != nil {
		return mark, fmt.Errorf("sweep closed tasks without settlement: %w", err)
	}
	return mark, nil
}

// FinishInput describes a run of a task that closed without settlement: it was terminated, or failed because of a bug.
type FinishInput struct {
	// Revision is the revision of Finish; Task has its own.
	Revision int `json:"revision"`
	// Task is the input of the run. Its Notify is false if the webhook was started before.
	Task Input `json:"task"`
	// Result is the result that reads of the task return.
	Result Result    `json:"result"`
	Began  time.Time `json:"began"`
	// Channel is the channel of the last attempt, "" for none.
	Channel string `json:"channel,omitempty"`
}

// Finish settles a task that closed without settlement and starts its webhook.
func Finish(ctx workflow.Context, in FinishInput) error {
	refuseNewer(max(in.Revision, in.Task.Revision))
	v := &task{in: in.Task, phase: PhaseFailed, Carried: Carried{Began: in.Began}}
	if in.Channel != "" {
		v.Held = []string{in.Channel}
		v.Attempts = []Attempt{{Number: 1, Assignment: activities.Assignment{Channel: in.Channel}}}
	}
	delivery := v.notify(ctx, in.Result)
	v.release(ctx, in.Result)
	if delivery == nil {
		return nil
	}
	if err := delivery.Get(ctx, nil); err != nil && !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return fmt.Errorf("start the webhook: %w", err)
	}
	return nil
}
