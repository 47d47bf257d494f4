package tasks

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
	"modelrelay/workflows"
)

// runsMost bounds the runs of one task that one query returns. Resets create additional runs.
const runsMost = 100

// Executions implements activities.Executions over Temporal.
type Executions struct {
	temporal             client.Client
	namespace, taskQueue string
}

// NewExecutions returns the Executions of a task queue's tasks, for a worker's activities.
func NewExecutions(temporal client.Client, namespace, taskQueue string) Executions {
	return Executions{temporal: temporal, namespace: namespace, taskQueue: taskQueue}
}

// End implements activities.Executions.
func (e Executions) End(ctx context.Context, in activities.RemoveInput) (activities.Execution, error) {
	answer, task, err := e.describe(ctx, in)
	if err != nil || answer == nil {
		return activities.Execution{Closed: err == nil}, err
	}
	info, more := answer.GetWorkflowExecutionInfo(), answer.GetWorkflowExtendedInfo()
	run := info.GetExecution().GetRunId()
	if info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		if more.GetCancelRequested() {
			return activities.Execution{}, nil
		}
		if err := e.temporal.SignalWorkflow(ctx, in.TaskID, run, workflows.SignalRemove, nil); err != nil && !isGone(err) {
			return activities.Execution{}, fmt.Errorf("announce the removal: %w", err)
		}
		if err := e.temporal.CancelWorkflow(ctx, in.TaskID, run); err != nil && !isGone(err) {
			return activities.Execution{}, fmt.Errorf("cancel: %w", err)
		}
		return activities.Execution{}, nil
	}
	execution := activities.Execution{
		Closed: true, Incarnation: task.incarnation, Run: run, Started: info.GetStartTime().AsTime(),
		Single: more.GetLastResetTime() == nil && (info.GetFirstRunId() == "" || info.GetFirstRunId() == run),
	}
	if task.Call != nil {
		execution.Copy = task.Call.Copy
	}
	for _, output := range task.Outputs {
		if folder := path.Dir(output.Object) + "/"; !slices.Contains(execution.Outputs, folder) {
			execution.Outputs = append(execution.Outputs, folder)
		}
	}
	return execution, nil
}

// describe describes the newest run of the task; nil if there is none, or it is of another task with the id.
func (e Executions) describe(ctx context.Context, in activities.RemoveInput) (
	answer *workflowservice.DescribeWorkflowExecutionResponse, task Task, err error,
) {
	for run := in.Run; ; run = task.run {
		if run == "" {
			answer, err = newest(ctx, e.temporal, e.namespace, in.TaskID)
		} else {
			answer, err = e.temporal.DescribeWorkflowExecution(ctx, in.TaskID, run)
		}
		switch {
		case isGone(err):
			return nil, Task{}, nil
		case err != nil:
			return nil, Task{}, fmt.Errorf("describe: %w", err)
		}
		if task, _, err = read(in.TaskID, answer, time.Now()); err != nil {
			return nil, Task{}, err
		}
		if !in.Created.Equal(task.CreatedAt) {
			return nil, Task{}, nil
		}
		if run != "" || !isRemoval(answer) {
			return answer, task, nil
		}
		// The execution under the task's id is the removal; its memo has the run of the task.
	}
}

// Delete implements activities.Executions. Runs before a reset that visibility does not list yet end with the namespace's retention.
func (e Executions) Delete(ctx context.Context, taskID string, standing activities.Execution) ([]string, error) {
	if standing.Run == "" {
		return nil, nil
	}
	runs := []string{standing.Run}
	if !standing.Single {
		listed, err := e.temporal.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{
			Namespace: e.namespace, PageSize: runsMost,
			Query: fmt.Sprintf("WorkflowId = '%s' AND StartTime < '%s'", taskID, standing.Started.Format(time.RFC3339Nano)),
		})
		if err != nil {
			return nil, fmt.Errorf("list runs: %w", err)
		}
		for _, info := range listed.GetExecutions() {
			runs = append(runs, info.GetExecution().GetRunId())
		}
	}
	var known []string
	for _, run := range runs {
		_, err := e.temporal.WorkflowService().DeleteWorkflowExecution(ctx, &workflowservice.DeleteWorkflowExecutionRequest{
			Namespace: e.namespace, WorkflowExecution: &commonpb.WorkflowExecution{WorkflowId: taskID, RunId: run},
		})
		switch {
		case err == nil:
			known = append(known, run)
		case !isGone(err):
			return nil, fmt.Errorf("delete run: %w", err)
		}
	}
	return known, nil
}

// LaterEnded implements activities.Executions.
func (e Executions) LaterEnded(ctx context.Context, in activities.RemoveInput) (bool, error) {
	later, err := laterTask(ctx, e.temporal, e.namespace, Task{ID: in.TaskID, CreatedAt: in.Created})
	return later != nil, err
}

// Left implements activities.Executions.
func (e Executions) Left(ctx context.Context, taskID string, runs []string) ([]string, error) {
	var left []string
	for _, run := range runs {
		switch exists, err := e.exists(ctx, taskID, run); {
		case err != nil:
			return nil, err
		case exists:
			left = append(left, run)
		}
	}
	return left, nil
}

// describeRun describes a run of an execution, "" for the newest; nil if there is none.
func describeRun(ctx context.Context, temporal client.Client, id, run string) (*workflowservice.DescribeWorkflowExecutionResponse, error) {
	answer, err := temporal.DescribeWorkflowExecution(ctx, id, run)
	switch {
	case isGone(err):
		return nil, nil
	case err != nil:
		return nil, fmt.Errorf("describe %s: %w", id, err)
	}
	return answer, nil
}

func isGone(err error) bool {
	_, gone := errors.AsType[*serviceerror.NotFound](err)
	return gone
}
