package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
)

// submit tries channels until one accepts the job, the task's time in the queue runs out, or a submit ends in a way
// that must not be followed by another.
func (v *video) submit(ctx workflow.Context) (activities.Job, *providers.VideoFailure, error) {
	var (
		none  activities.Job
		last  *activities.Record
		want  = activities.AdmitInput{Group: v.in.Group, Model: v.in.Model, Format: v.in.Format, Several: v.in.Several, Pin: v.in.Pin}
		wait  = queueFirst
		until = workflow.Now(ctx).Add(time.Duration(v.in.Limits.Queue))
	)
	for {
		if isCancelled(ctx) {
			return none, v.calledOff(), nil
		}
		admission, err := v.admit(ctx, want)
		if err != nil {
			return none, nil, err
		}
		if admission.Assignment == nil {
			if last == nil || admission.Refused.RetryAfter > 0 {
				last = admission.Refused
			}
			left := until.Sub(workflow.Now(ctx))
			if left <= 0 {
				return none, &providers.VideoFailure{Code: CodeQueueTimeout, Message: "No upstream took the task in time: " + words(*last)}, nil
			}
			if err := v.pause(ctx, min(max(wait, last.RetryAfter), left)); err != nil {
				return none, nil, err
			}
			want.Except, want.ExceptKeys = nil, nil
			wait = min(2*wait, queueMost)
			continue
		}
		job, fault, err := v.attempt(ctx, *admission.Assignment)
		switch {
		case err != nil:
			return none, nil, err
		case fault == nil:
			return job, nil, nil
		case fault.Taken != providers.TakenNo:
			return none, &providers.VideoFailure{
				Code:    CodeUpstreamUnknown,
				Message: "The upstream may have taken the job, but its answer was lost and nobody can tell; it is not submitted again.",
			}, nil
		case !fault.Elsewhere:
			return none, refusal(*fault), nil
		}
		last = fault
		if to := admission.Assignment; fault.KeyOnly {
			want.ExceptKeys = append(want.ExceptKeys, providers.KeyRef{Channel: to.Channel, Fingerprint: to.Key})
		} else {
			want.Except = append(want.Except, to.Channel)
		}
	}
}

// admit chooses the channel of the next attempt. It is a local activity: a look into the worker's memory.
func (v *video) admit(ctx workflow.Context, want activities.AdmitInput) (activities.Admission, error) {
	var admission activities.Admission
	// Not the task's own context: a cancel is looked at between the steps.
	free, _ := workflow.NewDisconnectedContext(ctx)
	err := workflow.ExecuteLocalActivity(withAdmit(free), v.acts.Admit, want).Get(free, &admission)
	if err != nil {
		return admission, fmt.Errorf("admit: %w", err)
	}
	return admission, nil
}

// pause waits for another try; a cancel ends it early.
func (v *video) pause(ctx workflow.Context, wait time.Duration) error {
	if err := v.enter(ctx, PhaseQueued); err != nil {
		return err
	}
	v.tell(ctx)
	if err := workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: "no channel takes it now"}).Get(ctx, nil); err != nil && !temporal.IsCanceledError(err) {
		return fmt.Errorf("wait for a channel: %w", err)
	}
	return nil
}

// attempt is one channel and one submit. Its fault's Taken is the last word on whether another attempt may follow.
func (v *video) attempt(ctx workflow.Context, to activities.Assignment) (activities.Job, *activities.Record, error) {
	if err := v.enter(ctx, PhaseSubmitting, keyword(AttrChannel).ValueSet(to.Channel), keyword(AttrVendor).ValueSet(to.Vendor)); err != nil {
		return activities.Job{}, nil, err
	}
	v.tries = append(v.tries, try{assignment: to})
	this := &v.tries[len(v.tries)-1]
	v.tell(ctx)
	in := activities.SubmitInput{
		TaskID: v.in.TaskID, Attempt: len(v.tries), Assignment: to, Request: v.in.Request, RequestObject: v.in.RequestObject,
	}
	summary := fmt.Sprintf("%s · attempt %d", to.Channel, in.Attempt)
	var job activities.Job
	// A cancel waits for the submit's answer: what was paid for must be known.
	free, _ := workflow.NewDisconnectedContext(ctx)
	err := workflow.ExecuteActivity(withSubmit(free, summary), v.acts.Submit, in).Get(free, &job)
	fault, bad := activities.Outcome(err)
	if bad && fault.Taken != providers.TakenNo {
		until := workflow.Now(ctx)
		if !fault.Settled {
			until = until.Add(submitLife) // the request may still be under way in a worker that lost its way to Temporal
		}
		err = workflow.ExecuteActivity(withReconcile(free, summary), v.acts.Reconcile, activities.ReconcileInput{Submit: in, Until: until}).Get(free, &job)
		fault, bad = activities.Outcome(err)
		// The vendor said it never had the job: another submit costs nothing twice.
		fault.Elsewhere = fault.Elsewhere || fault.Taken == providers.TakenNo
	}
	if bad {
		this.fault = &fault
		v.tell(ctx)
		return job, &fault, nil
	}
	this.job = job.Ticket.Job
	return job, nil, nil
}

// refusal says why the upstream did not take the job, with its own code where it gave one.
func refusal(fault activities.Record) *providers.VideoFailure {
	code := fault.Code
	if code == "" {
		code = CodeUpstreamRefused
	}
	return &providers.VideoFailure{Code: code, Message: words(fault)}
}
