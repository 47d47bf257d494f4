package tasks

import (
	"context"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/providers"
	"modelrelay/storage/ledger"
	"modelrelay/storage/taskindex"
	"modelrelay/workflows"
)

const retryReason = "retry archive"

// Operator reads and controls the tasks of all tokens. Its errors are *providers.Fault if an operator can act on them: Invalid, NotFound,
// Conflict (the task's state does not permit it), Overloaded (Temporal is unavailable).
type Operator struct {
	// Charges returns the charge of a settled task, for Show; nil: Show does not report charges.
	Charges *ledger.Budgets
	// Changes reports the end of a call to its worker at once; nil: the worker learns of it with its next heartbeat.
	Changes *taskindex.Changes

	temporal             client.Client
	namespace, taskQueue string
	// counts holds the last counts of tasks.
	counts *sharedCache[struct{}, Counts]
	// turns bounds the concurrent reads of pages, which pages shares. described caches the descriptions of running tasks, by run.
	turns     chan struct{}
	pages     *sharedCache[pageKey, pageResult]
	described *sharedCache[string, *workflowpb.WorkflowExecutionInfo]
}

// NewOperator returns an Operator over a Temporal client, which the caller closes.
func NewOperator(temporal client.Client, namespace, taskQueue string) *Operator {
	o := &Operator{
		temporal: temporal, namespace: namespace, taskQueue: taskQueue, counts: newSharedCache[struct{}, Counts](countsTTL),
		turns: make(chan struct{}, pagesAtOnce), pages: newSharedCache[pageKey, pageResult](pageFor),
		described: newSharedCache[string, *workflowpb.WorkflowExecutionInfo](renewAfter),
	}
	o.counts.refreshAfter = countsRefresh
	return o
}

// Runs reports whether the execution with the id, of a task or its removal, is open.
func (o *Operator) Runs(ctx context.Context, id string) (bool, error) {
	answer, err := describeRun(ctx, o.temporal, id, "")
	if err != nil {
		return false, unavailable("The task engine", err)
	}
	return answer.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// Fail ends a running task as failed; the reason is the message for the client. It returns Conflict if the task has ended.
func (o *Operator) Fail(ctx context.Context, id, reason string) error {
	return o.end(ctx, id, func() error { return o.temporal.SignalWorkflow(ctx, id, "", workflows.SignalFail, reason) })
}

// Cancel cancels a running task as its client can. It returns Conflict if the task has ended.
func (o *Operator) Cancel(ctx context.Context, id string) error {
	return o.end(ctx, id, func() error { return o.temporal.CancelWorkflow(ctx, id, "") })
}

func (o *Operator) end(ctx context.Context, id string, request func() error) error {
	if err := o.ready(ctx, id); err != nil {
		return err
	}
	if err := request(); err != nil {
		return o.explain(id, err)
	}
	_ = publishCancel(ctx, o.Changes, id) // without it the end comes later
	return nil
}

// Task reads a task of any token; it returns Conflict for a task under removal.
func (o *Operator) Task(ctx context.Context, id string) (Task, error) {
	task, _, err := o.find(ctx, id)
	return task, err
}

// Wait returns when the task has ended, or after most.
func (o *Operator) Wait(ctx context.Context, id string, most time.Duration) {
	ctx, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	awaitEnd(ctx, o.temporal, id)
}

func (o *Operator) find(ctx context.Context, id string) (Task, *workflowservice.DescribeWorkflowExecutionResponse, error) {
	ctx, cancel := context.WithTimeout(interactive(ctx), readTimeout)
	defer cancel()
	answer, err := newest(ctx, o.temporal, o.namespace, id)
	if err != nil {
		return Task{}, nil, o.explain(id, err)
	}
	if isRemoval(answer) {
		return Task{}, nil, beingDeleted(id)
	}
	task, _, err := read(id, answer, time.Now())
	return task, answer, err
}

func beingDeleted(id string) *providers.Fault {
	return providers.Faultf(providers.Conflict, "%s is being deleted.", id)
}

func (o *Operator) ready(ctx context.Context, id string) error {
	task, answer, err := o.find(ctx, id)
	if err != nil {
		return err
	}
	if answer.GetWorkflowExecutionInfo().GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING || task.Ended() {
		return providers.Faultf(providers.Conflict, "%s has ended: it is %s.", id, task.State)
	}
	return nil
}

func (o *Operator) explain(id string, err error) error {
	if isGone(err) {
		return providers.Faultf(providers.NotFound, "There is no task %q in the namespace %q.", id, o.namespace)
	}
	return unavailable("The task engine", fmt.Errorf("read %s: %w", id, err))
}

// RetryArchive repeats the archive step of a task whose archive failed, with a new deadline.
func (o *Operator) RetryArchive(ctx context.Context, id string) error {
	task, answer, err := o.find(ctx, id)
	switch {
	case err != nil:
		return err
	case task.Failure == nil || task.Failure.Code != workflows.CodeArchiveFailed:
		return providers.Faultf(providers.Conflict, "%s is %s: only a task that failed with %s can archive again.", id, task.State,
			workflows.CodeArchiveFailed)
	case answer.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		// The execution still removes objects with the names that the next try writes.
		return providers.Faultf(providers.Conflict,
			"%s failed a moment ago and still removes its archived objects; try again in a minute.", id)
	}
	// The new run would escape a removal that has read the old one.
	switch removed, err := o.Runs(ctx, RemoveID(id, task.CreatedAt)); {
	case err != nil:
		return err
	case removed || task.removed:
		return beingDeleted(id)
	}
	execution := answer.GetWorkflowExecutionInfo().GetExecution()
	step, err := o.archiveStep(ctx, execution)
	if err != nil {
		return err
	}
	_, err = o.temporal.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: o.namespace, WorkflowExecution: execution, Reason: retryReason, WorkflowTaskFinishEventId: step,
		RequestId: execution.GetRunId() + " " + retryReason, // a repeated request resets once
		// The signals were for the try that failed.
		ResetReapplyExcludeTypes: []enumspb.ResetReapplyExcludeType{enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL},
	})
	if err != nil {
		return unavailable("The task engine", fmt.Errorf("reset %s: %w", id, err))
	}
	return nil
}

// archiveStep returns the id of the event that completed the workflow task that scheduled the archive.
func (o *Operator) archiveStep(ctx context.Context, execution *commonpb.WorkflowExecution) (int64, error) {
	var step int64
	history := o.temporal.GetWorkflowHistory(ctx, execution.GetWorkflowId(), execution.GetRunId(), false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for history.HasNext() {
		event, err := history.Next()
		if err != nil {
			return 0, o.explain(execution.GetWorkflowId(), err)
		}
		if scheduled := event.GetActivityTaskScheduledEventAttributes(); scheduled.GetActivityType().GetName() == "Archive" {
			step = scheduled.GetWorkflowTaskCompletedEventId()
		}
	}
	if step == 0 {
		return 0, providers.Faultf(providers.Conflict, "The history of %s has no archive step.", execution.GetWorkflowId())
	}
	return step, nil
}
