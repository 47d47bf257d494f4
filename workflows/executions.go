package workflows

import (
	"context"
	"errors"
	"fmt"
	"path"
	"slices"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/activities"
)

// closeWait is how long a look at an ending task waits for its end, so that most removals take a moment.
const closeWait = 2 * time.Second

// runsMost bounds the runs of one task that are deleted at a time; resets make more than one.
const runsMost = 100

// executions implements activities.Executions over Temporal.
type executions struct {
	temporal  client.Client
	namespace string
}

// End implements activities.Executions.
func (e executions) End(ctx context.Context, taskID string) (activities.Standing, error) {
	info, err := e.look(ctx, taskID)
	if err != nil || info == nil {
		return activities.Standing{Closed: err == nil}, err
	}
	if info.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		if err := e.temporal.CancelWorkflow(ctx, taskID, ""); err != nil && !isGone(err) {
			return activities.Standing{}, fmt.Errorf("cancel: %w", err)
		}
		wait, cancel := context.WithTimeout(ctx, closeWait)
		defer cancel()
		_ = e.temporal.GetWorkflow(wait, taskID, "").Get(wait, nil) // how it ended is the next look's to see
		if info, err = e.look(ctx, taskID); err != nil || info == nil {
			return activities.Standing{Closed: err == nil}, err
		}
	}
	if info.GetWorkflowExecutionInfo().GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return activities.Standing{}, nil
	}
	task, m, err := read(taskID, info, time.Now())
	if err != nil {
		return activities.Standing{}, err
	}
	standing := activities.Standing{
		Closed: true, Life: m.Life, Run: info.GetWorkflowExecutionInfo().GetExecution().GetRunId(),
		Started: info.GetWorkflowExecutionInfo().GetStartTime().AsTime(),
	}
	for _, output := range task.Outputs {
		if folder := path.Dir(output.Object) + "/"; !slices.Contains(standing.Outputs, folder) {
			standing.Outputs = append(standing.Outputs, folder)
		}
	}
	return standing, nil
}

// look describes a task's newest run; nil where there is none.
func (e executions) look(ctx context.Context, taskID string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	info, err := e.temporal.DescribeWorkflowExecution(ctx, taskID, "")
	switch {
	case isGone(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("describe: %w", err)
	}
	return info, nil
}

// Delete implements activities.Executions. Runs that a reset left behind are found by visibility, which may be late: those
// it misses are no task to anyone and end with the namespace's retention.
func (e executions) Delete(ctx context.Context, taskID string, standing activities.Standing) (bool, error) {
	if standing.Run == "" {
		return true, nil
	}
	listed, err := e.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
		Namespace: e.namespace, PageSize: runsMost,
		Query: fmt.Sprintf("WorkflowId = '%s' AND StartTime < '%s'", taskID, standing.Started.Format(time.RFC3339Nano)),
	})
	if err != nil {
		return false, fmt.Errorf("list runs: %w", err)
	}
	runs := []string{standing.Run}
	for _, info := range listed.GetExecutions() {
		runs = append(runs, info.GetExecution().GetRunId())
	}
	known := 0
	for _, run := range runs {
		_, err := e.temporal.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace: e.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: taskID, RunId: run},
		})
		switch {
		case err == nil:
			known++
		case !isGone(err):
			return false, fmt.Errorf("delete run: %w", err)
		}
	}
	return known == 0, nil
}

// isGone tells that Temporal knows no such execution.
func isGone(err error) bool {
	_, gone := errors.AsType[*serviceerror.NotFound](err)
	return gone
}
