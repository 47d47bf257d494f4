package tasks

import (
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

// memoTask is the memo field of the memo, written at a task's start. The memo of an execution, open or closed, holds everything
// that an answer to a client needs.
const memoTask = "task"

// memo is what is known of a task at its start.
type memo struct {
	Token     string           `json:"token"`
	Format    providers.Format `json:"format"`
	Hash      string           `json:"hash"`
	CreatedAt time.Time        `json:"created_at"`
	// Generation is the Input's.
	Generation string `json:"generation"`
	// Request lacks media and vendor parameters. Prompt, size, user and metadata are in the archive as RequestObject where it
	// is set: there they are too large or too private for a memo.
	Request       *providers.VideoRequest `json:"request,omitempty"`
	RequestObject string                  `json:"request_object,omitempty"`
}

// Task is a video task as its readers see it. Times are zero until they are known.
type Task struct {
	ID string
	// Token is the stable id of the token that made it.
	Token string
	// Format is the dialect it was created in.
	Format  providers.Format
	Request providers.VideoRequest
	State   workflows.State
	// Progress is 0 to 100, and 100 only when completed. It does not fall while the task lives.
	Progress  int
	CreatedAt time.Time
	// Seconds, Width and Height are the vendor's words about the video where it has any, else what was asked for.
	Seconds       string
	Width, Height int
	// QueuePosition is how many tasks go first, this one counted, while the task waits for a place at a full channel;
	// else 0.
	QueuePosition int
	Ending
	sight
}

// Ending is what became of a task; the zero value until it has ended.
type Ending struct {
	// CompletedAt is when it ended, well or not.
	CompletedAt time.Time
	// ExpiresAt is when the outputs go; zero while unfinished or failed.
	ExpiresAt time.Time
	// Failure is set on failed tasks only.
	Failure *providers.VideoFailure
	// Outputs are the archived videos, in order; empty until completed.
	Outputs []activities.Output
	// Job is the upstream's job of a task that has ended, for whoever goes on from it; nil where there is none.
	Job *activities.Job
	// VendorPrice is what the vendor charges for the job, in its own unit, "" where it does not say.
	VendorPrice string
}

// sight is a look at a task's execution, as far as it is none of a reader's business.
type sight struct {
	// removed: the task is being removed, and no reader sees it. run is its execution.
	removed bool
	run     string
	// seen is when the engine was asked about it, before it answered, and beat what the poll of a job under way had said; nil where there is none.
	seen time.Time
	beat *activities.Progress
}

// Ended tells whether the task will not change any more.
func (t Task) Ended() bool { return t.State == workflows.Completed || t.State == workflows.Failed }

// Create is a request for a new task.
type Create struct {
	// TokenID is stable over rotations; TokenName and Group are as configured now.
	TokenID, TokenName, Group string
	// Weight and Lane are the token's share of a full channel; MaxTasks bounds its unfinished tasks, 0 for no bound.
	Weight, MaxTasks int
	Lane             string
	// Budget is the token's, in units of the currency; 0: none.
	Budget float64
	// TokenWebhook tells that the token has a webhook of its own.
	TokenWebhook bool
	// TokenSigns tells that the token has a webhook secret. Without one a create may name no webhook.
	TokenSigns bool
	Format     providers.Format
	// Request may carry uploads as Media.Data; they go to the archive first.
	Request providers.VideoRequest
	// IdempotencyKey is the caller's, "" for none.
	IdempotencyKey string
	// Repeat marks a request that an SDK says it sends again.
	Repeat bool
	// Arrived is when the request came to this process; zero: now.
	Arrived time.Time
}
