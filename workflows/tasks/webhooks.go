package tasks

import (
	"context"
	"fmt"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	historypb "go.temporal.io/api/history/v1"
	"go.temporal.io/sdk/client"
	"go.temporal.io/sdk/converter"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

func (in Create) webhookField() string {
	if in.Call != nil {
		return "X-Webhook-Url"
	}
	return "webhook_url"
}

func (c *creation) checkWebhook() error {
	address := c.in.Request.WebhookURL
	if address == "" {
		return nil
	}
	if err := activities.CheckReceiver(address, c.opts.PrivateWebhooks); err != nil {
		return providers.InvalidField(c.in.webhookField(), "Invalid request: '%s' %v.", c.in.webhookField(), err)
	}
	if !c.in.TokenSigns {
		return providers.InvalidField(c.in.webhookField(), "Invalid request: '%s' requires a token with a webhook secret.", c.in.webhookField())
	}
	return nil
}

// Notice is the delivery of a task's end, for an operator.
type Notice struct {
	// WorkflowID is the workflow id of the delivery.
	WorkflowID string `json:"workflow_id"`
	EventID    string `json:"event_id"`
	Type       string `json:"type"`
	// State is PhaseDelivering until the delivery has ended.
	State    workflows.Phase     `json:"state"`
	Delivery activities.Delivery `json:"delivery"`
}

// Redeliver delivers the end of a task to its webhook again, with the same event id, whether the last delivery succeeded, waits for its
// next try, or failed. The first try is at once, and retries continue for three days. It waits for the end of the delivery, at
// most wait, and returns its state. Faults: NotFound, Conflict (the task has not ended), Overloaded (Temporal is unavailable).
func (c *Client) Redeliver(ctx context.Context, id string, wait time.Duration) (Notice, error) {
	if !IsTaskID(id) {
		return Notice{}, notFound(id)
	}
	task, _, err := c.describe(ctx, id)
	if err != nil {
		return Notice{}, err
	}
	if !task.Ended() {
		return Notice{}, providers.Faultf(providers.Conflict, "Task %s has not ended; its webhook is called when it does.", id)
	}
	in, err := input(ctx, c.temporal, id)
	if err != nil {
		return Notice{}, err
	}
	notice, workflowID := in.Notice(task.State, task.CompletedAt), in.NotifyID(task.State)
	if task.Call != nil && task.State == workflows.Completed {
		notice.Event = task.Call.Event
	}
	started, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	run, err := c.temporal.ExecuteWorkflow(started, client.StartWorkflowOptions{
		ID:                       workflowID,
		TaskQueue:                c.opts.TaskQueue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING, // its next try may be hours away
		StaticSummary:            notice.Summary(),
		TypedSearchAttributes:    notice.Attributes(in.Model),
	}, workflows.NotifyType, notice)
	if err != nil {
		return Notice{}, unavailable("The task engine", fmt.Errorf("start %s: %w", workflowID, err))
	}
	ended, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	if err := run.Get(ended, nil); err != nil {
		c.opts.Log.DebugContext(ctx, "delivery has not ended", "task", id, "error", err)
	}
	return delivered(ctx, c.temporal, workflowID, notice)
}

func delivered(ctx context.Context, temporal client.Client, workflowID string, in workflows.NotifyInput) (Notice, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	n := Notice{WorkflowID: workflowID, EventID: in.EventID, Type: in.EventType(), State: workflows.PhaseDelivering}
	answer, err := temporal.DescribeWorkflowExecution(ctx, n.WorkflowID, "")
	if isGone(err) {
		return Notice{}, providers.Faultf(providers.NotFound, "The end of task %q was not delivered.", in.TaskID)
	}
	if err != nil {
		return Notice{}, unavailable("The task engine", fmt.Errorf("describe %s: %w", n.WorkflowID, err))
	}
	info := answer.GetWorkflowExecutionInfo()
	if info.GetStatus() != enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING {
		n.State = workflows.PhaseUndelivered
		if err := temporal.GetWorkflow(ctx, n.WorkflowID, info.GetExecution().GetRunId()).Get(ctx, &n.Delivery); err != nil {
			n.Delivery.Reason = "The delivery was ended: " + info.GetStatus().String()
		}
		if n.Delivery.Delivered {
			n.State = workflows.PhaseDelivered
		}
		return n, nil
	}
	for _, act := range answer.GetPendingActivities() {
		// Before the first try there are no details.
		_ = converter.GetDefaultDataConverter().FromPayloads(act.GetHeartbeatDetails(), &n.Delivery)
	}
	return n, nil
}

func input(ctx context.Context, temporal client.Client, id string) (workflows.Input, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	events := temporal.GetWorkflowHistory(ctx, id, "", false, enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT)
	var in workflows.Input
	if !events.HasNext() {
		return in, notFound(id)
	}
	first, err := events.Next()
	if err != nil {
		return in, unavailable("The task engine", fmt.Errorf("read the history of %s: %w", id, err))
	}
	if in, err = inputOf(first); err != nil {
		return in, fmt.Errorf("read the input of %s: %w", id, err)
	}
	return in, nil
}

func inputOf(first *historypb.HistoryEvent) (in workflows.Input, err error) {
	err = converter.GetDefaultDataConverter().FromPayloads(first.GetWorkflowExecutionStartedEventAttributes().GetInput(), &in)
	return in, err
}
