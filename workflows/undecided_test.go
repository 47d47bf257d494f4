package workflows_test

import (
	"testing"
	"testing/synctest"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"

	"modelrelay/providers"
	"modelrelay/workflows"
)

// TestUndecidedIsNotShown: between a job's end and what the workflow makes of it there is nothing true to show, above all
// no progress that a failure falls below. Without a worker that goes on, the task is answered all the same.
func TestUndecidedIsNotShown(t *testing.T) {
	t.Parallel()
	for _, decides := range []bool{true, false} {
		synctest.Test(t, func(t *testing.T) {
			tasks, engine, _ := newClient()
			made, err := tasks.Create(t.Context(), create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat"}))
			if err != nil {
				t.Fatal(err)
			}
			engine.pollEnds(t, made.ID)
			if decides {
				time.AfterFunc(100*time.Millisecond, func() { engine.fails(t, made.ID) })
			}
			began := time.Now()
			got, err := tasks.Find(t.Context(), made.ID, "demo")
			if err != nil {
				t.Fatal(err)
			}
			took := time.Since(began)
			switch {
			case decides && (got.State != workflows.Failed || got.Progress != 0 || took > 200*time.Millisecond):
				t.Errorf("got %s at %d after %v, want the failure", got.State, got.Progress, took)
			case !decides && (got.State != workflows.InProgress || took < time.Second || took > 2*time.Second):
				t.Errorf("got %s at %d after %v, want it to be under way after a second", got.State, got.Progress, took)
			}
		})
	}
}

// pollEnds lets the poll of a task's job end.
func (e *engine) pollEnds(t *testing.T, id string) {
	t.Helper()
	now := execution(t, workflows.PhasePolling, nil)
	e.change(id, func(was *workflowpb.WorkflowExecutionInfo) *workflowservice.DescribeWorkflowExecutionResponse {
		now.WorkflowExecutionInfo.Memo = was.GetMemo()
		return now
	})
}

// fails lets a task fail where its job stood at 0.
func (e *engine) fails(t *testing.T, id string) {
	t.Helper()
	result := payload(t, workflows.Result{State: workflows.Failed, Failure: &providers.VideoFailure{Code: "refused"}})
	e.change(id, func(was *workflowpb.WorkflowExecutionInfo) *workflowservice.DescribeWorkflowExecutionResponse {
		return &workflowservice.DescribeWorkflowExecutionResponse{WorkflowExecutionInfo: &workflowpb.WorkflowExecutionInfo{
			Status: enumspb.WORKFLOW_EXECUTION_STATUS_COMPLETED,
			Memo:   &commonpb.Memo{Fields: map[string]*commonpb.Payload{workflows.MemoTask: was.GetMemo().GetFields()[workflows.MemoTask], workflows.MemoResult: result}},
		}}
	})
}
