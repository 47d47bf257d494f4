package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
)

// roundsMost is the number of channel choices in one run. A refused attempt adds at most 24 events and two copies of a request of
// 64 KB, so a run stays below 2,500 events and 13 MB. Temporal ends a run at 51,200 events or 50 MB.
const roundsMost = 100

// Carried is the state of a task that its next run continues with.
type Carried struct {
	// Began is the start of the first run.
	Began time.Time `json:"began"`
	// Attempts are those of this run and the last of earlier runs; Forgotten is the number of attempts before them.
	Attempts  []Attempt `json:"attempts,omitempty"`
	Forgotten int       `json:"forgotten,omitempty"`
	// Held lists the channels at which the task may have a slot or wait for one.
	Held []string `json:"held,omitempty"`
	// Last is the last refusal and Wait the next wait for a channel. Except and ExceptKeys are excluded from this round.
	Last       *activities.Record `json:"last,omitempty"`
	Wait       time.Duration      `json:"wait"`
	Except     []string           `json:"except,omitempty"`
	ExceptKeys []providers.KeyRef `json:"except_keys,omitempty"`
	// Lacking lists the channels without the model. Every round excludes them.
	Lacking []string `json:"lacking,omitempty"`
	// Jobs is the number of accepted jobs. Again is the time at which the last of them failed in a way that permits another job.
	Jobs  int       `json:"jobs,omitempty"`
	Again time.Time `json:"again,omitzero"`
}

// continueAsNew ends the run and starts the next with the same id, memo and search attributes, so readers see no difference. The server
// rejects the end of a run that has not processed every signal and cancel, so none is lost.
func (v *task) continueAsNew(ctx workflow.Context) error {
	in, carried := v.in, v.Carried
	carried.Attempts = v.attempts()
	carried.Forgotten = v.attempted() - len(carried.Attempts)
	in.Before = &carried
	return workflow.NewContinueAsNewError(ctx, Video, in)
}

// yield lets the other coroutines of the run continue until they block.
func yield(ctx workflow.Context) {
	done, settable := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(workflow.Context) { settable.Set(nil, nil) })
	_ = done.Get(ctx, nil)
}
