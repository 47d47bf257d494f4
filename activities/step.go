package activities

import "time"

// Step is something that became of a task, as those who count see it. A step that is tried again after a crash may be
// told again.
type Step struct {
	Name StepName
	// Channel it was at, and Model, the task's public name; "" where the step knows none.
	Channel, Model string
	// Outcome is one of the few words below the step's name.
	Outcome string
	// Code is why the task failed, of StepEnd.
	Code string
	// Took is how long a copy took, or a whole task from its creation; 0 for other steps.
	Took time.Duration
	// Bytes were copied, of StepArchive.
	Bytes int64
}

// StepName names what happened.
type StepName string

// The steps and their outcomes. What is not listed is a fault's kind.
const (
	// StepSubmit is one submit: accepted; refused (surely not taken); unknown (StepReconcile follows).
	StepSubmit StepName = "submit"
	// StepReconcile is the last look for the job of a lost submit: found; never (surely not taken); unknown, which ends the
	// task.
	StepReconcile StepName = "reconcile"
	// StepPoll is one look at a job: running, done, failed, forgotten.
	StepPoll StepName = "poll"
	// StepArchive is one output's copy: ok.
	StepArchive StepName = "archive"
	// StepDeliver is one try of a webhook: delivered; again; given_up.
	StepDeliver StepName = "deliver"
	// StepEnd is the end of a task, once it is settled: completed, failed.
	StepEnd StepName = "end"
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
)

// Told is called with every step; it must not wait. nil: nobody counts.
type Told func(Step)

func (t Told) count(step Step) {
	if t != nil {
		t(step)
	}
}

func (to Assignment) step(name StepName, model, outcome string) Step {
	return Step{Name: name, Channel: to.Channel, Model: model, Outcome: outcome}
}
