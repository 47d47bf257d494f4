package workflows

import (
	"slices"
	"time"

	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
)

// roundsMost is the number of channel choices in one run. A refused attempt adds at most 24 events and two copies of a request of
// 64 KB, so a run stays below 2,500 events and 13 MB. Temporal ends a run at 51,200 events or 50 MB.
const roundsMost = 100

// Before is the state that a run of a task receives from the runs before it.
type Before struct {
	// Began is the start of the first run.
	Began time.Time `json:"began"`
	// Attempts are the last attempts; Forgotten is the number of attempts before them.
	Attempts  []Attempt `json:"attempts,omitempty"`
	Forgotten int       `json:"forgotten,omitempty"`
	// Held lists the channels at which the task may have a slot or wait for one.
	Held []string `json:"held,omitempty"`
	// Last is the last refusal and Wait the next wait for a channel. Except and ExceptKeys refused the task in this round.
	Last       *activities.Record `json:"last,omitempty"`
	Wait       time.Duration      `json:"wait"`
	Except     []string           `json:"except,omitempty"`
	ExceptKeys []providers.KeyRef `json:"except_keys,omitempty"`
	// Lacking lists the channels without the model.
	Lacking []string `json:"lacking,omitempty"`
	// Jobs is the number of accepted jobs. Again is the time at which the last of them failed in a way that permits another job.
	Jobs  int       `json:"jobs,omitempty"`
	Again time.Time `json:"again,omitzero"`
}

// resume returns the state with which a run starts: empty for the first, that of in.Before for a later one.
func resume(ctx workflow.Context, in Input) *task {
	v := &task{state: state{in: in, phase: PhaseQueued, began: workflow.GetInfo(ctx).WorkflowStartTime}}
	b := in.Before
	if b == nil {
		return v
	}
	v.began, v.held, v.forgotten, v.jobs, v.again = b.Began, b.Held, b.Forgotten, b.Jobs, b.Again
	v.tries = slices.Clone(b.Attempts)
	return v
}

// continueAsNew ends the run and starts the next with the same id, memo and search attributes, so readers see no difference. The server
// rejects the end of a run that has not processed every signal and cancel, so none is lost.
func (v *task) continueAsNew(ctx workflow.Context, b Before) error {
	b.Began, b.Attempts, b.Held = v.began, v.attempts(), v.held
	b.Forgotten = v.attempted() - len(b.Attempts)
	in := v.in
	in.Before = &b
	return workflow.NewContinueAsNewError(ctx, Video, in)
}

// yield lets the other coroutines of the run continue until they block.
func yield(ctx workflow.Context) {
	done, settable := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(workflow.Context) { settable.Set(nil, nil) })
	_ = done.Get(ctx, nil)
}
