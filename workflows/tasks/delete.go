package tasks

import (
	"context"
	"fmt"
	"strconv"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows"
)

const (
	// deleteWait is how long a delete waits for its effect. After it the answer is the same, since readers no longer see the task.
	deleteWait = 2 * time.Second
	// deleteCheckFirst is the first wait between two checks of the removal; each wait is twice as long as the one before. A long poll
	// would cost Temporal as much as a third of the removal: it answers at each of its events.
	deleteCheckFirst = 250 * time.Millisecond
	// removedRetry is the Retry-After of a create whose key belongs to a task under removal.
	removedRetry = time.Second
)

// RemoveID returns the id of the workflow that ends and removes a running task. The creation time distinguishes tasks with the same id.
func RemoveID(taskID string, created time.Time) string {
	return "delete_" + taskID + "_" + strconv.FormatInt(created.UnixNano(), 36)
}

// Delete removes a task with its objects and its history, and cancels a running one. When it returns nil, the removal is recorded in
// Temporal: every process reads the task as NotFound even without Redis, and the removal continues on its own if it takes longer than
// two seconds. A repeated delete succeeds. Faults: NotFound, Overloaded (nothing began, or it continues; repeating is safe).
func (c *Client) Delete(ctx context.Context, id, tokenID string) error {
	if !IsTaskID(id) {
		return notFound(id)
	}
	task, err := c.describeOwn(ctx, id, tokenID)
	if err != nil {
		return err
	}
	others := readTTL
	if err := c.hide(ctx, tokenID, id, task.CreatedAt); err != nil {
		others = renewableFor + readTTL // other processes may rely on the absence of the mark
		c.opts.Log.WarnContext(ctx, "removal not marked", "task", id, "error", err)
	}
	run, err := c.remove(ctx, task)
	if err != nil {
		if err := c.unhide(context.WithoutCancel(ctx), task); err != nil {
			c.opts.Log.WarnContext(ctx, "mark of a removal not cleared", "task", id, "error", err)
		}
		c.reads.forget(id)
		return unavailable("The task engine", fmt.Errorf("remove %s: %w", id, err))
	}
	c.reads.forget(id)
	c.opts.Log.InfoContext(ctx, "task deleted", "task", id, "token", tokenID)
	// For so long, other processes may return earlier reads: they may not have received the hint.
	latest := time.Now().Add(deleteWait)
	for wait, next := others, deleteCheckFirst; ; wait, next = next, 2*next {
		ended := storage.Sleep(ctx, wait) != nil
		if ended || time.Now().After(latest) || removalEnded(ctx, c.temporal, run) {
			break
		}
	}
	c.reads.forget(id)
	return nil //nolint:nilerr // the removal continues
}

// removalEnded reports whether a removal has ended, or has deleted itself. It is false if Temporal does not answer.
func removalEnded(ctx context.Context, engine client.Client, run client.WorkflowRun) bool {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	answer, err := describeRun(ctx, engine, run.GetID(), run.GetRunID())
	return err == nil && answer.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// hide marks a task whose removal begins, and publishes a hint for the other processes.
func (c *Client) hide(ctx context.Context, tokenID, id string, created time.Time) error {
	if err := c.opts.Index.MarkRemoval(ctx, tokenID, id, created); err != nil {
		return err
	}
	return c.opts.Changes.Publish(ctx, taskindex.Change{TaskID: id, Report: taskindex.Ended})
}

// unhide reverts hide for a task whose removal did not begin.
func (c *Client) unhide(ctx context.Context, task Task) error {
	if err := c.opts.Index.EndRemoval(ctx, task.ID, task.CreatedAt); err != nil {
		return err
	}
	return c.opts.Index.Restore(ctx, task.Token, task.ID, task.CreatedAt, !task.Ended())
}

// describeOwn is Find without a cache. It also returns a task whose removal has begun, so that a delete can be repeated.
func (c *Client) describeOwn(ctx context.Context, id, tokenID string) (Task, error) {
	leave, err := c.readTurn(ctx, tokenID)
	if err != nil {
		return Task{}, err
	}
	defer leave()
	if err := c.unknownIDs.admit(id, tokenID, true); err != nil {
		return Task{}, err
	}
	task, _, err := c.describe(ctx, id)
	if err == nil && task.Token != tokenID {
		err = notFound(id)
	}
	if isNotFound(err) {
		c.unknownIDs.missed(id, tokenID, false)
	}
	return task, err
}

// remove starts the removal, or finds the running one, and marks the task in Temporal.
func (c *Client) remove(ctx context.Context, task Task) (client.WorkflowRun, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	var run client.WorkflowRun
	if !task.Ended() {
		var err error
		if run, err = c.endAndRemove(ctx, task); err != nil {
			return nil, err
		}
	}
	switch answer, err := c.mark(ctx, task); {
	case err != nil:
		return nil, err
	case answer.GetStarted():
		return c.temporal.GetWorkflow(ctx, task.ID, answer.GetRunId()), nil
	case run != nil:
		return run, nil
	default: // another delete was first, or the task runs again after RetryArchive
		return c.endAndRemove(ctx, task)
	}
}

// endAndRemove starts the removal of a running task, or finds the running removal, and cancels the task.
func (c *Client) endAndRemove(ctx context.Context, task Task) (client.WorkflowRun, error) {
	run, err := c.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                       RemoveID(task.ID, task.CreatedAt),
		TaskQueue:                workflows.RemovalQueue(c.opts.TaskQueue),
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_USE_EXISTING,
		StaticSummary:            "remove " + task.ID,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			workflows.Keyword(workflows.AttrModel).ValueSet(task.Request.Model), workflows.Keyword(workflows.AttrToken).ValueSet(task.Token),
		),
	}, workflows.Remove, activities.RemoveInput{TaskID: task.ID, Token: task.Token, Created: task.CreatedAt, Revision: workflows.Revision})
	if err != nil {
		return nil, err
	}
	// The removal cancels it too. Until then a new execution of the task could start without the mark.
	if err := c.temporal.SignalWorkflow(ctx, task.ID, task.run, workflows.SignalRemove, nil); err != nil && !isGone(err) {
		return nil, fmt.Errorf("announce the removal: %w", err)
	}
	if err := c.cancel(ctx, task.ID, task.run); err != nil && !isGone(err) {
		return nil, fmt.Errorf("cancel: %w", err)
	}
	return run, nil
}

func keyBeingDeleted(id string) *providers.Fault {
	return &providers.Fault{
		Kind: providers.Conflict, Param: "Idempotency-Key", RetryAfter: removedRetry, Accepted: providers.NotAccepted,
		Message: fmt.Sprintf("The idempotency key belongs to %s, which is being deleted.", id),
	}
}
