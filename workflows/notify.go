package workflows

import (
	"crypto/sha256"
	"encoding/base32"
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
)

// NotifyType is the workflow that delivers the end of a task to a webhook.
const NotifyType = "Notify"

// NotifyPrefix begins the workflow ids of deliveries; the task's id follows.
const NotifyPrefix = "notify_"

// Where a delivery stands, as the Temporal UI lists it under AttrState.
const (
	PhaseDelivering  Phase = "delivering"
	PhaseDelivered   Phase = "delivered"
	PhaseUndelivered Phase = "undelivered"
)

// NotifyInput is the end of a task that a webhook wants to hear of.
type NotifyInput struct {
	// Revision is the workflows' at the delivery's start.
	Revision int    `json:"revision"`
	TaskID   string `json:"task_id"`
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

// Notice is the delivery of the task's end: its event, and where its webhook is to be found.
func (in Input) Notice(state State, at time.Time) NotifyInput {
	n := NotifyInput{
		Revision: Revision, TaskID: in.TaskID, Token: in.Token, EventID: eventID(in.TaskID+in.Generation, state), State: state, CompletedAt: at, RequestObject: in.RequestObject,
	}
	if in.Request != nil {
		n.URL = in.Request.WebhookURL
	}
	return n
}

// eventID is the id of the event that a task ended so.
func eventID(taskID string, state State) string {
	sum := sha256.Sum256([]byte(taskID + ":" + string(state)))
	return "evt_" + strings.ToLower(base32.HexEncoding.WithPadding(base32.NoPadding).EncodeToString(sum[:16]))
}

// NotifyID is the workflow id of the delivery that the task ended so. An end that an operator's retry undid is told
// apart, and that of an earlier task with the same id.
func (in Input) NotifyID(state State) string {
	return NotifyPrefix + in.TaskID + "_" + string(state) + "_" + in.Generation
}

// EventType is what the receiver reads as the event's type.
func (n NotifyInput) EventType() string { return "video." + string(n.State) }

// Summary is the line that the Temporal UI shows of the delivery.
func (n NotifyInput) Summary() string { return n.EventType() + " · " + n.TaskID }

// Attributes are those by which an operator finds the delivery.
func (n NotifyInput) Attributes(model string) temporal.SearchAttributes {
	return temporal.NewSearchAttributes(
		Keyword(AttrToken).ValueSet(n.Token), Keyword(AttrModel).ValueSet(model), Keyword(AttrState).ValueSet(string(PhaseDelivering)),
	)
}

// Notify is the life of one delivery: the receiver is told until it has heard or three days are over. How it ended is
// its result; it returns an error only for a bug.
func Notify(ctx workflow.Context, in NotifyInput) (activities.Delivery, error) {
	refuseNewer(in.Revision)
	var (
		acts     activities.Activities // names the activity to the SDK; nothing calls it
		delivery activities.Delivery
		free, _  = workflow.NewDisconnectedContext(ctx)
		event    = activities.Event{ID: in.EventID, Type: in.EventType(), TaskID: in.TaskID, At: in.CompletedAt}
		until    = workflow.Now(ctx).Add(notifyLimit)
	)
	workflow.SetCurrentDetails(ctx, in.details(PhaseDelivering, delivery))
	err := workflow.ExecuteActivity(withDeliver(ctx, in.Summary()), acts.Deliverer.Deliver, activities.DeliverInput{
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

// details are what the Temporal UI shows of the delivery.
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
