package tasks

import (
	"context"
	"strings"
	"time"

	"modelrelay/workflows"
)

// DeliveryFilter chooses deliveries of webhooks; the zero value chooses all.
type DeliveryFilter struct {
	Token, Model string
	// Phase is where they stand: PhaseDelivering, PhaseDelivered or PhaseUndelivered.
	Phase workflows.Phase
	// Since chooses those begun at the time or later, Until those begun before it.
	Since, Until time.Time
}

// Query is the filter as a visibility query, which the Temporal UI takes as well.
func (f DeliveryFilter) Query() (string, error) {
	terms := []string{"WorkflowType = '" + workflows.NotifyType + "' AND ExecutionStatus != 'ContinuedAsNew'"}
	terms, err := keywords(terms, keyword{workflows.AttrToken, f.Token, "token"}, keyword{workflows.AttrModel, f.Model, "model"},
		keyword{workflows.AttrState, string(f.Phase), "state"})
	if err != nil {
		return "", err
	}
	return strings.Join(append(terms, within(f.Since, f.Until)...), " AND "), nil
}

// ListedDelivery is the telling of a task's end as visibility knows it, a moment late. Show tells of its tries.
type ListedDelivery struct {
	// ID is the delivery's own.
	ID string `json:"id"`
	// Task is the task that ended, Event what it ended as: video.completed or video.failed.
	Task  string          `json:"task"`
	Event string          `json:"event"`
	Token string          `json:"token"`
	Model string          `json:"model"`
	State workflows.Phase `json:"state"`
	// Path leads to it in the Temporal UI.
	Path    string    `json:"path"`
	Created time.Time `json:"created"`
	// Closed is when it succeeded or was given up; zero while it is tried.
	Closed time.Time `json:"closed,omitzero"`
}

// Deliveries reads at most limit deliveries of the filter as Page reads tasks.
func (o *Operator) Deliveries(ctx context.Context, filter DeliveryFilter, cursor []byte, limit int) (found []ListedDelivery, next []byte, err error) {
	query, err := filter.Query()
	if err != nil {
		return nil, nil, err
	}
	answer, err := o.visibility.sharedPage(ctx, pageAsked{filter, string(cursor), min(limit, pageMost)}, query)
	if err != nil {
		return nil, nil, err
	}
	for _, info := range answer.executions {
		row := listed(info)
		d := ListedDelivery{
			ID: row.ID, Token: row.Token, Model: row.Model, State: row.Phase, Path: o.path(info.GetExecution()), Created: row.Created, Closed: row.Closed,
		}
		d.Task, d.Event = toldBy(row.ID)
		if !row.Running && d.State == workflows.PhaseDelivering { // it was ended from outside
			d.State = workflows.PhaseUndelivered
		}
		found = append(found, d)
	}
	return found, answer.next, nil
}

// toldBy reads the workflow id of a delivery: whose end it tells, and as which event.
func toldBy(id string) (task, event string) {
	told := strings.TrimPrefix(id, workflows.NotifyPrefix)
	for _, state := range []workflows.State{workflows.Completed, workflows.Failed} {
		if task, _, ok := strings.Cut(told, "_"+string(state)); ok {
			return task, "video." + string(state)
		}
	}
	return told, ""
}
