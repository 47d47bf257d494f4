package stack

import (
	"context"
	"errors"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/serviceerror"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/storage/testwait"
)

// WantSubmittedOnce compares the upstream's own count of submissions with the number of tasks.
func (s *Stack) WantSubmittedOnce(tasks int) {
	s.T.Helper()
	submissions := 0
	for _, j := range s.Control.Jobs() {
		submissions += j.Submissions
	}
	if submissions != tasks {
		s.T.Errorf("the upstream counts %d submissions for %d tasks", submissions, tasks)
	}
}

// CountTasks counts the executions Temporal knows.
func (s *Stack) CountTasks(ctx context.Context) int {
	s.T.Helper()
	count, err := s.TemporalClient().CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: "WorkflowType = 'Video'"})
	if err != nil {
		s.T.Fatal(err)
	}
	return int(count.GetCount())
}

// AwaitTasks waits until Temporal knows as many tasks.
func (s *Stack) AwaitTasks(n int) {
	s.T.Helper()
	c := s.TemporalClient()
	testwait.Eventually(s.T, "the workflow is started", ReadyTimeout, func() bool {
		count, err := c.CountWorkflow(s.T.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: "WorkflowType = 'Video'"})
		return err == nil && int(count.GetCount()) >= n
	})
}

// History reads the history of an execution.
func History(ctx context.Context, t *testing.T, c client.Client, id string) *historypb.History {
	t.Helper()
	all := &historypb.History{}
	events := c.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for events.HasNext() {
		event, err := events.Next()
		if err != nil {
			t.Fatal(err)
		}
		all.Events = append(all.Events, event)
	}
	return all
}

// Histories reads the history of every task.
func Histories(ctx context.Context, t *testing.T, c client.Client) map[string]*historypb.History {
	t.Helper()
	list, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*historypb.History)
	for _, execution := range list.GetExecutions() {
		id := execution.GetExecution().GetWorkflowId()
		all[id] = History(ctx, t, c, id)
	}
	return all
}

// CountObjects counts the archive's objects below the prefix.
func (s *Stack) CountObjects(prefix string) (n int) {
	s.T.Helper()
	for _, err := range s.Archive().List(s.T.Context(), prefix) {
		if err != nil {
			s.T.Fatal(err)
		}
		n++
	}
	return n
}

// Knows reports whether Temporal knows the execution.
func (s *Stack) Knows(id string) bool {
	s.T.Helper()
	_, err := s.TemporalClient().DescribeWorkflowExecution(s.T.Context(), id, "")
	if err != nil && !errors.As(err, new(*serviceerror.NotFound)) {
		s.T.Fatal(err)
	}
	return err == nil
}

// TemporalStatus is what Temporal says of the execution.
func (s *Stack) TemporalStatus(id string) enumspb.WorkflowExecutionStatus {
	s.T.Helper()
	answer, err := s.TemporalClient().DescribeWorkflowExecution(s.T.Context(), id, "")
	if err != nil {
		s.T.Fatal(err)
	}
	return answer.GetWorkflowExecutionInfo().GetStatus()
}
