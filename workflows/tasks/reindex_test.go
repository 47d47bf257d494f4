package tasks_test

import (
	"context"
	"strings"
	"testing"

	"go.temporal.io/api/workflowservice/v1"

	"modelrelay/storage/storagetest"
	"modelrelay/workflows/tasks"
)

// fakeVisibility is an engine whose executions can be listed.
type fakeVisibility struct{ *fakeEngine }

func (v fakeVisibility) ListWorkflow(
	_ context.Context, in *workflowservice.ListWorkflowExecutionsRequest,
) (*workflowservice.ListWorkflowExecutionsResponse, error) {
	v.mu.Lock()
	defer v.mu.Unlock()
	answer := &workflowservice.ListWorkflowExecutionsResponse{}
	add := func(task *workflowservice.DescribeWorkflowExecutionResponse) {
		info := task.GetWorkflowExecutionInfo()
		kind := info.GetType().GetName()
		if strings.HasPrefix(info.GetExecution().GetWorkflowId(), "delete_") {
			kind = "Remove"
		}
		if kind == "" {
			kind = "Video"
		}
		running := info.GetStatus().String() == "Running"
		if strings.Contains(in.GetQuery(), "'"+kind+"'") && running == !strings.Contains(in.GetQuery(), "!=") {
			answer.Executions = append(answer.Executions, info)
		}
	}
	for _, task := range v.tasks {
		add(task)
	}
	for _, task := range v.runs {
		add(task)
	}
	return answer, nil
}

// TestIndexLeavesRemovedTasks: what makes the lists again does not bring back tasks that are being removed.
func TestIndexLeavesRemovedTasks(t *testing.T) {
	t.Parallel()
	service, engine, _ := newListing(storagetest.Redis(t))
	kept, running, ended := mustCreate(t, service, keyed("kept", 0)), mustCreate(t, service, keyed("running", 0)),
		mustCreate(t, service, keyed("ended", 0))
	engine.end(t, ended.ID)
	for _, id := range []string{running.ID, ended.ID} {
		if err := service.Delete(t.Context(), id, "demo"); err != nil {
			t.Fatal(err)
		}
	}
	var found []string
	err := tasks.NewOperator(fakeVisibility{engine}, "default", "video").Index(t.Context(), func(task tasks.Indexed) error {
		found = append(found, task.TaskID)
		return nil
	})
	if err != nil || len(found) != 1 || found[0] != kept.ID {
		t.Errorf("found %v, %v, want %s alone", found, err, kept.ID)
	}
}
