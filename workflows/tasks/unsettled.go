package tasks

import (
	"context"
	"errors"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"modelrelay/providers"
	"modelrelay/workflows"
)

const (
	// endedPage is the number of closed tasks that one visibility request reads.
	endedPage = 100
	// endedQuery finds tasks that closed without settlement. If the task has a later run, it continues: see Finish.
	endedQuery = workflows.OfTasks + " AND ExecutionStatus IN ('Terminated', 'Failed', 'TimedOut', 'Canceled')"
)

// unfinishedResult returns the result of a task whose execution closed without writing one.
func unfinishedResult(info *workflowpb.WorkflowExecutionInfo) workflows.Result {
	failure := &providers.VideoFailure{Code: workflows.CodeInternal, Message: "The task was ended by an internal error."}
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED {
		failure = &providers.VideoFailure{Code: workflows.CodeFailedByOperator, Message: "An operator ended the task."}
	}
	return workflows.Result{State: workflows.Failed, Ending: workflows.Ending{CompletedAt: info.GetCloseTime().AsTime(), Failure: failure}}
}

// Finish implements activities.Executions. The workflow's id contains the run, so it starts once; a finished run costs one Describe.
func (e Executions) Finish(ctx context.Context, since time.Time, cursor []byte) (next []byte, err error) {
	query := endedQuery
	if !since.IsZero() {
		query += fmt.Sprintf(" AND CloseTime >= '%s'", since.UTC().Format(time.RFC3339Nano))
	}
	answer, err := e.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: e.namespace, PageSize: endedPage, NextPageToken: cursor, Query: query,
	})
	if _, invalid := errors.AsType[*serviceerror.InvalidArgument](err); invalid && len(cursor) > 0 {
		return e.Finish(ctx, since, nil) // the server was replaced, which invalidates its cursors
	}
	if err != nil {
		return nil, fmt.Errorf("list closed tasks: %w", err)
	}
	for _, info := range answer.GetExecutions() {
		if err := e.finish(ctx, info.GetExecution().GetWorkflowId(), info.GetExecution().GetRunId()); err != nil {
			return nil, fmt.Errorf("finish %s: %w", info.GetExecution().GetWorkflowId(), err)
		}
	}
	return answer.GetNextPageToken(), nil
}

// finish starts the workflow Finish for a run, unless it was started before, or a reset continued the task.
func (e Executions) finish(ctx context.Context, id, run string) error {
	if known, err := e.exists(ctx, workflows.FinishID(id, run), ""); err != nil || known {
		return err
	}
	answer, err := describeRun(ctx, e.temporal, id, "")
	info := answer.GetWorkflowExecutionInfo()
	if err != nil || info.GetExecution().GetRunId() != run {
		return err
	}
	_, m, err := read(id, answer, time.Now())
	if err != nil {
		return nil //nolint:nilerr // another program started an execution of the same type
	}
	first, err := e.temporal.GetWorkflowHistory(ctx, id, run, false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Next()
	if isGone(err) {
		return nil
	}
	if err != nil {
		return fmt.Errorf("read the history: %w", err)
	}
	in := workflows.FinishInput{
		Revision: workflows.Revision, Result: unfinishedResult(info), Began: info.GetStartTime().AsTime(),
		Channel: listed(info).Channel,
	}
	if in.Task, err = inputOf(id, first); err != nil {
		return nil //nolint:nilerr // as above
	}
	if b := in.Task.Before; b != nil {
		in.Began = b.Began
	}
	if request := in.Task.Request; request != nil { // the rest of the request must not outlive the task's removal
		in.Task.Request = &providers.VideoRequest{WebhookURL: request.WebhookURL}
	}
	if ended, err := memoField(info, workflows.MemoResult, &in.Result); err != nil {
		return err
	} else if ended {
		started, err := e.exists(ctx, in.Task.NotifyID(in.Result.State), "")
		if err != nil {
			return err
		}
		in.Task.Notify = in.Task.Notify && !started
	}
	_, err = e.temporal.ExecuteWorkflow(ctx, client.StartWorkflowOptions{
		ID:                    workflows.FinishID(id, run),
		TaskQueue:             e.taskQueue,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_REJECT_DUPLICATE,
		StaticSummary:         "finish " + id,
		TypedSearchAttributes: temporal.NewSearchAttributes(
			workflows.Keyword(workflows.AttrModel).ValueSet(in.Task.Model), workflows.Keyword(workflows.AttrToken).ValueSet(m.Token),
		),
	}, workflows.Finish, in)
	if err != nil {
		return fmt.Errorf("start: %w", err)
	}
	return nil
}

// exists reports whether Temporal has a run of an execution, open or closed; "" is the newest.
func (e Executions) exists(ctx context.Context, id, run string) (bool, error) {
	answer, err := describeRun(ctx, e.temporal, id, run)
	return answer != nil, err
}
