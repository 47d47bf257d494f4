package tasks

import (
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

// memoTask is the memo field of memo, written at the start of a task. It has all that an answer needs.
const memoTask = "task"

// memo holds the facts of a task at its start.
type memo struct {
	Token     string           `json:"token"`
	Format    providers.Format `json:"format"`
	Hash      string           `json:"hash"`
	CreatedAt time.Time        `json:"created_at"`
	// Incarnation is the incarnation of the Input.
	Incarnation string `json:"incarnation"`
	// Operation is the method and path of a call; Stream: it is a stream.
	Operation string `json:"operation,omitempty"`
	Stream    bool   `json:"stream,omitempty"`
	// Body is the archive object of a call's body, and Items the object of the items from which it continues; "" for none.
	Body  string `json:"body,omitempty"`
	Items string `json:"items,omitempty"`
	// Request lacks media and vendor parameters. If RequestObject is set, prompt, size, user and metadata are in that archive object.
	Request       *providers.VideoRequest `json:"request,omitempty"`
	RequestObject string                  `json:"request_object,omitempty"`
}

// task returns the task with the id as it is at its start, without its request.
func (m memo) task(id string) Task {
	return Task{
		ID: id, Token: m.Token, Format: m.Format, Operation: m.Operation, Stream: m.Stream, Body: m.Body, Items: m.Items,
		State: workflows.Queued, CreatedAt: m.CreatedAt, readState: readState{incarnation: m.Incarnation},
	}
}

// Task is a task as reads by its token return it. Times are zero until they are known.
type Task struct {
	ID string
	// Token is the stable id of the token that created it.
	Token string
	// Format is the format of the create.
	Format providers.Format
	// Operation is the method and path of the create of a call, "" of a video; Stream: the call is a stream of events.
	Operation string
	Stream    bool
	// Body is the archive object of a call's body, and Items the object of the items from which it continues; "" for none.
	Body, Items string
	// Request is the request of a video; of a call, only its model and metadata.
	Request providers.VideoRequest
	State   workflows.State
	// Progress is 0 to 100, and 100 only when completed. It never falls.
	Progress  int
	CreatedAt time.Time
	// Seconds, Width and Height are those of the video as the vendor reports them, else those of the request.
	Seconds       string
	Width, Height int
	// Progressed is the last report of a running call's activity; zero for a video.
	Progressed activities.CallProgress
	// QueuePosition is the position of the task in the line at a full channel, from 1; 0 if it does not wait.
	QueuePosition int
	workflows.Ending
	readState
}

// readState holds the facts of a task's execution that only this package uses.
type readState struct {
	// removed: the task is being removed, and reads do not return it. run is its execution.
	removed bool
	run     string
	// readAt is the time at which the read of Temporal began. poll is the last heartbeat of the poll of a running job; nil if there is none.
	readAt time.Time
	poll   *activities.Progress
	// incarnation is part of the names of the task's objects.
	incarnation string
}

// Ended reports whether the task will not change any more.
func (t Task) Ended() bool { return t.State.Ended() }

// Expired reports whether the task's outputs have expired.
func (t Task) Expired() bool { return !t.ExpiresAt.IsZero() && !time.Now().Before(t.ExpiresAt) }

// Kind returns the kind of the task.
func (t Task) Kind() activities.Kind { return activities.KindOf(t.ID) }

// Folder returns the archive folder of the objects that the task's create staged.
func (t Task) Folder() string { return activities.IncarnationPrefix(t.ID, t.incarnation) }

// Create is a request for a new task.
type Create struct {
	// TokenID is stable over rotations. TokenName and Group have their current values.
	TokenID, TokenName, Group string
	// Weight and Lane determine the token's share of a full channel. MaxTasks bounds its unfinished tasks; 0 is no bound.
	Weight, MaxTasks int
	Lane             string
	// Budget is the token's budget, in units of the currency; 0: none.
	Budget float64
	// TokenWebhook: the token has its own webhook.
	TokenWebhook bool
	// TokenSigns: the token has a webhook secret. Without one a create may name no webhook.
	TokenSigns bool
	Format     providers.Format
	// Request may hold uploads as Media.Data; they are written to the archive first.
	Request providers.VideoRequest
	// Call is the call of the create; nil for a video.
	Call *CallCreate
	// IdempotencyKey is the key of the request; "" for none.
	IdempotencyKey string
	// Repeat: an SDK marks the request as a repeat.
	Repeat bool
	// Arrived is the time at which the request reached this process; zero: now.
	Arrived time.Time
}
