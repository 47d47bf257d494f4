package workflows

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
)

const (
	// sweepEvery is how often expired outputs are looked for; nobody can read them from their expiry on.
	sweepEvery = time.Hour
	// sweepTasksHour is the hour of the day, in UTC, whose sweep also looks through what tasks keep beside their outputs:
	// a walk through many objects.
	sweepTasksHour = 3
)

// SweepID is the id of the Schedule that sweeps the archive of a task queue's tasks.
func SweepID(taskQueue string) string { return "sweep-" + taskQueue }

// Sweep removes from the archive what has expired.
func Sweep(ctx workflow.Context) (activities.Swept, error) {
	var (
		acts    activities.Activities // only names the activities; nothing calls it
		swept   activities.Swept
		objects activities.Swept
	)
	if err := workflow.ExecuteActivity(withSweep(ctx, "expired outputs"), acts.Sweeper.SweepOutputs).Get(ctx, &swept); err != nil {
		return swept, fmt.Errorf("sweep outputs: %w", err)
	}
	if workflow.Now(ctx).UTC().Hour() != sweepTasksHour {
		return swept, nil
	}
	if err := workflow.ExecuteActivity(withSweep(ctx, "objects of old tasks"), acts.Sweeper.SweepTasks).Get(ctx, &objects); err != nil {
		return swept, fmt.Errorf("sweep tasks: %w", err)
	}
	swept.Objects = objects.Objects
	return swept, nil
}

// EnsureSweep makes the Schedule that sweeps the archive, or brings an older one up to date. Several workers may do so at a
// time.
func EnsureSweep(ctx context.Context, engine client.Client, taskQueue string) error {
	return ensureSchedule(ctx, engine, sweepEvery, "Removes expired videos and what old tasks left in the archive.",
		&client.ScheduleWorkflowAction{ID: SweepID(taskQueue), Workflow: Sweep, TaskQueue: taskQueue})
}

// ensureSchedule makes a Schedule under the id of its action, or brings an older one up to date.
func ensureSchedule(ctx context.Context, engine client.Client, every time.Duration, note string, action *client.ScheduleWorkflowAction) error {
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
	_, err := engine.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: action.ID, Spec: spec, Action: action, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: every, Note: note,
	})
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		if err != nil {
			return fmt.Errorf("make the schedule %s: %w", action.ID, err)
		}
		return nil
	}
	// What an operator changed beside the action and its times, a pause for one, stays.
	err = engine.ScheduleClient().GetHandle(ctx, action.ID).Update(ctx, client.ScheduleUpdateOptions{
		DoUpdate: func(was client.ScheduleUpdateInput) (*client.ScheduleUpdate, error) {
			schedule := was.Description.Schedule
			schedule.Spec, schedule.Action = &spec, action
			return &client.ScheduleUpdate{Schedule: &schedule}, nil
		},
	})
	if err != nil {
		return fmt.Errorf("update the schedule %s: %w", action.ID, err)
	}
	return nil
}
