package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
)

// pollFloor is the least time a job gets to be looked at, however late its ticket was found; a shorter deadline is
// kept.
const pollFloor = time.Minute

// Video is the life of one task: submit, poll, archive, finish. It returns an error only for a bug.
func Video(ctx workflow.Context, in Input) (Result, error) {
	v := &video{state: state{in: in, phase: PhaseQueued}}
	result, err := v.run(ctx)
	if err != nil {
		return Result{}, err
	}
	return v.finish(ctx, result)
}

type video struct {
	state
	// acts only names the activities to the SDK; it stays nil and nothing calls it.
	acts *activities.Activities
}

func (v *video) run(ctx workflow.Context) (Result, error) {
	job, failure, err := v.submit(ctx)
	if err != nil || failure != nil {
		return failed(failure, 0), err
	}
	status, failure, err := v.poll(ctx, job)
	if err != nil || failure != nil {
		return failed(failure, max(0, status.Progress)), err
	}
	outputs, failure, err := v.archive(ctx, job, status)
	if err != nil || failure != nil {
		return failed(failure, progressArchiving), err
	}
	return Result{
		State: Completed, Progress: progressCompleted, Outputs: outputs,
		Seconds: status.Seconds, Width: status.Width, Height: status.Height,
	}, nil
}

// submit tries channels until one accepts the job, the task's time in the queue runs out, or a submit ends in a way
// that must not be followed by another.
func (v *video) submit(ctx workflow.Context) (activities.Job, *providers.VideoFailure, error) {
	var (
		none  activities.Job
		last  *activities.Record
		want  = activities.AdmitInput{Group: v.in.Group, Model: v.in.Model, Format: v.in.Format}
		wait  = queueFirst
		until = workflow.Now(ctx).Add(time.Duration(v.in.Limits.Queue))
	)
	for {
		if isCancelled(ctx) {
			return none, cancelled(), nil
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
				return none, &providers.VideoFailure{Code: CodeQueueTimeout, Message: "No upstream took the task in time: " + last.Message}, nil
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

// poll waits for the job's end.
func (v *video) poll(ctx workflow.Context, job activities.Job) (providers.VideoStatus, *providers.VideoFailure, error) {
	var status providers.VideoStatus
	if err := v.enter(ctx, PhasePolling); err != nil {
		return status, nil, err
	}
	v.tell(ctx)
	deadline := job.AcceptedAt.Add(time.Duration(v.in.Limits.Deadline))
	left := max(deadline.Sub(workflow.Now(ctx)), min(pollFloor, time.Duration(v.in.Limits.Deadline)))
	summary := fmt.Sprintf("%s · job %.80s", job.Assignment.Channel, job.Ticket.Job)
	err := workflow.ExecuteActivity(withPoll(ctx, left, summary), v.acts.Poll, activities.PollInput{
		Job: job, Deadline: workflow.Now(ctx).Add(left),
	}).Get(ctx, &status)
	fault, bad := activities.Outcome(err)
	if bad {
		status.Progress = fault.Progress
	}
	switch {
	case temporal.IsCanceledError(err):
		v.stopJob(ctx, job)
		return status, cancelled(), nil
	case bad && fault.Gone:
		return status, &providers.VideoFailure{Code: CodeChannelGone, Message: fault.Message}, nil
	case bad && fault.Deadline:
		v.stopJob(ctx, job)
		return status, &providers.VideoFailure{Code: CodeDeadlineExceeded, Message: "The upstream did not finish the video in time."}, nil
	case bad:
		return status, nil, fmt.Errorf("poll: %w", err)
	case status.State != providers.JobDone:
		failure := status.Failure
		if failure == nil {
			failure = &providers.VideoFailure{Code: CodeInternal, Message: "The upstream's job failed without a reason."}
		}
		return status, failure, nil
	}
	return status, nil, nil
}

// stopJob tells the vendor that nobody wants the job any more. The task does not wait for a vendor that cannot be
// reached for longer than cancelLife, and its end does not depend on it.
func (v *video) stopJob(ctx workflow.Context, job activities.Job) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	summary := fmt.Sprintf("%s · job %.80s", job.Assignment.Channel, job.Ticket.Job)
	if err := workflow.ExecuteActivity(withCancel(free, summary), v.acts.Cancel, job).Get(free, nil); err != nil {
		workflow.GetLogger(ctx).Warn("job not cancelled at the upstream", "job", job.Ticket.Job, "err", err)
	}
}

// archive copies the job's outputs.
func (v *video) archive(ctx workflow.Context, job activities.Job, status providers.VideoStatus) ([]activities.Output, *providers.VideoFailure, error) {
	if err := v.enter(ctx, PhaseArchiving); err != nil {
		return nil, nil, err
	}
	v.tell(ctx)
	limit := time.Duration(v.in.Limits.Archive)
	// The objects' date lies behind every possible completion plus retention.
	expires := workflow.Now(ctx).Add(limit + time.Duration(v.in.Limits.Retention))
	summary := fmt.Sprintf("%s · %d video(s)", job.Assignment.Channel, max(1, status.Outputs))
	var outputs []activities.Output
	err := workflow.ExecuteActivity(withArchive(ctx, limit, summary), v.acts.Archive, activities.ArchiveInput{
		Job: job, Outputs: max(1, status.Outputs), Expires: expires,
	}).Get(ctx, &outputs)
	if err == nil {
		return outputs, nil, nil
	}
	v.discard(ctx, expires)
	if temporal.IsCanceledError(err) {
		return nil, cancelled(), nil
	}
	fault, _ := activities.Outcome(err)
	return nil, &providers.VideoFailure{Code: CodeArchiveFailed, Message: "The finished video could not be archived: " + fault.Message}, nil
}

// discard removes outputs of a task that did not complete; what it cannot remove is swept at its date.
func (v *video) discard(ctx workflow.Context, expires time.Time) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	in := activities.DiscardInput{TaskID: v.in.TaskID, Expires: expires}
	if err := workflow.ExecuteActivity(withDiscard(free), v.acts.Discard, in).Get(free, nil); err != nil {
		workflow.GetLogger(ctx).Warn("outputs not removed", "err", err)
	}
}

// finish writes the result where readers find it without a worker.
func (v *video) finish(ctx workflow.Context, result Result) (Result, error) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	result.CompletedAt = workflow.Now(ctx).UTC()
	phase := PhaseFailed
	if result.State == Completed {
		phase = PhaseCompleted
		result.ExpiresAt = result.CompletedAt.Add(time.Duration(v.in.Limits.Retention))
	}
	if result.State == Failed {
		result.Progress = max(result.Progress, shown(free))
	}
	if err := workflow.UpsertMemo(free, map[string]any{memoResult: result}); err != nil {
		return Result{}, fmt.Errorf("write the result: %w", err)
	}
	if err := v.enter(free, phase); err != nil {
		return Result{}, err
	}
	v.tell(free)
	return result, nil
}

// shown is the progress that a cancel's sender saw. The poll that a cancel ends tells nothing of its own.
func shown(ctx workflow.Context) int {
	var most, one int
	for seen := workflow.GetSignalChannel(ctx, signalShown); seen.ReceiveAsync(&one); {
		most = max(most, one)
	}
	return min(most, progressArchiving)
}

func failed(failure *providers.VideoFailure, progress int) Result {
	return Result{State: Failed, Failure: failure, Progress: min(progress, progressArchiving)}
}

// isCancelled tells whether the client called the task off. That is an outcome, not an error.
func isCancelled(ctx workflow.Context) bool { return ctx.Err() != nil }

func cancelled() *providers.VideoFailure {
	return &providers.VideoFailure{Code: CodeCancelled, Message: "The task was cancelled."}
}

// refusal says why the upstream did not take the job, with its own code where it gave one.
func refusal(fault activities.Record) *providers.VideoFailure {
	code := fault.Code
	if code == "" {
		code = CodeUpstreamRefused
	}
	return &providers.VideoFailure{Code: code, Message: fault.Message}
}
