package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
)

// RemoveType is the name of the workflow Remove.
const RemoveType = "Remove"

// RemovalQueue is the task queue of removals. It is not that of the tasks: however many are removed at once, submits and
// looks at jobs do not wait behind them.
func RemovalQueue(taskQueue string) string { return taskQueue + "-removals" }

// Remove takes a task away: it ends a running one, erases its objects, then its execution, in this order, so that until
// the end a create with the same key finds that the task is still there. It fails only when a part was away for a week.
// It runs under an id of its own, or where the task had ended under the task's; see package tasks.
func Remove(ctx workflow.Context, in activities.RemoveInput) error {
	refuseNewer(in.Revision)
	var acts activities.Activities // only names the activities; nothing calls it
	if in.Run != "" {              // nothing needs to be waited for
		if workflow.ExecuteLocalActivity(withRemovalNow(ctx), acts.Remover.Remove, in).Get(ctx, nil) == nil {
			return nil
		}
	}
	if err := workflow.ExecuteActivity(withRemoval(ctx, "remove it"), acts.Remover.Remove, in).Get(ctx, nil); err != nil {
		return fmt.Errorf("remove the task: %w", err)
	}
	return nil
}
