package tasks_test

import (
	"context"
	"slices"
	"testing"
	"time"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	workflowpb "go.temporal.io/api/workflow/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

// TestReadBetween: a task whose poll has ended is answered with its history's word, with or without a worker.
func TestReadBetween(t *testing.T) {
	t.Parallel()
	service, engine, _ := newClient(t)
	made, err := service.Create(t.Context(), create(providers.VideoRequest{Model: "sora-2", Prompt: "a cat"}))
	if err != nil {
		t.Fatal(err)
	}
	engine.events = []*historypb.HistoryEvent{scheduled(5, "Poll"), completed(5, payload(t, providers.VideoStatus{State: providers.JobFailed, Progress: 40}))}
	now := execution(t, workflows.PhasePolling, nil)
	engine.change(made.ID, func(was *workflowpb.WorkflowExecutionInfo) *workflowservice.DescribeWorkflowExecutionResponse {
		now.WorkflowExecutionInfo.Memo = was.GetMemo()
		return now
	})
	got, err := service.Find(t.Context(), made.ID, "demo")
	if err != nil || got.State != workflows.InProgress || got.Progress != 40 {
		t.Errorf("got %s at %d, %v, want it under way at 40", got.State, got.Progress, err)
	}
}

// GetWorkflowHistory gives the events that the engine was given.
func (e *engine) GetWorkflowHistory(context.Context, string, string, bool, enumspb.HistoryEventFilterType) client.HistoryEventIterator {
	events := slices.Clone(e.events)
	return &iterator{events}
}

type iterator struct{ left []*historypb.HistoryEvent }

func (i *iterator) HasNext() bool { return len(i.left) > 0 }

func (i *iterator) Next() (*historypb.HistoryEvent, error) {
	first := i.left[0]
	i.left = i.left[1:]
	return first, nil
}

func scheduled(id int64, name string) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventId: id, EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED,
		Attributes: &historypb.HistoryEvent_ActivityTaskScheduledEventAttributes{ActivityTaskScheduledEventAttributes: &historypb.ActivityTaskScheduledEventAttributes{
			ActivityType: &commonpb.ActivityType{Name: name},
		}},
	}
}

func completed(of int64, result *commonpb.Payload) *historypb.HistoryEvent {
	return &historypb.HistoryEvent{
		EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED,
		Attributes: &historypb.HistoryEvent_ActivityTaskCompletedEventAttributes{ActivityTaskCompletedEventAttributes: &historypb.ActivityTaskCompletedEventAttributes{
			ScheduledEventId: of, Result: &commonpb.Payloads{Payloads: []*commonpb.Payload{result}},
		}},
	}
}

// TestWordOf: between a poll's end and the workflow's next step a reader sees the progress with which the task will fail,
// if it fails.
func TestWordOf(t *testing.T) {
	t.Parallel()
	ended := func(of int64, status providers.VideoStatus) *historypb.HistoryEvent {
		return completed(of, payload(t, status))
	}
	failed := func(of int64, r activities.Record) *historypb.HistoryEvent {
		failure := temporal.GetDefaultFailureConverter().ErrorToFailure(temporal.NewApplicationErrorWithOptions("the upstream did not finish", "Fault", temporal.ApplicationErrorOptions{
			Details: []any{r}, NextRetryDelay: time.Second,
		}))
		return &historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED,
			Attributes: &historypb.HistoryEvent_ActivityTaskFailedEventAttributes{ActivityTaskFailedEventAttributes: &historypb.ActivityTaskFailedEventAttributes{
				ScheduledEventId: of, Failure: failure,
			}},
		}
	}
	signalled := func(name string, shown int) *historypb.HistoryEvent {
		return &historypb.HistoryEvent{
			EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED,
			Attributes: &historypb.HistoryEvent_WorkflowExecutionSignaledEventAttributes{WorkflowExecutionSignaledEventAttributes: &historypb.WorkflowExecutionSignaledEventAttributes{
				SignalName: name, Input: &commonpb.Payloads{Payloads: []*commonpb.Payload{payload(t, shown)}},
			}},
		}
	}
	cancelled := &historypb.HistoryEvent{EventType: enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED}
	cases := map[string]struct {
		events []*historypb.HistoryEvent
		want   int
	}{
		"nothing":          {nil, 0},
		"done":             {[]*historypb.HistoryEvent{scheduled(5, "Poll"), ended(5, providers.VideoStatus{State: providers.JobDone})}, activities.MostShown},
		"failed job":       {[]*historypb.HistoryEvent{scheduled(5, "Poll"), ended(5, providers.VideoStatus{State: providers.JobFailed, Progress: 40})}, 40},
		"deadline":         {[]*historypb.HistoryEvent{scheduled(5, "Poll"), failed(5, activities.Record{Deadline: true, Progress: 60})}, 60},
		"another activity": {[]*historypb.HistoryEvent{scheduled(5, "Submit"), ended(5, providers.VideoStatus{State: providers.JobDone}), failed(5, activities.Record{Progress: 7})}, 0},
		"cancelled":        {[]*historypb.HistoryEvent{scheduled(5, "Poll"), signalled(workflows.SignalShown, 30), signalled("other", 50)}, 30},
		"a cancel, then done": {[]*historypb.HistoryEvent{
			scheduled(5, "Poll"), signalled(workflows.SignalShown, 30), cancelled, ended(5, providers.VideoStatus{State: providers.JobDone}),
		}, 30},
		"a cancel, then the deadline": {[]*historypb.HistoryEvent{
			scheduled(5, "Poll"), signalled(workflows.SignalShown, 30), cancelled, failed(5, activities.Record{Deadline: true, Progress: 60}),
		}, 30},
		"an operator's word, then done": {[]*historypb.HistoryEvent{
			scheduled(5, "Poll"), signalled(workflows.SignalShown, 30), signalled("fail", 0), ended(5, providers.VideoStatus{State: providers.JobDone}),
		}, 30},
		"done, then a cancel": {[]*historypb.HistoryEvent{
			scheduled(5, "Poll"), ended(5, providers.VideoStatus{State: providers.JobDone}), signalled(workflows.SignalShown, activities.MostShown), cancelled,
		}, activities.MostShown},
		"failed job, then a cancel": {[]*historypb.HistoryEvent{
			scheduled(5, "Poll"), ended(5, providers.VideoStatus{State: providers.JobFailed, Progress: 40}), signalled(workflows.SignalShown, 30),
		}, 40},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			if got := tasks.WordOf(c.events); got != c.want {
				t.Errorf("progress %d, want %d", got, c.want)
			}
		})
	}
}
