package workflows

import (
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
)

// State is where a task stands, in the contract's words.
type State string

// The four states of interface.md.
const (
	Queued     State = "queued"
	InProgress State = "in_progress"
	Completed  State = "completed"
	Failed     State = "failed"
)

// Failure codes of our own; a vendor's failed job carries the vendor's code.
const (
	CodeCancelled        = "cancelled"
	CodeDeadlineExceeded = "deadline_exceeded"
	CodeQueueTimeout     = "queue_timeout"    // no channel took it within video.queue_limit
	CodeUpstreamUnknown  = "upstream_unknown" // a submit whose outcome nobody can tell; never repeated
	CodeUpstreamRefused  = "upstream_refused" // the upstream surely did not take it and no other channel can help
	CodeArchiveFailed    = "archive_failed"
	CodeChannelGone      = "channel_gone" // the configuration no longer has the task's channel or key
	CodeFailedByOperator = "failed_by_operator"
	CodeInternal         = "internal_error"
)

// Task is a video task as its readers see it. Times are zero until they are known.
type Task struct {
	ID string
	// Token is the stable id of the token that made it.
	Token string
	// Format is the dialect it was created in.
	Format  providers.Format
	Request providers.VideoRequest
	State   State
	// Progress is 0 to 100, never falls, and is 100 only when completed.
	Progress int
	// peak is the most that readers may see of Progress before the task's next step.
	peak      int
	CreatedAt time.Time
	// CompletedAt is when it ended, well or not.
	CompletedAt time.Time
	// ExpiresAt is when the outputs go; zero while unfinished or failed.
	ExpiresAt time.Time
	// Seconds, Width and Height are the vendor's words about the video where it has any, else what was asked for.
	Seconds       string
	Width, Height int
	// Failure is set on failed tasks only.
	Failure *providers.VideoFailure
	// Outputs are the archived videos, in order; empty until completed.
	Outputs []activities.Output
	// Job is the upstream's job of a task that has ended, for whoever goes on from it; nil where there is none.
	Job *activities.Job
	// removed: the task is being removed, and no reader sees it. run is its execution.
	removed bool
	run     string
	// QueuePosition is how many tasks go first, this one counted, while the task waits for a place at a full channel;
	// else 0.
	QueuePosition int
}

// Ended tells whether the task will not change any more.
func (t Task) Ended() bool { return t.State == Completed || t.State == Failed }

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
