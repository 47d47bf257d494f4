package workflows

import (
	"time"

	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
)

// roundsMost is how many times one run asks for a channel. An attempt that is refused is at most two dozen events and two
// copies of a request of 64 KB, so a run stays below 2,500 events and 13 MB; Temporal ends one of 51,200 or 50 MB.
const roundsMost = 100

// Before is what the next run of a task needs to know of those before it.
type Before struct {
	// Began is when the first of them did.
	Began time.Time `json:"began"`
	// Attempts are the last ones, and Forgotten is how many there were before them.
	Attempts  []Attempt `json:"attempts,omitempty"`
	Forgotten int       `json:"forgotten,omitempty"`
	// Held are the channels where the task may have a slot, or a place in line.
	Held []string `json:"held,omitempty"`
	// Last is why no channel took it, Wait the next wait for one, and Except and ExceptKeys are those that refused it in
	// this round.
	Last       *activities.Record `json:"last,omitempty"`
	Wait       time.Duration      `json:"wait"`
	Except     []string           `json:"except,omitempty"`
	ExceptKeys []providers.KeyRef `json:"except_keys,omitempty"`
	// Lacking are those that do not have the model.
	Lacking []string `json:"lacking,omitempty"`
	// Jobs is how many jobs upstreams have accepted, and Again is when the last of them failed so that another may follow.
	Jobs  int       `json:"jobs,omitempty"`
	Again time.Time `json:"again,omitzero"`
}

// resume makes the state of a run from what those before it came to.
func resume(ctx workflow.Context, in Input) *video {
	v := &video{state: state{in: in, phase: PhaseQueued, began: workflow.GetInfo(ctx).WorkflowStartTime}}
	b := in.Before
	if b == nil {
		return v
	}
	v.began, v.held, v.forgotten, v.jobs, v.again = b.Began, b.Held, b.Forgotten, b.Jobs, b.Again
	for _, a := range b.Attempts {
		v.tries = append(v.tries, try{assignment: a.Assignment, job: a.Job, fault: a.Fault})
	}
	return v
}

// goOn ends the run and begins the next, under the same id and with the same memo and search attributes, so that readers
// see no difference. The server lets a run end only when it knows of every signal and cancel that arrived, and they are
// looked at before.
func (v *video) goOn(ctx workflow.Context, b Before) error {
	b.Began, b.Attempts, b.Held = v.began, v.attempts(), v.held
	b.Forgotten = v.attempted() - len(b.Attempts)
	in := v.in
	in.Before = &b
	return workflow.NewContinueAsNewError(ctx, Video, in)
}

// yield lets what else the run does go on until it waits.
func yield(ctx workflow.Context) {
	done, settable := workflow.NewFuture(ctx)
	workflow.Go(ctx, func(workflow.Context) { settable.Set(nil, nil) })
	_ = done.Get(ctx, nil)
}
