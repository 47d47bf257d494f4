package workflows

import (
	"fmt"

	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
)

// Remove takes a task away: it ends a running one, erases its objects, then its execution, in this order, so that until
// the end a create with the same key finds that the task is still there. It fails only when a part was away for a week.
// It runs under an id of its own, or where the task had ended under the task's; see Client.Delete.
func Remove(ctx workflow.Context, in activities.RemoveInput) error {
	var acts *activities.Activities // only names the activities; nothing calls it
	ended := activities.Ended{RemoveInput: in}
	if err := workflow.ExecuteActivity(withRemoval(ctx, "end it"), acts.CallOff, in).Get(ctx, &ended.Standing); err != nil {
		return fmt.Errorf("end the task: %w", err)
	}
	if err := workflow.ExecuteActivity(withRemoval(ctx, "erase its objects"), acts.Erase, ended).Get(ctx, nil); err != nil {
		return fmt.Errorf("erase objects: %w", err)
	}
	if err := workflow.ExecuteActivity(withRemoval(ctx, "delete its history"), acts.Forget, ended).Get(ctx, nil); err != nil {
		return fmt.Errorf("delete the execution: %w", err)
	}
	return nil
}
