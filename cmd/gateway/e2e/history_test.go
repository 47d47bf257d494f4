package e2e_test

import (
	"context"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
)

// eventLimit is DESIGN's bound for admit, submit, poll and archive, however often the job is polled.
const eventLimit = 30

// TestHistoryStaysShort counts the events of a task that is polled as often as one of ten minutes would be.
func TestHistoryStaysShort(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	g := s.gateway(gatewayOptions{video: "poll_min: 100ms, poll_max: 200ms"})
	video := g.create(t.Context(), "sora-2-manual", "ten minutes")
	const polls = 25 // what the default poll_min and poll_max make of ten minutes
	s.control.wait("video.get", "sora-2-manual", "", polls)
	s.control.drive(s.control.job("ten minutes").ID, "completed", 100)
	g.completed(video.ID, taskTimeout)
	n := len(history(t.Context(), t, s.temporalClient(), video.ID).GetEvents())
	t.Logf("%d events after %d polls", n, polls)
	if n > eventLimit {
		t.Errorf("%d history events, want at most %d", n, eventLimit)
	}
}

func history(ctx context.Context, t *testing.T, c client.Client, id string) *historypb.History {
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

// histories reads the history of every task.
func histories(ctx context.Context, t *testing.T, c client.Client) map[string]*historypb.History {
	t.Helper()
	list, err := c.ListWorkflow(ctx, &workflowservice.ListWorkflowExecutionsRequest{PageSize: 1000})
	if err != nil {
		t.Fatal(err)
	}
	all := make(map[string]*historypb.History)
	for _, execution := range list.GetExecutions() {
		id := execution.GetExecution().GetWorkflowId()
		all[id] = history(ctx, t, c, id)
	}
	return all
}
