package workflows

import "time"

// notifyType is the workflow that delivers the end of a task to a webhook.
const notifyType = "Notify"

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

// NotifyID is the workflow id of the delivery that a task ended so. An end that an operator's retry undid is told apart.
func NotifyID(taskID string, state State) string { return "notify_" + taskID + "_" + string(state) }
