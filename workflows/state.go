package workflows

import (
	"fmt"
	"slices"
	"strings"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
)

// State is the state of a task, as the contract names it.
type State string

// The states that clients read. A cancelled video is Failed with CodeCancelled.
const (
	Queued     State = "queued"
	InProgress State = "in_progress"
	Completed  State = "completed"
	Failed     State = "failed"
	Cancelled  State = "cancelled"
)

// Ended reports whether a task in the state does not change any more.
func (s State) Ended() bool { return s == Completed || s == Failed || s == Cancelled }

// The failure codes of the gateway. A failed or refused job has one of the codes of package providers.
const (
	CodeCancelled        = "cancelled"
	CodeDeadlineExceeded = "deadline_exceeded"
	CodeQueueTimeout     = "queue_timeout"    // no channel accepted it within video.queue_limit
	CodeUpstreamUnknown  = "upstream_unknown" // the outcome of a submit is unknown; it is never repeated
	CodeArchiveFailed    = "archive_failed"
	CodeChannelGone      = "channel_gone" // the task's channel or key is no longer configured
	CodeFailedByOperator = "failed_by_operator"
	CodeInternal         = "internal_error"
	CodeOutputTooLarge   = "output_too_large" // the answer of a call exceeds background.max_output
)

// Phase is the current step of a task's workflow, as the Temporal UI lists it.
type Phase string

// The phases, in order. A refused task returns to PhaseQueued. The last phase of a task has the name of its last State.
const (
	PhaseQueued     Phase = "queued"
	PhaseSubmitting Phase = "submitting"
	PhasePolling    Phase = "polling"
	PhaseArchiving  Phase = "archiving"
	PhaseCompleted  Phase = "completed"
	PhaseFailed     Phase = "failed"
	// PhaseCalling is the only phase of a running call: its activity reports the rest. PhaseCancelled is the end of a cancelled call.
	PhaseCalling   Phase = "calling"
	PhaseCancelled Phase = "cancelled"
)

// The workflow types of tasks, by kind.
const (
	VideoType = "Video"
	CallType  = "Call"
	// OfTasks is the term of a visibility query that finds the tasks of every kind.
	OfTasks = "WorkflowType IN ('" + VideoType + "', '" + CallType + "')"
)

// TypeOf returns the workflow type of the tasks of a kind, "" for no kind.
func TypeOf(kind activities.Kind) string {
	switch kind {
	case activities.KindVideo:
		return VideoType
	case activities.KindCall:
		return CallType
	default:
		return ""
	}
}

// The search attributes of a task, all of type Keyword.
const (
	AttrModel   = "TaskModel"
	AttrChannel = "TaskChannel"
	AttrVendor  = "TaskVendor"
	AttrToken   = "TaskToken"
	AttrState   = "TaskState"
	// AttrOperation is the method and path of a call's create.
	AttrOperation = "TaskOperation"
	// AttrDue is the time by which the task should have left its phase, in RFC 3339, UTC. After it the task is stuck.
	AttrDue = "TaskDue"
)

// SearchAttributes returns the names of all search attributes.
func SearchAttributes() []string {
	return []string{AttrModel, AttrChannel, AttrVendor, AttrToken, AttrState, AttrOperation, AttrDue}
}

// Keyword returns the typed key of a search attribute.
func Keyword(name string) temporal.SearchAttributeKeyKeyword {
	return temporal.NewSearchAttributeKeyKeyword(name)
}

// MemoResult is the memo field of a task's Result. It is written before the workflow closes, so reads need no worker.
const MemoResult = "result"

// SignalFail ends a task as failed. Its argument is the message for the client. Operators send it.
const SignalFail = "fail"

// SignalRemove announces the removal of a running task before its cancel: its end is not sent to its webhook.
const SignalRemove = "remove"

// Revision is the revision of the workflow code of this version. Each workflow's input holds the revision with which it started. A change
// of the steps increments Revision, and the new steps run only for inputs of that revision or later: see build/releases.md of the manual.
const Revision = 1

// refuseNewer panics if the workflow has a newer revision than this worker: Temporal offers the workflow task to a newer one.
func refuseNewer(revision int) {
	if revision > Revision {
		panic(fmt.Sprintf("this worker knows workflow revision %d, the workflow was started with revision %d: %s", Revision, revision,
			newerWorker))
	}
}

const newerWorker = "it needs a newer worker"

// NeedsNewer reports whether a workflow task failed because the worker is too old for it.
func NeedsNewer(err error) bool { return strings.Contains(err.Error(), newerWorker) }

// Limits are the time limits of a task. The configuration at the create determines them.
type Limits struct {
	// Queue bounds the wait for a channel that accepts the task.
	Queue activities.Duration `json:"queue"`
	// Deadline counts from the accepted submit and covers polling.
	Deadline activities.Duration `json:"deadline"`
	Archive  activities.Duration `json:"archive"`
	// Retention is the time from the completion to the removal of the outputs.
	Retention activities.Duration `json:"retention"`
	// Jobs bounds the jobs of a task whose vendors report failures on their side without a charge; 0 means one.
	Jobs int `json:"jobs,omitempty"`
}

// Input starts a task's workflow.
type Input struct {
	Revision int    `json:"revision"`
	TaskID   string `json:"task_id"`
	// Incarnation distinguishes the task from a deleted one with the same idempotency key, and so the same id.
	Incarnation string `json:"incarnation"`
	// Created is the time of the create, as in the memo.
	Created time.Time `json:"created"`
	Token   string    `json:"token"`
	Group   string    `json:"group"`
	// Weight and Lane determine the token's share of a full channel.
	Weight int              `json:"weight,omitempty"`
	Lane   string           `json:"lane,omitempty"`
	Format providers.Format `json:"format"`
	Model  string           `json:"model"`
	// Request is the request. RequestObject is its archive object instead, if it is too large or too private for a history.
	Request       *providers.VideoRequest `json:"request,omitempty"`
	RequestObject string                  `json:"request_object,omitempty"`
	// Several: the request is for more than one video.
	Several bool                  `json:"several,omitempty"`
	Video   *providers.VideoShape `json:"video,omitempty"`
	// Reservation is the id of the task's reservation of money. Footage is what was requested.
	Reservation string            `json:"reservation"`
	Footage     providers.Footage `json:"footage,omitzero"`
	// Pin is the only channel and key for the task: that of the job to remix.
	Pin *activities.Assignment `json:"pin,omitempty"`
	// Notify: the end is delivered to a webhook, of the request or of the token.
	Notify bool   `json:"notify,omitempty"`
	Limits Limits `json:"limits"`
	// Before is the state of the runs before this one; nil in the first.
	Before *Carried `json:"before,omitempty"`
	// Call is the call of the workflow Call; nil for Video.
	Call *activities.StagedCall `json:"call,omitempty"`
}

// The progress of a task. A running job shows at most activities.MostShown, and only a completed task ProgressCompleted.
const (
	ProgressArchiving = 99
	ProgressCompleted = 100
)

// Result is the end of a task. A failed task is a completed workflow whose Result has the state Failed.
type Result struct {
	Ending

	State   State  `json:"state"`
	Seconds string `json:"seconds,omitempty"`
	Width   int    `json:"width,omitempty"`
	Height  int    `json:"height,omitempty"`
	// Progress is the last progress of a failed task.
	Progress int `json:"progress"`
	// Attempts are the last attempts, for operators. The memo does not hold them.
	Attempts []Attempt `json:"attempts,omitempty"`
}

// Ending is what a task has only after its end.
type Ending struct {
	// CompletedAt is the time of the end, in any state.
	CompletedAt time.Time `json:"completed_at"`
	// ExpiresAt is the time at which the outputs are removed; zero for a failed video.
	ExpiresAt time.Time `json:"expires_at,omitzero"`
	// Failure is set only on failed tasks.
	Failure *providers.VideoFailure `json:"failure,omitempty"`
	// Outputs are the archived objects, in order.
	Outputs []activities.Output `json:"outputs,omitempty"`
	// Job is the accepted job; nil if no upstream accepted one. Price is the vendor's charge for it, in the vendor's unit, "" if it
	// reports none.
	Job   *activities.Job `json:"job,omitempty"`
	Price string          `json:"price,omitempty"`
	// Call is the answer of a call; nil for a video.
	Call *activities.Answered `json:"call,omitempty"`
}

// Attempt is one submit to one channel, for operators.
type Attempt struct {
	// Number counts all attempts of the task, from 1.
	Number     int                   `json:"number"`
	Assignment activities.Assignment `json:"assignment"`
	// Job is the upstream's id of the job, "" if there is none; Fault is the reason then.
	Job   string             `json:"job,omitempty"`
	Fault *activities.Record `json:"fault,omitempty"`
}

func (r Result) of(job activities.Job) Result {
	r.Job = &job
	return r
}

// attemptsShown is the number of attempts in a result. A task that every channel refuses for a day has hundreds.
const attemptsShown = 10

func (v *task) attempts() []Attempt {
	return slices.Clone(v.Attempts[max(0, len(v.Attempts)-attemptsShown):])
}

func (v *task) attempted() int { return v.Forgotten + len(v.Attempts) }

// enter moves the task to a phase and records that in the search attributes.
func (v *task) enter(ctx workflow.Context, phase Phase, more ...temporal.SearchAttributeUpdate) error {
	if v.phase == phase && len(more) == 0 {
		return nil
	}
	v.phase = phase
	began := v.Began
	if !v.Again.IsZero() {
		began = v.Again
	}
	due := phase.due(began, workflow.Now(ctx))
	updates := append([]temporal.SearchAttributeUpdate{Keyword(AttrState).ValueSet(string(phase)), dueAt(due)}, more...)
	if err := workflow.UpsertTypedSearchAttributes(ctx, updates...); err != nil {
		return fmt.Errorf("show phase %s: %w", phase, err)
	}
	return nil
}

func (v *task) showDetails(ctx workflow.Context) {
	var b strings.Builder
	fmt.Fprintf(&b, "**%s** · model `%s` · token `%s`\n", v.phase, v.in.Model, v.in.Token)
	for _, t := range v.attempts() {
		fmt.Fprintf(&b, "\n%d. channel `%s` (%s)", t.Number, t.Assignment.Channel, t.Assignment.Vendor)
		if t.Job != "" {
			fmt.Fprintf(&b, ": job `%s`", t.Job)
		}
		if t.Fault != nil {
			fmt.Fprintf(&b, ": %s: %s", t.Fault.Kind, t.Fault.Message)
		}
	}
	if len(v.waitingAt) > 0 {
		fmt.Fprintf(&b, "\nWaiting for a slot at `%s`; the heartbeat of the pending activity has the position.\n",
			strings.Join(v.waitingAt, "`, `"))
	}
	workflow.SetCurrentDetails(ctx, b.String())
}
