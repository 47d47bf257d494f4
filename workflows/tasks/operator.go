package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/providers"
	"modelrelay/workflows"
)

// retryReason stands in the history of a task whose archive is tried again.
const retryReason = "retry archive"

// Operator sees and moves the tasks of all tokens. Its errors are *providers.Fault where an operator can do something about
// them: Invalid, NotFound, Conflict (the task's state does not allow it), Overloaded (Temporal is away).
type Operator struct {
	// Charges returns what a settled task was charged, for Show; nil: Show does not report charges.
	Charges Charges

	temporal   client.Client
	namespace  string
	visibility *visibility
}

// Charges reads what tasks were charged, by the reservation that names their money. *ledger.Budgets implements it.
type Charges interface {
	// Charge returns billionths of the currency; false for a task that is not settled.
	Charge(ctx context.Context, reservation string) (amount int64, settled bool, err error)
}

// NewOperator makes an Operator over a Temporal client, which stays the caller's to close.
func NewOperator(temporal client.Client, namespace string) *Operator {
	return &Operator{temporal: temporal, namespace: namespace, visibility: newVisibility(temporal, namespace)}
}

// Runs tells whether the execution, a task's or its removal's, is open.
func (o *Operator) Runs(ctx context.Context, id string) (bool, error) {
	answer, err := o.temporal.DescribeWorkflowExecution(ctx, id, "")
	var gone *serviceerror.NotFound
	switch {
	case errors.As(err, &gone):
		return false, nil
	case err != nil:
		return false, away("The task engine", fmt.Errorf("describe %s: %w", id, err))
	}
	return answer.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING, nil
}

// Fail ends a running task as failed; the client reads the reason. One whose end is written is a Conflict.
func (o *Operator) Fail(ctx context.Context, id, reason string) error {
	if err := o.ready(ctx, id); err != nil {
		return err
	}
	if err := o.temporal.SignalWorkflow(ctx, id, "", workflows.SignalFail, reason); err != nil {
		return o.explain(id, err)
	}
	return nil
}

// Cancel ends a running task as its client could.
func (o *Operator) Cancel(ctx context.Context, id string) error {
	if err := o.ready(ctx, id); err != nil {
		return err
	}
	if err := o.temporal.CancelWorkflow(ctx, id, ""); err != nil {
		return o.explain(id, err)
	}
	return nil
}

// Task reads a task of any token; one under removal is a Conflict.
func (o *Operator) Task(ctx context.Context, id string) (Task, error) {
	task, _, err := o.find(ctx, id)
	return task, err
}

// Wait returns the task when it has ended, or as it is after so long.
func (o *Operator) Wait(ctx context.Context, id string, most time.Duration) (Task, error) {
	ending, cancel := context.WithTimeout(ctx, most)
	defer cancel()
	awaitEnd(ending, o.temporal, id)
	task, _, err := o.find(ctx, id)
	return task, err
}

// find describes a task.
func (o *Operator) find(ctx context.Context, id string) (Task, *workflowservice.DescribeWorkflowExecutionResponse, error) {
	ctx, cancel := context.WithTimeout(looking(ctx), readTimeout)
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

// ready is nil for a task that can be called off: it has not ended.
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
	return away("The task engine", fmt.Errorf("ask about %s: %w", id, err))
}

// RetryArchive lets a task whose archive failed try it again, with the whole time that an archive has. The history before
// it stays; the run id is that of the new execution.
func (o *Operator) RetryArchive(ctx context.Context, id string) (run string, err error) {
	task, answer, err := o.find(ctx, id)
	switch {
	case err != nil:
		return "", err
	case task.Failure == nil || task.Failure.Code != workflows.CodeArchiveFailed:
		return "", providers.Faultf(providers.Conflict, "%s is %s: only a task that failed with %s can archive again.", id, task.State, workflows.CodeArchiveFailed)
	case answer.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING:
		// It removes what its archive left, under the names that the next try writes to.
		return "", providers.Faultf(providers.Conflict, "%s has failed a moment ago and still removes what is left of its archive; try again in a minute.", id)
	}
	// A new execution would outlive the removal, which has seen the old one.
	switch removed, err := o.Runs(ctx, RemoveID(id, task.CreatedAt)); {
	case err != nil:
		return "", err
	case removed || task.removed:
		return "", beingDeleted(id)
	}
	execution := answer.GetWorkflowExecutionInfo().GetExecution()
	step, err := o.archiveStep(ctx, execution)
	if err != nil {
		return "", err
	}
	reset, err := o.temporal.ResetWorkflowExecution(ctx, &workflowservice.ResetWorkflowExecutionRequest{
		Namespace: o.namespace, WorkflowExecution: execution, Reason: retryReason, WorkflowTaskFinishEventId: step,
		RequestId: execution.GetRunId() + " " + retryReason, // asked twice it resets once
		// What called the task off before was meant for the try that has failed.
		ResetReapplyExcludeTypes: []enumspb.ResetReapplyExcludeType{enumspb.RESET_REAPPLY_EXCLUDE_TYPE_SIGNAL},
	})
	if err != nil {
		return "", away("The task engine", fmt.Errorf("reset %s: %w", id, err))
	}
	return reset.GetRunId(), nil
}

// archiveStep is the event of the workflow task that scheduled the archive.
func (o *Operator) archiveStep(ctx context.Context, execution *commonpb.WorkflowExecution) (int64, error) {
	var step int64
	history := o.temporal.GetWorkflowHistory(ctx, execution.GetWorkflowId(), execution.GetRunId(), false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
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
