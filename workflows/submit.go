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

// submit tries channels until one accepts the job, the queue limit passes, or a submit ends in a way that forbids another.
func (v *task) submit(ctx workflow.Context) (activities.Job, *providers.VideoFailure, error) {
	var none activities.Job
	until := v.Began.Add(time.Duration(v.in.Limits.Queue)) // from the first run
	if v.Jobs > 0 {                                        // the queue limit does not include the time of the previous job
		until = v.Again.Add(time.Duration(v.in.Limits.Queue))
	}
	for round := 0; ; round++ {
		lastRound := round >= roundsMost
		if lastRound {
			yield(ctx) // this run must process a signal that has arrived
		}
		if isCancelled(ctx) {
			return none, v.cancelFailure(ctx), nil
		}
		if lastRound {
			return none, nil, v.continueAsNew(ctx)
		}
		request := activities.AdmitInput{
			Group: v.in.Group, Model: v.in.Model, Format: v.in.Format, Several: v.in.Several, Video: v.in.Video, Pin: v.in.Pin,
			Waiter: v.waiter(), Except: v.Except, ExceptKeys: v.ExceptKeys,
		}
		admission := v.admit(ctx, request)
		if admission.Full != nil {
			queue := activities.AwaitInput{Admit: request, Waiting: *admission.Full, Until: until, Entry: v.entry()}
			queue.Admit.Lacking = v.Lacking
			if len(v.Except) > len(v.Lacking) || len(v.ExceptKeys) > 0 {
				queue.ExceptUntil = workflow.Now(ctx).Add(v.Wait)
				v.Wait = min(2*v.Wait, queueMost)
			}
			var (
				failure *providers.VideoFailure
				err     error
			)
			if admission, failure, err = v.await(ctx, queue); err != nil || failure != nil {
				return none, failure, err
			}
			v.Except, v.ExceptKeys = slices.Clone(v.Lacking), nil
		}
		if admission.Assignment == nil {
			if v.Last != nil && v.Last.NoModel && v.allLackModel(*admission.Refused) {
				return none, refusal(*v.Last), nil
			}
			if v.Last == nil || admission.Refused.RetryAfter > 0 {
				v.Last = admission.Refused
			}
			left := until.Sub(workflow.Now(ctx))
			if left <= 0 {
				return none, &providers.VideoFailure{Code: CodeQueueTimeout, Message: "No upstream took the task in time: " + clientMessage(*v.Last)}, nil
			}
			if err := v.pause(ctx, min(max(v.Wait, v.Last.RetryAfter), left)); err != nil {
				return none, nil, err
			}
			v.Except, v.ExceptKeys = slices.Clone(v.Lacking), nil
			v.Wait = min(2*v.Wait, queueMost)
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
				Message: "The upstream may have accepted the job, but its answer was lost. The job is not submitted again.",
			}, nil
		case !fault.Retryable && (!fault.NoModel || v.in.Pin != nil):
			return none, refusal(*fault), nil
		}
		v.Last = fault
		if fault.Archive { // not a fault of the channel
			if failure, err := v.awaitArchive(ctx, until); err != nil || failure != nil {
				return none, failure, err
			}
			continue
		}
		to := admission.Assignment
		if fault.NoModel && !fault.KeyOnly && !slices.Contains(v.Lacking, to.Channel) {
			v.Lacking = append(v.Lacking, to.Channel)
		}
		if fault.KeyOnly {
			v.ExceptKeys = append(v.ExceptKeys, providers.KeyRef{Channel: to.Channel, Fingerprint: to.Key})
		} else {
			v.Except = append(v.Except, to.Channel)
		}
	}
}

// allLackModel reports whether all candidates lack the model: no channel was excluded for another reason, and none will be available later.
func (v *task) allLackModel(refused activities.Record) bool {
	others := slices.ContainsFunc(v.Except, func(channel string) bool { return !slices.Contains(v.Lacking, channel) })
	return !others && len(v.ExceptKeys) == 0 && refused.RetryAfter == 0 && refused.Message != notChosen
}

// admit chooses the channel of the next attempt. It is a local activity: a read of the worker's memory, and of Redis if the channel's
// jobs are limited. If the worker is too busy for an answer, the result is a refusal, and the task tries again.
func (v *task) admit(ctx workflow.Context, request activities.AdmitInput) activities.Admission {
	var admission activities.Admission
	request.Held = v.Held
	// A cancel is processed between the steps, not here.
	free, _ := workflow.NewDisconnectedContext(ctx)
	if err := workflow.ExecuteLocalActivity(withAdmit(free), v.acts.Admitter.Admit, request).Get(free, &admission); err != nil {
		workflow.GetLogger(ctx).Warn("no channel chosen", "error", err)
		return activities.Admission{Refused: &activities.Record{Kind: providers.Overloaded, Message: notChosen, Accepted: providers.NotAccepted}}
	}
	v.recordSlots(admission)
	return admission
}

// notChosen is the refusal of a worker that was too busy. A client reads it if the queue limit passes then.
const notChosen = "The gateway had no time to choose one."

// await waits for a slot at a full channel, until the queue limit or the cancel of the task.
func (v *task) await(ctx workflow.Context, in activities.AwaitInput) (activities.Admission, *providers.VideoFailure, error) {
	var admission activities.Admission
	if err := v.enter(ctx, PhaseQueued); err != nil {
		return admission, nil, err
	}
	v.waitingAt = in.Waiting.Channels
	v.showDetails(ctx)
	v.waitingAt = nil
	summary := "full: " + strings.Join(in.Waiting.Channels, ", ")
	left := max(in.Until.Sub(workflow.Now(ctx)), time.Second)
	err := workflow.ExecuteActivity(retried(ctx, left, awaitTry, summary), v.acts.Admitter.Await, in).Get(ctx, &admission)
	switch {
	case err == nil:
	case isCancelled(ctx):
		return admission, v.cancelFailure(ctx), nil
	default: // retries have no other bound than the queue limit
		return admission, &providers.VideoFailure{Code: CodeQueueTimeout, Message: "No upstream had room for the task in time."}, nil
	}
	v.recordSlots(admission)
	return admission, nil, nil
}

func (v *task) recordSlots(admission activities.Admission) {
	v.Held = nil
	switch {
	case admission.Full != nil:
		v.Held = admission.Full.Channels
	case admission.Assignment != nil && admission.Assignment.Slot:
		v.Held = []string{admission.Assignment.Channel}
	}
}

func (v *task) waiter() activities.Waiter {
	return activities.Waiter{
		TaskID: v.in.TaskID, Token: v.in.Token, Weight: v.in.Weight, Lane: v.in.Lane, Since: v.Began.UTC(),
	}
}

// pause waits before the next choice of a channel; a cancel ends it early.
func (v *task) pause(ctx workflow.Context, wait time.Duration) error {
	if err := v.enter(ctx, PhaseQueued); err != nil {
		return err
	}
	v.showDetails(ctx)
	if err := workflow.NewTimerWithOptions(ctx, wait, workflow.TimerOptions{Summary: "no channel takes it now"}).Get(ctx, nil); err != nil &&
		!temporal.IsCanceledError(err) {
		return fmt.Errorf("wait for a channel: %w", err)
	}
	return nil
}

// awaitArchive waits while the archive is unavailable: without it nothing is submitted. The waits for a channel start again at
// queueFirst, except if the archive accepted a probe immediately after it had refused the attempt.
func (v *task) awaitArchive(ctx workflow.Context, until time.Time) (*providers.VideoFailure, error) {
	if err := v.enter(ctx, PhaseQueued); err != nil {
		return nil, err
	}
	v.showDetails(ctx)
	began := workflow.Now(ctx)
	in := activities.AwaitArchiveInput{TaskID: v.in.TaskID, Incarnation: v.in.Incarnation, Until: until}
	left := max(until.Sub(began), time.Second)
	err := workflow.ExecuteActivity(retried(ctx, left, awaitTry, "the archive is away"), v.acts.Submitter.AwaitArchive, in).Get(ctx, nil)
	now := workflow.Now(ctx)
	switch {
	case err == nil && now.Before(until):
	case isCancelled(ctx):
		return nil, nil // submit checks for the cancel
	default: // retries have no other bound than the queue limit
		return &providers.VideoFailure{
			Code:    CodeQueueTimeout,
			Message: "No upstream took the task in time: the gateway's archive was away.",
		}, nil
	}
	if now.Sub(began) >= queueFirst {
		v.Wait = queueFirst
		return nil, nil // the archive is back
	}
	wait := v.Wait
	v.Wait = min(2*wait, queueMost)
	return nil, v.pause(ctx, min(wait, until.Sub(now)))
}

// attempt submits the job to one channel. The fault's Accepted determines whether another attempt may follow.
func (v *task) attempt(ctx workflow.Context, to activities.Assignment) (activities.Job, *activities.Record, error) {
	if err := v.enter(ctx, PhaseSubmitting, Keyword(AttrChannel).ValueSet(to.Channel), Keyword(AttrVendor).ValueSet(to.Vendor)); err != nil {
		return activities.Job{}, nil, err
	}
	v.Attempts = append(v.Attempts, Attempt{Number: v.attempted() + 1, Assignment: to})
	this := &v.Attempts[len(v.Attempts)-1]
	v.showDetails(ctx)
	in := activities.SubmitInput{
		TaskID: v.in.TaskID, Incarnation: v.in.Incarnation, Attempt: v.attempted(), Assignment: to, Request: v.in.Request,
		RequestObject: v.in.RequestObject,
	}
	summary := fmt.Sprintf("%s · attempt %d", to.Channel, in.Attempt)
	var job activities.Job
	// A cancel waits for the answer of the submit: the task must know what was paid for.
	free, _ := workflow.NewDisconnectedContext(ctx)
	err := workflow.ExecuteActivity(withSubmit(free, summary), v.acts.Submitter.Submit, in).Get(free, &job)
	fault, bad := activities.Outcome(err)
	if bad && fault.Accepted != providers.NotAccepted {
		until := workflow.Now(ctx)
		if !fault.Finished {
			until = until.Add(submitLimit) // the request may still be in progress in a worker that lost its connection to Temporal
		}
		if err := v.enter(ctx, PhaseSubmitting, dueAt(until.Add(activities.FindLag+submitUsual))); err != nil {
			return job, nil, err
		}
		err = workflow.ExecuteActivity(retried(free, reconcileLimit, reconcileTry, summary), v.acts.Submitter.Reconcile,
			activities.ReconcileInput{Submit: in, Until: until}).Get(free, &job)
		fault, bad = activities.Outcome(err)
		// The vendor reported that it never had the job, so another submit pays nothing twice.
		fault.Retryable = fault.Retryable || fault.Accepted == providers.NotAccepted
	}
	if bad {
		this.Fault = &fault
		v.showDetails(ctx)
		return job, &fault, nil
	}
	this.Job = job.Ticket.Job
	return job, nil, nil
}

func refusal(fault activities.Record) *providers.VideoFailure {
	otherwise := providers.FailedVendor
	switch fault.Kind {
	case providers.Invalid, providers.TooLarge, providers.Conflict:
		otherwise = providers.FailedInput
	}
	failure := providers.VideoFailure{Code: fault.Code, Message: clientMessage(fault)}
	if fault.Failed != "" {
		failure = failure.As(fault.Failed)
	} else {
		failure = failure.Listed(otherwise)
	}
	return &failure
}
