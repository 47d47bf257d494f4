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

// endedEvery is how often tasks are looked for that ended without their finish: each is settled within two minutes.
const endedEvery = time.Minute

// EndedID is the id of the Schedule that looks for a task queue's tasks that ended without their finish.
func EndedID(taskQueue string) string { return "ended-" + taskQueue }

// FinishID is the id of the workflow that finishes a task's run that ended without.
func FinishID(taskID, run string) string { return "finish_" + taskID + "_" + run }

// EnsureSweepEnded makes that Schedule, or brings an older one up to date.
func EnsureSweepEnded(ctx context.Context, engine client.Client, taskQueue string) error {
	return ensureSchedule(ctx, engine, endedEvery, "Settles tasks that were terminated, or failed for a bug.",
		&client.ScheduleWorkflowAction{ID: EndedID(taskQueue), Workflow: SweepEnded, TaskQueue: taskQueue})
}

// SweepEnded is one look for tasks that ended without their finish. It goes on where the one before stopped.
func SweepEnded(ctx workflow.Context) (activities.EndedMark, error) {
	var (
		acts activities.Activities // only names the activity; nothing calls it
		mark activities.EndedMark
	)
	if workflow.HasLastCompletionResult(ctx) && workflow.GetLastCompletionResult(ctx, &mark) != nil {
		mark = activities.EndedMark{}
	}
	if err := workflow.ExecuteActivity(withSweepEnded(ctx), acts.Sweeper.SweepEnded, mark).Get(ctx, &mark); err != nil {
		return mark, fmt.Errorf("sweep what ended without its finish: %w", err)
	}
	return mark, nil
}

// FinishInput is a run of a task that ended without its finish.
type FinishInput struct {
	// Revision is the workflows' at the finish's start; that of Task is the task's own.
	Revision int `json:"revision"`
	// Task is what the run was started with; its Notify is false where the end was told before.
	Task Input `json:"task"`
	// Result is how its readers see it.
	Result Result    `json:"result"`
	Began  time.Time `json:"began"`
	// Channel is where it was last, "" for nowhere.
	Channel string `json:"channel,omitempty"`
}

// Finish does for a task that ended without its finish what that does: what the task held is given back, and its end is told.
func Finish(ctx workflow.Context, in FinishInput) error {
	refuseNewer(max(in.Revision, in.Task.Revision))
	v := &video{state: state{in: in.Task, phase: PhaseFailed, began: in.Began}}
	if in.Channel != "" {
		v.held = []string{in.Channel}
		v.tries = []try{{assignment: activities.Assignment{Channel: in.Channel}}}
	}
	told := v.notify(ctx, in.Result)
	v.release(ctx, in.Result)
	if told == nil {
		return nil
	}
	if err := told.Get(ctx, nil); err != nil && !temporal.IsWorkflowExecutionAlreadyStartedError(err) {
		return fmt.Errorf("start the webhook: %w", err)
	}
	return nil
}
