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

// submit tries channels until one accepts the job, the task's time in the queue runs out, or a submit ends in a way
// that must not be followed by another.
func (v *video) submit(ctx workflow.Context) (activities.Job, *providers.VideoFailure, error) {
	var (
		none activities.Job
		last *activities.Record
		// lacking are channels that do not have the model, which are left out of every round.
		lacking []string
		want    = activities.AdmitInput{
			Group: v.in.Group, Model: v.in.Model, Format: v.in.Format, Several: v.in.Several, Video: v.in.Video, Pin: v.in.Pin, Waiter: v.waiter(),
		}
		wait  = queueFirst
		until = v.began.Add(time.Duration(v.in.Limits.Queue)) // whatever run this is
	)
	if v.jobs > 0 { // the time that the job before it took is not of the queue
		until = v.again.Add(time.Duration(v.in.Limits.Queue))
	}
	if v.failedAt != "" && v.in.Pin == nil {
		want.Except = []string{v.failedAt} // in this round
	} else if b := v.in.Before; b != nil && v.jobs == b.Jobs {
		last, wait, want.Except, want.ExceptKeys, lacking = b.Last, b.Wait, b.Except, b.ExceptKeys, b.Lacking
	}
	for round := 0; ; round++ {
		full := round >= roundsMost
		if full {
			yield(ctx) // an operator's word that has arrived is heard by this run
		}
		if isCancelled(ctx) {
			return none, v.calledOff(ctx), nil
		}
		if full {
			return none, nil, v.goOn(ctx, Before{Last: last, Wait: wait, Except: want.Except, ExceptKeys: want.ExceptKeys, Lacking: lacking, Jobs: v.jobs, Again: v.again})
		}
		admission := v.admit(ctx, want)
		if admission.Full != nil {
			queue := activities.AwaitInput{Admit: want, Waiting: *admission.Full, Until: until, Entry: v.entry()}
			queue.Admit.Lacking = lacking
			if len(want.Except) > len(lacking) || len(want.ExceptKeys) > 0 {
				queue.ExceptUntil = workflow.Now(ctx).Add(wait)
				wait = min(2*wait, queueMost)
			}
			var (
				failure *providers.VideoFailure
				err     error
			)
			if admission, failure, err = v.await(ctx, queue); err != nil || failure != nil {
				return none, failure, err
			}
			want.Except, want.ExceptKeys = slices.Clone(lacking), nil
		}
		if admission.Assignment == nil {
			if last != nil && last.NoModel && nobodyElse(want, lacking, *admission.Refused) {
				return none, refusal(*last), nil
			}
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
			want.Except, want.ExceptKeys = slices.Clone(lacking), nil
			wait = min(2*wait, queueMost)
			continue
		}
		job, fault, err := v.attempt(ctx, *admission.Assignment)
		switch {
		case err != nil:
			return none, nil, err
		case fault == nil:
			return job, nil, nil
		case fault.Accepted != providers.NotAccepted:
			return none, &providers.VideoFailure{
				Code:    CodeUpstreamUnknown,
				Message: "The upstream may have taken the job, but its answer was lost and nobody can tell; it is not submitted again.",
			}, nil
		case !fault.Retryable && (!fault.NoModel || v.in.Pin != nil):
			return none, refusal(*fault), nil
		}
		last = fault
		if fault.Archive { // no channel is to blame
			var failure *providers.VideoFailure
			if wait, failure, err = v.awaitArchive(ctx, until, wait); err != nil || failure != nil {
				return none, failure, err
			}
			continue
		}
		to := admission.Assignment
		if fault.NoModel && !fault.KeyOnly && !slices.Contains(lacking, to.Channel) {
			lacking = append(lacking, to.Channel)
		}
		if fault.KeyOnly {
			want.ExceptKeys = append(want.ExceptKeys, providers.KeyRef{Channel: to.Channel, Fingerprint: to.Key})
		} else {
			want.Except = append(want.Except, to.Channel)
		}
	}
}

// nobodyElse tells whether all channels that would do lack the model: none was left out for another reason, and none is to come back.
func nobodyElse(want activities.AdmitInput, lacking []string, refused activities.Record) bool {
	others := slices.ContainsFunc(want.Except, func(channel string) bool { return !slices.Contains(lacking, channel) })
	return !others && len(want.ExceptKeys) == 0 && refused.RetryAfter == 0 && refused.Message != notChosen
}

// admit chooses the channel of the next attempt. It is a local activity: a look into the worker's memory, and into Redis
// where the channel's jobs are limited. One that did not come to an answer, for its worker stood still or has too much to
// do, is a refusal: the task asks again.
func (v *video) admit(ctx workflow.Context, want activities.AdmitInput) activities.Admission {
	var admission activities.Admission
	want.Held = v.held
	// Not the task's own context: a cancel is looked at between the steps.
	free, _ := workflow.NewDisconnectedContext(ctx)
	if err := workflow.ExecuteLocalActivity(withAdmit(free), v.acts.Admitter.Admit, want).Get(free, &admission); err != nil {
		workflow.GetLogger(ctx).Warn("no channel chosen", "err", err)
		return activities.Admission{Refused: &activities.Record{Kind: providers.Overloaded, Message: notChosen, Accepted: providers.NotAccepted}}
	}
	v.holds(admission)
	return admission
}

// notChosen is what a client reads where a task's time in the queue ends so.
const notChosen = "The gateway had no time to choose one."

// await stands in line until a channel has room for the task, its time in the queue runs out, or it is called off.
func (v *video) await(ctx workflow.Context, in activities.AwaitInput) (activities.Admission, *providers.VideoFailure, error) {
	var admission activities.Admission
	if err := v.enter(ctx, PhaseQueued); err != nil {
		return admission, nil, err
	}
	v.lines = in.Waiting.Channels
	v.tell(ctx)
	v.lines = nil
	summary := "full: " + strings.Join(in.Waiting.Channels, ", ")
	left := max(in.Until.Sub(workflow.Now(ctx)), time.Second)
	err := workflow.ExecuteActivity(withAwait(ctx, left, summary), v.acts.Admitter.Await, in).Get(ctx, &admission)
	switch {
	case err == nil:
	case isCancelled(ctx):
		return admission, v.calledOff(ctx), nil
	default: // it is tried without end: its time is over
		return admission, &providers.VideoFailure{Code: CodeQueueTimeout, Message: "No upstream had room for the task in time."}, nil
	}
	v.holds(admission)
	return admission, nil, nil
}

// holds notes where the task has a slot or stands in line now.
func (v *video) holds(admission activities.Admission) {
	v.held = nil
	switch {
	case admission.Full != nil:
		v.held = admission.Full.Channels
	case admission.Assignment != nil && admission.Assignment.Slot:
		v.held = []string{admission.Assignment.Channel}
	}
}

// waiter is the task as it takes its turn.
func (v *video) waiter() activities.Waiter {
	return activities.Waiter{
		TaskID: v.in.TaskID, Token: v.in.Token, Weight: v.in.Weight, Lane: v.in.Lane, Since: v.began.UTC(),
	}
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

// awaitArchive waits for an archive that is away: without it nothing is submitted. next is the wait for whatever keeps the
// task in the queue then: as at first, but not where the archive took the probe at once after it had refused the attempt.
func (v *video) awaitArchive(ctx workflow.Context, until time.Time, wait time.Duration) (next time.Duration, failure *providers.VideoFailure, err error) {
	if err := v.enter(ctx, PhaseQueued); err != nil {
		return wait, nil, err
	}
	v.tell(ctx)
	began := workflow.Now(ctx)
	in := activities.AwaitArchiveInput{TaskID: v.in.TaskID, Generation: v.in.Generation, Until: until}
	left := max(until.Sub(began), time.Second)
	err = workflow.ExecuteActivity(withAwait(ctx, left, "the archive is away"), v.acts.Submitter.AwaitArchive, in).Get(ctx, nil)
	now := workflow.Now(ctx)
	switch {
	case err == nil && now.Before(until):
	case isCancelled(ctx):
		return wait, nil, nil // looked at between the steps
	default: // it is tried without end: its time is over
		return wait, &providers.VideoFailure{Code: CodeQueueTimeout, Message: "No upstream took the task in time: the gateway's archive was away."}, nil
	}
	if now.Sub(began) >= queueFirst {
		return queueFirst, nil, nil
	}
	return min(2*wait, queueMost), nil, v.pause(ctx, min(wait, until.Sub(now)))
}

// attempt is one channel and one submit. Its fault's Accepted is the last word on whether another attempt may follow.
func (v *video) attempt(ctx workflow.Context, to activities.Assignment) (activities.Job, *activities.Record, error) {
	if err := v.enter(ctx, PhaseSubmitting, Keyword(AttrChannel).ValueSet(to.Channel), Keyword(AttrVendor).ValueSet(to.Vendor)); err != nil {
		return activities.Job{}, nil, err
	}
	v.tries = append(v.tries, try{assignment: to})
	this := &v.tries[len(v.tries)-1]
	v.tell(ctx)
	in := activities.SubmitInput{
		TaskID: v.in.TaskID, Generation: v.in.Generation, Attempt: v.attempted(), Assignment: to, Request: v.in.Request, RequestObject: v.in.RequestObject,
	}
	summary := fmt.Sprintf("%s · attempt %d", to.Channel, in.Attempt)
	var job activities.Job
	// A cancel waits for the submit's answer: what was paid for must be known.
	free, _ := workflow.NewDisconnectedContext(ctx)
	err := workflow.ExecuteActivity(withSubmit(free, summary), v.acts.Submitter.Submit, in).Get(free, &job)
	fault, bad := activities.Outcome(err)
	if bad && fault.Accepted != providers.NotAccepted {
		until := workflow.Now(ctx)
		if !fault.Finished {
			until = until.Add(submitLimit) // the request may still be under way in a worker that lost its way to Temporal
		}
		if err := v.enter(ctx, PhaseSubmitting, dueAt(until.Add(activities.FindLag+submitUsual))); err != nil {
			return job, nil, err
		}
		err = workflow.ExecuteActivity(withReconcile(free, summary), v.acts.Submitter.Reconcile, activities.ReconcileInput{Submit: in, Until: until}).Get(free, &job)
		fault, bad = activities.Outcome(err)
		// The vendor said it never had the job: another submit costs nothing twice.
		fault.Retryable = fault.Retryable || fault.Accepted == providers.NotAccepted
	}
	if bad {
		this.fault = &fault
		v.tell(ctx)
		return job, &fault, nil
	}
	this.job = job.Ticket.Job
	return job, nil, nil
}

// refusal says why the upstream did not take the job.
func refusal(fault activities.Record) *providers.VideoFailure {
	otherwise := providers.FailedVendor
	switch fault.Kind {
	case providers.Invalid, providers.TooLarge, providers.Conflict:
		otherwise = providers.FailedInput
	}
	failure := providers.VideoFailure{Code: fault.Code, Message: words(fault)}
	if fault.Failed != "" {
		failure = failure.As(fault.Failed)
	} else {
		failure = failure.Listed(otherwise)
	}
	return &failure
}
