package tasks

import (
	"context"
	"fmt"

	commonpb "go.temporal.io/api/common/v1"
	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

// pollType is the name of the activity that waits for a job.
const pollType = "Poll"

// between tells that the poll of a task has ended and its workflow does not know yet, which lasts as long as no worker
// is there. Then nothing pending says how far the job came.
func between(answer *workflowservice.DescribeWorkflowExecutionResponse) bool {
	info := answer.GetWorkflowExecutionInfo()
	return info.GetStatus() == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING && phaseOf(info) == workflows.PhasePolling && pollOf(answer.GetPendingActivities()) == nil
}

// lastWord is the progress of a task whose poll has just ended: that with which it will fail, if it fails. It costs a
// look into the history.
func (c *Client) lastWord(ctx context.Context, id string) (int, error) {
	var events []*historypb.HistoryEvent
	all := c.temporal.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	for all.HasNext() {
		event, err := all.Next()
		if err != nil {
			return 0, away("The task engine", fmt.Errorf("read the history of %s: %w", id, err))
		}
		events = append(events, event)
	}
	return wordOf(events), nil
}

// wordOf reads what a poll's end said, and what a cancel's sender had seen. A poll that ends after the task was called off
// says nothing to its workflow, whose last word is the sender's.
func wordOf(events []*historypb.HistoryEvent) int {
	var (
		polls = make(map[int64]bool) // by the event that scheduled it
		off   bool                   // the task was called off
		word  int
		read  = converter.GetDefaultDataConverter()
	)
	take := func(payloads *commonpb.Payloads) {
		var shown int
		if read.FromPayloads(payloads, &shown) == nil {
			word = max(word, min(shown, workflows.ProgressArchiving))
		}
	}
	for _, event := range events {
		switch event.GetEventType() {
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_SCHEDULED:
			scheduled := event.GetActivityTaskScheduledEventAttributes()
			polls[event.GetEventId()] = scheduled.GetActivityType().GetName() == pollType
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_SIGNALED:
			switch signal := event.GetWorkflowExecutionSignaledEventAttributes(); signal.GetSignalName() {
			case workflows.SignalShown:
				take(signal.GetInput())
			case workflows.SignalFail:
				off = true
			}
		case enumspb.EVENT_TYPE_WORKFLOW_EXECUTION_CANCEL_REQUESTED:
			off = true
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_COMPLETED:
			completed := event.GetActivityTaskCompletedEventAttributes()
			var status providers.VideoStatus
			switch {
			case off || !polls[completed.GetScheduledEventId()] || read.FromPayloads(completed.GetResult(), &status) != nil:
			case status.State == providers.JobDone:
				word = activities.MostShown
			default:
				word = max(word, min(status.Progress, workflows.ProgressArchiving))
			}
		case enumspb.EVENT_TYPE_ACTIVITY_TASK_FAILED:
			failed := event.GetActivityTaskFailedEventAttributes()
			if fault, bad := activities.Outcome(temporal.GetDefaultFailureConverter().FailureToError(failed.GetFailure())); bad && !off && polls[failed.GetScheduledEventId()] {
				word = max(word, min(fault.Progress, workflows.ProgressArchiving))
			}
		}
	}
	return word
}
