package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
)

// notifyType is the workflow that delivers the end of a task to a webhook.
const notifyType = "Notify"

// Where a delivery stands, as the Temporal UI lists it under AttrState.
const (
	PhaseDelivering  Phase = "delivering"
	PhaseDelivered   Phase = "delivered"
	PhaseUndelivered Phase = "undelivered"
)

// NotifyInput is the end of a task that a webhook wants to hear of.
type NotifyInput struct {
	TaskID string `json:"task_id"`
	// Token is the stable id of the task's token, whose webhook and secrets are looked up at each delivery.
	Token string `json:"token"`
	// EventID is the webhook-id of every try and of every redelivery.
	EventID     string    `json:"event_id"`
	State       State     `json:"state"`
	CompletedAt time.Time `json:"completed_at"`
	// URL is the create's own webhook, "" for the token's. Where RequestObject is set, it is to be found there.
	URL           string `json:"url,omitempty"`
	RequestObject string `json:"request_object,omitempty"`
}

// notice is the delivery of a task's end: the event of the task, and where its webhook is to be found.
func notice(in Input, state State, at time.Time) NotifyInput {
	n := NotifyInput{
		TaskID: in.TaskID, Token: in.Token, EventID: eventID(in.TaskID+in.Life, state), State: state, CompletedAt: at, RequestObject: in.RequestObject,
	}
	if in.Request != nil {
		n.URL = in.Request.WebhookURL
	}
	return n
}

// NotifyID is the workflow id of the delivery that the task ended so. An end that an operator's retry undid is told
// apart, and that of an earlier task with the same id.
func (in Input) NotifyID(state State) string {
	id := "notify_" + in.TaskID + "_" + string(state)
	if in.Revision >= revisionLives {
		id += "_" + in.Life
	}
	return id
}

// eventType is what the receiver reads as the event's type.
func (n NotifyInput) eventType() string { return "video." + string(n.State) }

// summary is the line that the Temporal UI shows of the delivery.
func (n NotifyInput) summary() string { return n.eventType() + " · " + n.TaskID }

// attributes are those by which an operator finds the delivery.
func (n NotifyInput) attributes(model string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		keyword(AttrToken).ValueSet(n.Token), keyword(AttrModel).ValueSet(model), keyword(AttrState).ValueSet(string(PhaseDelivering)),
	)
}

// Notify is the life of one delivery: the receiver is told until it has heard or three days are over. How it ended is
// its result; it returns an error only for a bug.
func Notify(ctx workflow.Context, in NotifyInput) (activities.Delivery, error) {
	var (
		acts     *activities.Activities // names the activity to the SDK; nothing calls it
		delivery activities.Delivery
		free, _  = workflow.NewDisconnectedContext(ctx)
		event    = activities.Event{ID: in.EventID, Type: in.eventType(), TaskID: in.TaskID, At: in.CompletedAt}
		until    = workflow.Now(ctx).Add(notifyLife)
	)
	workflow.SetCurrentDetails(ctx, in.details(PhaseDelivering, delivery))
	err := workflow.ExecuteActivity(withDeliver(ctx, in.summary()), acts.Deliver, activities.DeliverInput{
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
	if err := workflow.UpsertTypedSearchAttributes(free, keyword(AttrState).ValueSet(string(phase))); err != nil {
		return delivery, fmt.Errorf("show phase %s: %w", phase, err)
	}
	return delivery, nil
}

// details are what the Temporal UI shows of the delivery.
func (n NotifyInput) details(phase Phase, d activities.Delivery) string {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · %s · event `%s` · task `%s` · token `%s`\n", phase, n.eventType(), n.EventID, n.TaskID, n.Token)
	if d.Host != "" {
		fmt.Fprintf(&b, "\nreceiver `%s`, last status %d, tries %d\n", d.Host, d.Status, d.Tries)
	}
	if d.Reason != "" {
		fmt.Fprintf(&b, "\n%s\n", d.Reason)
	}
	return b.String()
}
