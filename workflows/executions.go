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
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/activities"
)

// closeWait is how long a look at an ending task waits for its end, so that most removals take a moment.
const closeWait = 2 * time.Second

// runsMost bounds the runs of one task that are deleted at a time; resets make more than one.
const runsMost = 100

// executions implements activities.Executions and activities.Endings over Temporal.
type executions struct {
	temporal             client.Client
	namespace, taskQueue string
}

// End implements activities.Executions.
func (e executions) End(ctx context.Context, in activities.RemoveInput) (activities.Standing, error) {
	info, task, life, err := e.look(ctx, in)
	if err != nil || info == nil {
		return activities.Standing{Closed: err == nil}, err
	}
	run := info.GetExecution().GetRunId()
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		if err := e.temporal.CancelWorkflow(ctx, in.TaskID, run); err != nil && !isGone(err) {
			return activities.Standing{}, fmt.Errorf("cancel: %w", err)
		}
		wait, cancel := context.WithTimeout(ctx, closeWait)
		defer cancel()
		_ = e.temporal.GetWorkflow(wait, in.TaskID, run).Get(wait, nil) // how it ended is the next look's to see
		if info, task, life, err = e.look(ctx, in); err != nil || info == nil {
			return activities.Standing{Closed: err == nil}, err
		}
	}
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		return activities.Standing{}, nil
	}
	standing := activities.Standing{
		Closed: true, Life: life, Run: info.GetExecution().GetRunId(), Started: info.GetStartTime().AsTime(),
	}
	for _, output := range task.Outputs {
		if folder := path.Dir(output.Object) + "/"; !slices.Contains(standing.Outputs, folder) {
			standing.Outputs = append(standing.Outputs, folder)
		}
	}
	return standing, nil
}

// look describes a task's newest run; nil where there is none, or it is another task's.
func (e executions) look(ctx context.Context, in activities.RemoveInput) (info *workflowpb.WorkflowExecutionInfo, task Task, life string, err error) {
	answer, err := e.temporal.DescribeWorkflowExecution(ctx, in.TaskID, "")
	switch {
	case isGone(err):
		return nil, Task{}, "", nil
	case err != nil:
		return nil, Task{}, "", fmt.Errorf("describe: %w", err)
	}
	task, m, err := read(in.TaskID, answer, time.Now())
	if err != nil {
		return nil, Task{}, "", err
	}
	if !in.Created.IsZero() && !in.Created.Equal(task.CreatedAt) {
		return nil, Task{}, "", nil
	}
	return answer.GetWorkflowExecutionInfo(), task, m.Life, nil
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
