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
	// sweepEvery is the interval between two sweeps. Expired outputs cannot be read even before a sweep removes them.
	sweepEvery = time.Hour
	// sweepTasksHour is the hour of the day, in UTC, whose sweep also removes other objects of old tasks. That lists many objects.
	sweepTasksHour = 3
)

// SweepID returns the id of the Schedule that sweeps the archive for a task queue.
func SweepID(taskQueue string) string { return "sweep-" + taskQueue }

// Sweep removes expired objects from the archive.
func Sweep(ctx workflow.Context) (activities.Swept, error) {
	var (
		acts    activities.Activities // only names the activities; nothing calls it
		swept   activities.Swept
		objects activities.Swept
	)
	if err := workflow.ExecuteActivity(withHeartbeats(ctx, sweepLimit, "expired outputs"), acts.Sweeper.SweepOutputs).Get(ctx, &swept); err != nil {
		return swept, fmt.Errorf("sweep outputs: %w", err)
	}
	if workflow.Now(ctx).UTC().Hour() != sweepTasksHour {
		return swept, nil
	}
	if err := workflow.ExecuteActivity(withHeartbeats(ctx, sweepLimit, "objects of old tasks"), acts.Sweeper.SweepTasks).Get(ctx, &objects); err != nil {
		return swept, fmt.Errorf("sweep tasks: %w", err)
	}
	swept.Objects = objects.Objects
	return swept, nil
}

// EnsureSweep creates the Schedule of Sweep, or updates an existing one. Several workers may do so at once.
func EnsureSweep(ctx context.Context, engine client.Client, taskQueue string) error {
	return ensureSchedule(ctx, engine, sweepEvery, "Removes expired outputs, and objects of old tasks, from the archive.",
		&client.ScheduleWorkflowAction{ID: SweepID(taskQueue), Workflow: Sweep, TaskQueue: taskQueue})
}

// ensureSchedule creates a Schedule with the id of its action, or updates the interval and action of an existing one.
func ensureSchedule(
	ctx context.Context, engine client.Client, every time.Duration, note string, action *client.ScheduleWorkflowAction,
) error {
	spec := client.ScheduleSpec{Intervals: []client.ScheduleIntervalSpec{{Every: every}}}
	_, err := engine.ScheduleClient().Create(ctx, client.ScheduleOptions{
		ID: action.ID, Spec: spec, Action: action, Overlap: enumspb.SCHEDULE_OVERLAP_POLICY_SKIP, CatchupWindow: every, Note: note,
	})
	if !errors.Is(err, temporal.ErrScheduleAlreadyRunning) {
		if err != nil {
			return fmt.Errorf("create the schedule %s: %w", action.ID, err)
		}
		return nil
	}
	// Other changes by an operator, such as a pause, stay.
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
