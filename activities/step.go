package activities

import "time"

// Step is an event of a task for metrics. After a crash, a repeated step may be reported again.
type Step struct {
	Name StepName
	// TaskID is the task, for StepQueued, StepBegun and StepEnd.
	TaskID string
	// Channel is the channel of the step, and Model the task's public model; "" if the step has none.
	Channel, Model string
	// Outcome is one of the outcomes listed with the step's name.
	Outcome string
	// Code is the failure code of the task, for StepEnd.
	Code string
	// Took is the duration of a copy, of a task, or of its time in the queue; for StepQueued the time within which it is reported again.
	Took time.Duration
	// Ran is the time from a call's first request, or from a video's accepted submit, to the end, for StepEnd; 0 for none.
	Ran time.Duration
	// Since is the creation of a queued task, for StepQueued.
	Since time.Time
	// Bytes is the number of copied bytes, for StepArchive.
	Bytes int64
}

// StepName is the kind of a step.
type StepName string

// The steps and their outcomes. An outcome that is not listed is the kind of a fault.
const (
	// StepSubmit is one submit: accepted; refused (certainly not accepted); unknown (StepReconcile follows).
	StepSubmit StepName = "submit"
	// StepReconcile is the last search for the job of a lost submit: found; never (certainly not accepted); unknown, which ends the task.
	StepReconcile StepName = "reconcile"
	// StepPoll is one poll: running, done, failed, forgotten.
	StepPoll StepName = "poll"
	// StepArchive is the copy of one output: ok.
	StepArchive StepName = "archive"
	// StepDeliver is one try of a webhook: delivered; again; given_up.
	StepDeliver StepName = "deliver"
	// StepEnd is the end of a settled task: completed, failed; cancelled, of a call.
	StepEnd StepName = "end"
	// StepRelay is an answer of a call that was lost: again (the call is sent once more); unknown.
	StepRelay StepName = "relay"
	// StepQueued is a task that waits for an upstream, and StepBegun the first request of a call.
	StepQueued StepName = "queued"
	StepBegun  StepName = "begun"
)

// Outcomes of steps.
const (
	OutcomeAccepted  = "accepted"
	OutcomeRefused   = "refused"
	OutcomeUnknown   = "unknown"
	OutcomeFound     = "found"
	OutcomeNever     = "never"
	OutcomeRunning   = "running"
	OutcomeDone      = "done"
	OutcomeFailed    = "failed"
	OutcomeForgotten = "forgotten"
	OutcomeOK        = "ok"
	OutcomeDelivered = "delivered"
	OutcomeAgain     = "again"
	OutcomeGivenUp   = "given_up"
	OutcomeCompleted = "completed"
	OutcomeCancelled = "cancelled"
)

// Recorder is called with every step and must not block; nil: steps are not recorded.
type Recorder func(Step)

func (t Recorder) record(step Step) {
	if t != nil {
		t(step)
	}
}

func (to Assignment) step(name StepName, model, outcome string) Step {
	return Step{Name: name, Channel: to.Channel, Model: model, Outcome: outcome}
}
