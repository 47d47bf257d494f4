package workflows

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
)

const (
	// deleteWait is how long a delete waits for its effect before it answers that the task is gone, as it is to readers.
	deleteWait = 2 * time.Second
	// removedRetry is what a create is told to wait whose key belongs to a task under removal.
	removedRetry = time.Second
)

// RemoveID is the id of the workflow that removes a task, told by its creation from others that had its id, or will.
func RemoveID(taskID string, created time.Time) string {
	return "delete_" + taskID + "_" + strconv.FormatInt(created.UnixNano(), 36)
}

// Delete removes a task with its objects and its history; a running one is cancelled first. When it returns nil every
// process reads the task as NotFound, and the removal goes on by itself where it takes longer than two seconds. Deleting
// again meanwhile is no error. Faults: NotFound, Overloaded (nothing was begun, or it goes on; repeating is safe).
func (c *Client) Delete(ctx context.Context, id, tokenID string) error {
	if !IsTaskID(id) {
		return notFound(id)
	}
	task, _, err := c.describe(ctx, id) // also one whose removal has begun: a repeat is safe
	switch {
	case err != nil:
		return err
	case task.Token != tokenID:
		return notFound(id)
	}
	if err := c.opts.Intake.Bury(ctx, tokenID, id, task.CreatedAt); err != nil {
		c.opts.Log.WarnContext(ctx, "task readable until it is removed", "task", id, "err", err)
	}
	c.reads.forget(id)
	run, err := c.remove(ctx, task)
	if err != nil {
		if err := c.opts.Intake.Unbury(context.WithoutCancel(ctx), tokenID, id, task.CreatedAt, !task.Ended()); err != nil {
			c.opts.Log.WarnContext(ctx, "task stays hidden", "task", id, "err", err)
		}
		c.reads.forget(id)
		return away("The task engine", fmt.Errorf("remove %s: %w", id, err))
	}
	c.opts.Log.InfoContext(ctx, "task deleted", "task", id, "token", tokenID)
	wait, cancel := context.WithTimeout(ctx, deleteWait)
	defer cancel()
	if err := run.Get(wait, nil); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		c.opts.Log.DebugContext(ctx, "removal takes longer", "task", id, "err", err)
	}
	c.reads.forget(id)
	return nil
}

// remove starts the removal, or finds the one under way.
func (c *Client) remove(ctx context.Context, task Task) (client.WorkflowRun, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	return c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       RemoveID(task.ID, task.CreatedAt),
		TaskQueue:                c.opts.TaskQueue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "remove " + task.ID,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			keyword(AttrModel).ValueSet(task.Request.Model), keyword(AttrToken).ValueSet(task.Token),
		),
	}, Remove, activities.RemoveInput{TaskID: task.ID, Token: task.Token, Created: task.CreatedAt})
}

func beingRemoved(id string) *providers.Fault {
	return &providers.Fault{
		Kind: providers.Conflict, Param: "Idempotency-Key", RetryAfter: removedRetry, Taken: providers.TakenNo,
		Message: fmt.Sprintf("The idempotency key belongs to %s, which is being deleted.", id),
	}
}
