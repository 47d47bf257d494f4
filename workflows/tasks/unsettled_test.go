package tasks_test

import (
	"context"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"modelrelay/providers"
	"modelrelay/storage/storagetest"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// TestFinishesWhatEnded: of the runs that ended without their finish each that is the task's last is finished, once, with
// the code that readers see.
func TestFinishesWhatEnded(t *testing.T) {
	t.Parallel()
	service, fake, _ := newListing(storagetest.Redis(t))
	e := &fakeEndedEngine{fakeEngine: fake}
	codes := map[string]string{}
	for key, status := range map[string]enumspb.WorkflowExecutionStatus{
		workflows.CodeFailedByOperator: enumspb.WORKFLOW_EXECUTION_STATUS_TERMINATED,
		workflows.CodeInternal:         enumspb.WORKFLOW_EXECUTION_STATUS_FAILED,
	} {
		id := mustCreate(t, service, keyed(key, 0)).ID
		fake.close(id, status)
		e.ended(t, id, "")
		codes[id] = key
	}
	reset := mustCreate(t, service, keyed("reset", 0)).ID
	e.ended(t, reset, "an earlier run")
	found := tasks.NewExecutions(e, "", "")
	for range 2 {
		if next, err := found.Finish(t.Context(), time.Now(), nil); err != nil || len(next) > 0 {
			t.Fatalf("got %s, %v", next, err)
		}
	}
	if len(e.finished) != len(codes) {
		t.Fatalf("finished %d, want %d", len(e.finished), len(codes))
	}
	for _, in := range e.finished {
		task, err := service.Find(t.Context(), in.Task.TaskID, "demo")
		if err != nil || task.Failure == nil || task.Failure.Code != codes[task.ID] || in.Result.Failure.Code != task.Failure.Code {
			t.Errorf("reads %+v, %v, finished with %+v, want %s", task.Failure, err, in.Result.Failure, codes[task.ID])
		}
		if in.Task.Request != nil && in.Task.Request.Prompt != "" {
			t.Errorf("the prompt %q outlives the task", in.Task.Request.Prompt)
		}
	}
}

// fakeEndedEngine lists what ended, and notes what is finished.
type fakeEndedEngine struct {
	*fakeEngine

	list     []*workflowpb.WorkflowExecutionInfo
	finished []workflows.FinishInput
}

// ended lists a run of the task, its last one where no other is named.
func (e *fakeEndedEngine) ended(t *testing.T, id, run string) {
	t.Helper()
	answer, err := e.DescribeWorkflowExecution(t.Context(), id, "")
	if err != nil {
		t.Fatal(err)
	}
	if run == "" {
		run = answer.GetWorkflowExecutionInfo().GetExecution().GetRunId()
	}
	e.list = append(e.list, &workflowpb.WorkflowExecutionInfo{Execution: &commonpb.WorkflowExecution{WorkflowId: id, RunId: run}})
}

func (e *fakeEndedEngine) ListWorkflow(
	context.Context, *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	return &workflowservice.ListWorkflowExecutionsResponse{Executions: e.list}, nil
}

func (e *fakeEndedEngine) GetWorkflowHistory(
	_ context.Context, id, _ string, _ bool, _ enumspb.HistoryEventFilterType,
) client.HistoryEventIterator {
	in := workflows.Input{
		Revision: workflows.Revision, TaskID: id, Model: "sora-2", Token: "demo",
		Request: &providers.VideoRequest{Prompt: "a fox"},
	}
	payloads, _ := converter.GetDefaultDataConverter().ToPayloads(in)
	return &fakeHistory{[]*historypb.HistoryEvent{{Attributes: &historypb.HistoryEvent_WorkflowExecutionStartedEventAttributes{
		WorkflowExecutionStartedEventAttributes: &historypb.WorkflowExecutionStartedEventAttributes{Input: payloads},
	}}}}
}

func (e *fakeEndedEngine) ExecuteWorkflow(
	ctx context.Context, opts client.StartWorkflowOptions, run any, args ...any,
) (client.WorkflowRun, error) {
	if in, ok := args[0].(workflows.FinishInput); ok {
		e.finished = append(e.finished, in)
	}
	return e.fakeEngine.ExecuteWorkflow(ctx, opts, run, args...)
}
