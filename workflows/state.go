package workflows

import (
	"fmt"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
)

// State is where a task stands, in the contract's words.
type State string

// The four states that clients read.
const (
	Queued     State = "queued"
	InProgress State = "in_progress"
	Completed  State = "completed"
	Failed     State = "failed"
)

// Failure codes of our own. A job that failed, and one that was refused, carries one of the Failed words of providers.
const (
	CodeCancelled        = "cancelled"
	CodeDeadlineExceeded = "deadline_exceeded"
	CodeQueueTimeout     = "queue_timeout"    // no channel took it within video.queue_limit
	CodeUpstreamUnknown  = "upstream_unknown" // a submit whose outcome is unknown; never repeated
	CodeArchiveFailed    = "archive_failed"
	CodeChannelGone      = "channel_gone" // the configuration no longer has the task's channel or key
	CodeFailedByOperator = "failed_by_operator"
	CodeInternal         = "internal_error"
)

// Phase is what a task's workflow is doing, as the Temporal UI lists it.
type Phase string

// The phases, in order. A task that no channel takes goes back to PhaseQueued.
const (
	PhaseQueued     Phase = "queued"
	PhaseSubmitting Phase = "submitting"
	PhasePolling    Phase = "polling"
	PhaseArchiving  Phase = "archiving"
	PhaseCompleted  Phase = "completed"
	PhaseFailed     Phase = "failed"
)

// Search attributes of a task, all of type Keyword, by which an operator finds it.
const (
	AttrModel   = "TaskModel"
	AttrChannel = "TaskChannel"
	AttrVendor  = "TaskVendor"
	AttrToken   = "TaskToken"
	AttrState   = "TaskState"
	// AttrDue is when the task should have left its phase, as a sortable time (RFC 3339, UTC). Later it is stuck.
	AttrDue = "TaskDue"
)

// SearchAttributes lists the names of all search attributes.
func SearchAttributes() []string {
	return []string{AttrModel, AttrChannel, AttrVendor, AttrToken, AttrState, AttrDue}
}

// Keyword is the key of a search attribute.
func Keyword(name string) temporal.SearchAttributeKeyKeyword {
	return temporal.NewSearchAttributeKeyKeyword(name)
}

// MemoResult is the memo field of a task's Result, written before its close: readers need no worker.
const MemoResult = "result"

// SignalFail ends a task as failed; its text is the reason that the client reads. An operator sends it.
const SignalFail = "fail"

// Revision is the revision of the workflow code of this version. Each workflow's input carries the revision that it was started
// with. A change of the steps gets the next number, and the new steps run only where the input's revision is at least that
// number: see Upgrades in README.md.
const Revision = 1

// refuseNewer panics where a workflow was started with a newer revision than this worker knows. The panic fails only the step:
// Temporal offers it again until a newer worker takes it.
func refuseNewer(revision int) {
	if revision > Revision {
		panic(fmt.Sprintf("this worker knows workflow revision %d, the workflow was started with revision %d: %s", Revision, revision, newerWorker))
	}
}

const newerWorker = "it needs a newer worker"

// NeedsNewer reports whether the error of a workflow's step is that this worker is too old for the workflow.
func NeedsNewer(err error) bool { return strings.Contains(err.Error(), newerWorker) }

// Limits bound a task's life. They are taken from the configuration when the task is created.
type Limits struct {
	// Queue is how long a task may wait for a channel that takes it.
	Queue activities.Duration `json:"queue"`
	// Deadline counts from the accepted submit and covers polling.
	Deadline activities.Duration `json:"deadline"`
	// Archive is how long the copy of the result may take.
	Archive activities.Duration `json:"archive"`
	// Retention is how long outputs stay after completion.
	Retention activities.Duration `json:"retention"`
	// Jobs is how many jobs a task may start where the vendors say that a failure was theirs and costs nothing; 0 means one.
	Jobs int `json:"jobs,omitempty"`
}

// Input starts a task's workflow.
type Input struct {
	// Revision is the workflows' at the task's start.
	Revision int    `json:"revision"`
	TaskID   string `json:"task_id"`
	// Generation distinguishes the task from a deleted one that had the same idempotency key, and so the same id.
	Generation string `json:"generation"`
	// Created is the memo's.
	Created time.Time `json:"created"`
	Token   string    `json:"token"`
	Group   string    `json:"group"`
	// Weight and Lane are the token's share of a channel that many wait for.
	Weight int              `json:"weight,omitempty"`
	Lane   string           `json:"lane,omitempty"`
	Format providers.Format `json:"format"`
	Model  string           `json:"model"`
	// Request, or RequestObject where it is too large or too private for a history.
	Request       *providers.VideoRequest `json:"request,omitempty"`
	RequestObject string                  `json:"request_object,omitempty"`
	// Several: more than one video is asked for.
	Several bool `json:"several,omitempty"`
	// Video is what is asked of the video.
	Video *providers.VideoShape `json:"video,omitempty"`
	// Reservation names the task's money. Footage is what is asked for.
	Reservation string            `json:"reservation"`
	Footage     providers.Footage `json:"footage,omitzero"`
	// Pin is the one channel and key that can do it: those of the job to remix.
	Pin *activities.Assignment `json:"pin,omitempty"`
	// Notify delivers the end to a webhook, the request's or the token's.
	Notify bool   `json:"notify,omitempty"`
	Limits Limits `json:"limits"`
	// Before is what the runs before this one came to; nil in a task's first.
	Before *Before `json:"before,omitempty"`
}

// Progress of a task by phase: a job under way stays at or below activities.MostShown, and only a completed task shows
// ProgressCompleted.
const (
	ProgressArchiving = 99
	ProgressCompleted = 100
)

// Result is how a task ended. A failed task is a completed workflow whose Result says failed.
type Result struct {
	State       State                   `json:"state"`
	Failure     *providers.VideoFailure `json:"failure,omitempty"`
	CompletedAt time.Time               `json:"completed_at"`
	ExpiresAt   time.Time               `json:"expires_at,omitzero"`
	Outputs     []activities.Output     `json:"outputs,omitempty"`
	Seconds     string                  `json:"seconds,omitempty"`
	Width       int                     `json:"width,omitempty"`
	Height      int                     `json:"height,omitempty"`
	// Price is what the vendor charges for the job, in its own unit, "" where it does not say.
	Price string `json:"price,omitempty"`
	// Progress is where a failed task stood.
	Progress int `json:"progress"`
	// Job is the accepted job; nil where no upstream took one.
	Job *activities.Job `json:"job,omitempty"`
	// Attempts are the last of them, for operators; the memo lacks them.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// Attempt is one channel and one submit, as an operator reads it.
type Attempt struct {
	Number     int                   `json:"number"`
	Assignment activities.Assignment `json:"assignment"`
	// Job is the upstream's handle, "" where it gave none; Fault is why.
	Job   string             `json:"job,omitempty"`
	Fault *activities.Record `json:"fault,omitempty"`
}

// of adds the job that the result is of.
func (r Result) of(job activities.Job) Result {
	r.Job = &job
	return r
}

// try is one attempt, for the operator.
type try struct {
	assignment activities.Assignment
	job        string
	fault      *activities.Record
}

// attemptsShown is how many attempts a result names: a task that no upstream takes for a day has hundreds.
const attemptsShown = 10

// attempts are the last tries.
func (s *state) attempts() []Attempt {
	first := max(0, len(s.tries)-attemptsShown)
	list := make([]Attempt, 0, len(s.tries)-first)
	for i, t := range s.tries[first:] {
		list = append(list, Attempt{Number: s.forgotten + first + i + 1, Assignment: t.assignment, Job: t.job, Fault: t.fault})
	}
	return list
}

// attempted is how many attempts the task has made, in all its runs.
func (s *state) attempted() int { return s.forgotten + len(s.tries) }

// state is all a running task knows; nothing of it lives outside the workflow.
type state struct {
	in    Input
	phase Phase
	// began is when the task began, in whichever run.
	began time.Time
	// tries are the attempts, but for those of earlier runs that were forgotten, the first so many.
	tries     []try
	forgotten int
	// jobs is how many jobs upstreams have accepted, and again is when the last of them failed so that another may follow.
	jobs  int
	again time.Time
	// held are the channels where the task may have a slot, or a place in line.
	held []string
	// lines are the full channels whose line the task stands in, for the operator.
	lines []string
}

// enter moves the task to a phase, visible in the operator's list.
func (s *state) enter(ctx workflow.Context, phase Phase, more ...temporal.SearchAttributeUpdate) error {
	if s.phase == phase && len(more) == 0 {
		return nil
	}
	s.phase = phase
	began := s.began
	if !s.again.IsZero() {
		began = s.again
	}
	due := phase.due(began, workflow.Now(ctx))
	updates := append([]temporal.SearchAttributeUpdate{Keyword(AttrState).ValueSet(string(phase)), dueAt(due)}, more...)
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		return fmt.Errorf("show phase %s: %w", phase, err)
	}
	return nil
}

// tell writes the current details that the Temporal UI shows of a running task.
func (s *state) tell(ctx workflow.Context) {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · model `%s` · token `%s`\n", s.phase, s.in.Model, s.in.Token)
	for _, t := range s.attempts() {
		fmt.Fprintf(&b, "\n%d. channel `%s` (%s)", t.Number, t.Assignment.Channel, t.Assignment.Vendor)
		if t.Job != "" {
			fmt.Fprintf(&b, ": job `%s`", t.Job)
		}
		if t.Fault != nil {
			fmt.Fprintf(&b, ": %s: %s", t.Fault.Kind, t.Fault.Message)
		}
	}
	if len(s.lines) > 0 {
		fmt.Fprintf(&b, "\nIn line at `%s`; the pending activity's heartbeat says at which place.\n", strings.Join(s.lines, "`, `"))
	}
	workflow.SetCurrentDetails(ctx, b.String())
}
