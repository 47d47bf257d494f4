package tasks

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

// DeliveryFilter selects deliveries of webhooks; the zero value selects all.
type DeliveryFilter struct {
	Token, Model string
	// Phase is PhaseDelivering, PhaseDelivered, PhaseUndelivered, or "" for all.
	Phase workflows.Phase
	// Since is the earliest start, and Until the first later one that is not selected.
	Since, Until time.Time
}

// Query returns the filter as a visibility query, which the Temporal UI accepts too.
func (f DeliveryFilter) Query() (string, error) {
	terms := []string{"WorkflowType = '" + workflows.NotifyType + "' AND ExecutionStatus != 'ContinuedAsNew'"}
	terms, err := keywords(terms, keyword{workflows.AttrToken, f.Token, "token"}, keyword{workflows.AttrModel, f.Model, "model"},
		keyword{workflows.AttrState, string(f.Phase), "state"})
	if err != nil {
		return "", err
	}
	return strings.Join(append(terms, within(f.Since, f.Until)...), " AND "), nil
}

// ListedDelivery is the delivery of a task's end as visibility lists it, with a delay of moments. Show reports its tries.
type ListedDelivery struct {
	// ID is the workflow id of the delivery.
	ID string `json:"id"`
	// Task is the task that ended. Event is the type of the event: video.completed or video.failed.
	Task  string          `json:"task"`
	Event string          `json:"event"`
	Token string          `json:"token"`
	Model string          `json:"model"`
	State workflows.Phase `json:"state"`
	// Path is its path in the Temporal UI.
	Path    string    `json:"path"`
	Created time.Time `json:"created"`
	// Closed is the time at which it succeeded or failed; zero before.
	Closed time.Time `json:"closed,omitzero"`
}

// Deliveries returns a page of the deliveries that match the filter, as Page does of tasks.
func (o *Operator) Deliveries(
	ctx context.Context, filter DeliveryFilter, cursor []byte, limit int,
) (found []ListedDelivery, next []byte, err error) {
	query, err := filter.Query()
	if err != nil {
		return nil, nil, err
	}
	answer, err := o.sharedPage(ctx, pageKey{filter, string(cursor), min(limit, pageMost)}, query)
	if err != nil {
		return nil, nil, err
	}
	for _, info := range answer.executions {
		row := listed(info)
		d := ListedDelivery{
			ID: row.ID, Token: row.Token, Model: row.Model, State: row.Phase, Path: o.path(info.GetExecution()), Created: row.Created,
			Closed: row.Closed,
		}
		d.Task, d.Event = deliveryOf(row.ID)
		if !row.Running && d.State == workflows.PhaseDelivering { // terminated in Temporal
			d.State = workflows.PhaseUndelivered
		}
		found = append(found, d)
	}
	return found, answer.next, nil
}

func deliveryOf(id string) (task, event string) {
	rest := strings.TrimPrefix(id, workflows.NotifyPrefix)
	for _, state := range []workflows.State{workflows.Completed, workflows.Failed, workflows.Cancelled} {
		if task, _, ok := strings.Cut(rest, "_"+string(state)); ok {
			return task, activities.EventsOf(task) + "." + string(state)
		}
	}
	return rest, ""
}

// Notice is the state of a delivery.
type Notice struct {
	WorkflowID string          `json:"workflow_id" doc:"Id of the delivery's workflow in the Temporal UI"`
	EventID    string          `json:"event_id" doc:"The event's id, the same in every try"`
	Type       string          `json:"type" doc:"Type of the event, such as video.completed"`
	State      workflows.Phase `json:"state" enum:"delivering,delivered,undelivered"`
	Host       string          `json:"host" doc:"The receiver's host name"`
	Status     int             `json:"status" doc:"HTTP status of the receiver's last answer; 0: it has not answered"`
	Tries      int             `json:"tries" doc:"Tries so far"`
	Reason     string          `json:"reason" doc:"Why the last try failed"`
	Next       *time.Time      `json:"next" doc:"When it is tried again"`
}

// Redeliver delivers the end of a task to its webhook again, with the same event id, whether the last delivery succeeded, waits for its
// next try, or failed. The first try is at once, and retries continue for three days. It waits for the end of the delivery, at
// most wait, and returns its state. Faults: NotFound, Conflict (the task has not ended), Overloaded (Temporal is unavailable).
func (o *Operator) Redeliver(ctx context.Context, id string, wait time.Duration) (Notice, error) {
	task, answer, err := o.find(ctx, id)
	if err != nil {
		return Notice{}, err
	}
	if !task.Ended() {
		return Notice{}, providers.Faultf(providers.Conflict, "Task %s has not ended; its webhook is called when it does.", id)
	}
	starting, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	first, err := o.temporal.GetWorkflowHistory(starting, id, answer.GetWorkflowExecutionInfo().GetExecution().GetRunId(), false,
		enumspb.HISTORY_EVENT_FILTER_TYPE_ALL_EVENT).Next()
	if err != nil {
		return Notice{}, o.explain(id, err)
	}
	in, err := inputOf(id, first)
	if err != nil {
		return Notice{}, err
	}
	event, workflowID := in.Notice(task.State, task.CompletedAt), in.NotifyID(task.State)
	if task.Call != nil && task.State == workflows.Completed {
		event.Event = task.Call.Event
	}
	run, err := o.temporal.ExecuteWorkflow(starting, client.StartWorkflowOptions{
		ID:                       workflowID,
		TaskQueue:                o.taskQueue,
		WorkflowIDReusePolicy:    enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		WorkflowIDConflictPolicy: enumspb.WORKFLOW_ID_CONFLICT_POLICY_TERMINATE_EXISTING, // its next try may be hours away
		StaticSummary:            event.Summary(),
		TypedSearchAttributes:    event.Attributes(in.Model),
	}, workflows.NotifyType, event)
	if err != nil {
		return Notice{}, unavailable("The task engine", fmt.Errorf("start %s: %w", workflowID, err))
	}
	ended, cancel := context.WithTimeout(ctx, wait)
	defer cancel()
	_ = run.Get(ended, nil) // the delivery may continue
	return o.notice(ctx, workflowID, event)
}

// notice reads the state of a delivery.
func (o *Operator) notice(ctx context.Context, workflowID string, in workflows.NotifyInput) (Notice, error) {
	ctx, cancel := context.WithTimeout(ctx, readTimeout)
	defer cancel()
	delivery, err := o.delivery(ctx, workflowID)
	switch {
	case err != nil:
		return Notice{}, err
	case delivery == nil:
		return Notice{}, providers.Faultf(providers.NotFound, "The end of task %q was not delivered.", in.TaskID)
	}
	var last activities.Delivery
	_ = json.Unmarshal(delivery.Result, &last) // before the first try there is none
	n := Notice{
		WorkflowID: workflowID, EventID: in.EventID, Type: in.EventType(), State: workflows.PhaseDelivering,
		Host: last.Host, Status: last.Status, Tries: last.Tries, Reason: last.Reason,
	}
	if !last.Next.IsZero() {
		n.Next = &last.Next
	}
	switch {
	case delivery.Status == enumspb.WORKFLOW_EXECUTION_STATUS_RUNNING.String():
	case last.Delivered:
		n.State = workflows.PhaseDelivered
	default:
		n.State = workflows.PhaseUndelivered
		if delivery.Result == nil {
			n.Reason = "The delivery was ended: " + delivery.Status
		}
	}
	return n, nil
}
