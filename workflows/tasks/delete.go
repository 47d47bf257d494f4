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
	"modelrelay/storage/taskindex"
	"modelrelay/workflows"
)

const (
	// deleteWait is how long a delete waits for its effect before it answers that the task is gone, as it is to readers.
	deleteWait = 2 * time.Second
	// deleteLook is the first wait between two looks at whether it has, each twice as long as the one before. A long poll of a
	// removal that deletes itself costs the engine as much as a third of the removal: it answers at each of its events.
	deleteLook = 250 * time.Millisecond
	// hintTimeout bounds the telling of a removal, which nothing depends on.
	hintTimeout = 250 * time.Millisecond
	// removedRetry is what a create is told to wait whose key belongs to a task under removal.
	removedRetry = time.Second
)

// RemoveID is the id of the workflow that ends and removes a running task, told by its creation from others that had its
// id, or will.
func RemoveID(taskID string, created time.Time) string {
	return "delete_" + taskID + "_" + strconv.FormatInt(created.UnixNano(), 36)
}

// Delete removes a task with its objects and its history; a running one is cancelled first. When it returns nil Temporal
// says of the task that it is being removed, so that every process reads it as NotFound whether Redis tells it or not, and
// the removal goes on by itself where it takes longer than two seconds. Deleting again meanwhile is no error. Faults:
// NotFound, Overloaded (nothing was begun, or it goes on; repeating is safe).
func (c *Client) Delete(ctx context.Context, id, tokenID string) error {
	if !IsTaskID(id) {
		return notFound(id)
	}
	task, err := c.describeOwn(ctx, id, tokenID)
	if err != nil {
		return err
	}
	others := readFor
	if err := c.bury(ctx, tokenID, id, task.CreatedAt); err != nil {
		others = keepFor + readFor // they look for the mark, which is not there
		c.opts.Log.WarnContext(ctx, "removal not hinted", "task", id, "err", err)
	}
	run, err := c.remove(ctx, task)
	if err != nil {
		if err := c.unbury(context.WithoutCancel(ctx), task); err != nil {
			c.opts.Log.WarnContext(ctx, "removal still hinted", "task", id, "err", err)
		}
		c.reads.forget(id)
		return away("The task engine", fmt.Errorf("remove %s: %w", id, err))
	}
	c.reads.forget(id)
	c.opts.Log.InfoContext(ctx, "task deleted", "task", id, "token", tokenID)
	// Other processes may answer from a look before the removal for so long. A hint would end that, but nobody can tell
	// whether they have heard it.
	latest := time.Now().Add(deleteWait)
	for wait, next := others, deleteLook; ; wait, next = next, 2*next {
		pause := time.NewTimer(wait)
		select {
		case <-pause.C:
		case <-ctx.Done(): // nobody waits for the answer
			pause.Stop()
			c.reads.forget(id)
			return nil
		}
		if time.Now().After(latest) || removalOver(ctx, c.temporal, run) {
			break
		}
	}
	c.reads.forget(id)
	return nil
}

// removalOver tells whether a removal has ended, or has deleted itself. It is not over where Temporal does not say.
func removalOver(ctx context.Context, engine client.Client, run client.WorkflowRun) bool {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	answer, err := engine.DescribeWorkflowExecution(ctx, run.GetID(), run.GetRunID())
	if err != nil {
		return isGone(err)
	}
	return answer.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING
}

// bury hides a task whose removal begins, here at once and in other processes as soon as they hear of it.
func (c *Client) bury(ctx context.Context, tokenID, id string, created time.Time) error {
	if err := c.opts.Index.Bury(ctx, tokenID, id, created); err != nil {
		return err
	}
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), hintTimeout)
	defer cancel()
	return c.opts.Changes.Publish(ctx, taskindex.Change{TaskID: id, Ended: true})
}

// unbury shows a task again whose removal did not begin.
func (c *Client) unbury(ctx context.Context, task Task) error {
	if err := c.opts.Index.Lift(ctx, task.ID, task.CreatedAt); err != nil {
		return err
	}
	return c.opts.Index.Restore(ctx, task.Token, task.ID, task.CreatedAt, !task.Ended())
}

// describeOwn reads a task of the token as Find does, but now, and also one whose removal has begun: a repeat is safe.
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

// remove begins the removal, or finds the one under way, and has Temporal say so of the task.
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
	default: // another delete came first, or the task runs again: an operator had its archive tried once more
		return c.endAndRemove(ctx, task)
	}
}

// endAndRemove starts the removal of a task that runs, or finds the one under way, and calls the task off.
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
	// The removal does it as well; by then a new execution could have taken the task over, which lacks the mark.
	if err := c.temporal.CancelWorkflow(ctx, task.ID, task.run); err != nil && !isGone(err) {
		return nil, fmt.Errorf("cancel: %w", err)
	}
	return run, nil
}

func beingRemoved(id string) *providers.Fault {
	return &providers.Fault{
		Kind: providers.Conflict, Param: "Idempotency-Key", RetryAfter: removedRetry, Accepted: providers.NotAccepted,
		Message: fmt.Sprintf("The idempotency key belongs to %s, which is being deleted.", id),
	}
}
