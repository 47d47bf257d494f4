package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
)

// RemoveType is the type of the workflow Remove.
const RemoveType = "Remove"

// RemovalQueue returns the task queue of removals. It is separate so that removals never delay submits and polls.
func RemovalQueue(taskQueue string) string { return taskQueue + "-removals" }

// Remove deletes a task: it cancels a running one, erases its objects, then its execution, so that a create with the same key finds the
// task until the end. It fails only if a dependency was away for a week. Its workflow id is its own or an ended task's.
func Remove(ctx workflow.Context, in activities.RemoveInput) error {
	refuseNewer(in.Revision)
	var acts activities.Activities // only names the activities; nothing calls it
	if in.Run != "" {              // the task has ended, so there is nothing to wait for
		if workflow.ExecuteLocalActivity(localOnce(ctx, removeQuick, "remove it"), acts.Remover.Remove, in).Get(ctx, nil) == nil {
			return nil
		}
	}
	if err := workflow.ExecuteActivity(retried(ctx, removeLimit, removeTry, "remove it"), acts.Remover.Remove, in).Get(ctx, nil); err != nil {
		return fmt.Errorf("remove the task: %w", err)
	}
	return nil
}
