package workflows

import (
	"cmp"
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
)

// NotifyType is the type of the workflow Notify.
const NotifyType = "Notify"

// NotifyPrefix begins the workflow id of a delivery. The task's id follows.
const NotifyPrefix = "notify_"

// The states of a delivery in AttrState.
const (
	PhaseDelivering  Phase = "delivering"
	PhaseDelivered   Phase = "delivered"
	PhaseUndelivered Phase = "undelivered"
)

// NotifyInput is the end of a task, to be delivered to a webhook.
type NotifyInput struct {
	Revision int    `json:"revision"`
	TaskID   string `json:"task_id"`
	// Token is the stable id of the task's token. Each delivery reads its webhook and secrets again.
	Token string `json:"token"`
	// EventID is the webhook-id of every try and every redelivery.
	EventID     string    `json:"event_id"`
	State       State     `json:"state"`
	CompletedAt time.Time `json:"completed_at"`
	// Event is the last word of the event's type if it is not the state.
	Event string `json:"event,omitempty"`
	// URL is the webhook of the create, "" for that of the token. If RequestObject is set, the stored request holds it instead.
	URL           string `json:"url,omitempty"`
	RequestObject string `json:"request_object,omitempty"`
}

// Notice returns the input of the delivery of the task's end.
func (in Input) Notice(state State, at time.Time) NotifyInput {
	n := NotifyInput{
		Revision: Revision, TaskID: in.TaskID, Token: in.Token, EventID: eventID(in.TaskID+in.Incarnation, state),
		State: state, CompletedAt: at, RequestObject: in.RequestObject,
	}
	switch {
	case in.Request != nil:
		n.URL = in.Request.WebhookURL
	case in.Call != nil:
		n.URL = in.Call.WebhookURL
	}
	return n
}

func eventID(taskID string, state State) string {
	sum := sha256.Sum256([]byte(taskID + ":" + string(state)))
	return "evt_" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// NotifyID returns the workflow id of the delivery. It differs from those of an earlier end and of an earlier task with the id.
func (in Input) NotifyID(state State) string {
	return NotifyPrefix + in.TaskID + "_" + string(state) + "_" + in.Incarnation
}

// EventType returns the type of the event, as the receiver reads it.
func (n NotifyInput) EventType() string {
	return activities.EventsOf(n.TaskID) + "." + cmp.Or(n.Event, string(n.State))
}

// Summary returns the line that the Temporal UI shows of the delivery.
func (n NotifyInput) Summary() string { return n.EventType() + " · " + n.TaskID }

// Attributes returns the search attributes by which an operator finds the delivery.
func (n NotifyInput) Attributes(model string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		Keyword(AttrToken).ValueSet(n.Token), Keyword(AttrModel).ValueSet(model), Keyword(AttrState).ValueSet(string(PhaseDelivering)),
	)
}

// Notify delivers one event, with retries for three days. Its result reports how the delivery ended; it returns an error only for a bug.
func Notify(ctx workflow.Context, in NotifyInput) (activities.Delivery, error) {
	refuseNewer(in.Revision)
	var (
		acts     activities.Activities // only names the activity; nothing calls it
		delivery activities.Delivery
		free, _  = workflow.NewDisconnectedContext(ctx)
		event    = activities.Event{ID: in.EventID, Type: in.EventType(), TaskID: in.TaskID, At: in.CompletedAt}
		until    = workflow.Now(ctx).Add(notifyLimit)
	)
	workflow.SetCurrentDetails(ctx, in.details(PhaseDelivering, delivery))
	// A failed try reports itself when the next is due; the policy only replaces lost workers.
	ctx = retried(ctx, notifyLimit+notifySlack, activities.DeliverTimeout+deliverMargin, in.Summary())
	err := workflow.ExecuteActivity(ctx, acts.Deliverer.Deliver, activities.DeliverInput{
		Event: event, Token: in.Token, URL: in.URL, RequestObject: in.RequestObject, Until: until,
	}).Get(ctx, &delivery)
	fault, bad := activities.Outcome(err)
	switch {
	case temporal.IsCanceledError(err):
		delivery.Reason = "An operator ended the delivery."
	case bad:
		delivery.Reason = fault.Message
	}
	phase := PhaseUndelivered
	if delivery.Delivered {
		phase = PhaseDelivered
	}
	workflow.SetCurrentDetails(free, in.details(phase, delivery))
	if err := workflow.UpsertTypedSearchAttributes(free, Keyword(AttrState).ValueSet(string(phase))); err != nil {
		return delivery, fmt.Errorf("show phase %s: %w", phase, err)
	}
	return delivery, nil
}

// details returns what the Temporal UI shows of the delivery.
func (n NotifyInput) details(phase Phase, d activities.Delivery) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · %s · event `%s` · task `%s` · token `%s`\n", phase, n.EventType(), n.EventID, n.TaskID, n.Token)
	if d.Host != "" {
		fmt.Fprintf(&b, "\nreceiver `%s`, last status %d, tries %d\n", d.Host, d.Status, d.Tries)
	}
	if d.Reason != "" {
		fmt.Fprintf(&b, "\n%s\n", d.Reason)
	}
	return b.String()
}
