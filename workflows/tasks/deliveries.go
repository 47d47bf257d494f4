package tasks

import (
	"context"
	"strings"
	"time"

	"modelrelay/activities"
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
