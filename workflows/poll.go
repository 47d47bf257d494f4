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

// channelGone is what a client reads of a channel or key that left the configuration; histories name it.
const channelGone = "The upstream of this task is no longer available."

// words are what a client reads of a fault.
func words(fault activities.Record) string {
	if fault.Gone {
		return channelGone
	}
	return fault.Message
}

// poll waits for the job's end.
func (v *video) poll(ctx workflow.Context, job activities.Job) (providers.VideoStatus, *providers.VideoFailure, error) {
	var status providers.VideoStatus
	if err := v.enter(ctx, PhasePolling, dueAt(pollDue(job, workflow.Now(ctx)))); err != nil {
		return status, nil, err
	}
	v.tell(ctx)
	deadline := job.AcceptedAt.Add(time.Duration(v.in.Limits.Deadline))
	left := max(deadline.Sub(workflow.Now(ctx)), min(pollFloor, time.Duration(v.in.Limits.Deadline)))
	summary := fmt.Sprintf("%s · job %.80s", job.Assignment.Channel, job.Ticket.Job)
	err := workflow.ExecuteActivity(withPoll(ctx, left, summary), v.acts.Poller.Poll, activities.PollInput{
		Job: job, Deadline: workflow.Now(ctx).Add(left), Entry: v.entry(),
	}).Get(ctx, &status)
	fault, bad := activities.Outcome(err)
	if bad {
		status.Progress = fault.Progress
	}
	switch {
	case temporal.IsCanceledError(err):
		v.stopJob(job)
		return status, v.calledOff(ctx), nil
	case bad && fault.Gone:
		return status, &providers.VideoFailure{Code: CodeChannelGone, Message: channelGone}, nil
	case bad && fault.Deadline:
		v.stopJob(job)
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

// stopJob tells the vendor that nobody wants the job any more, for cancelLimit at most. The task's end is written before: a
// vendor that cannot be reached holds up no client. Its slot is the job's until the vendor has heard.
func (v *video) stopJob(job activities.Job) {
	v.stopping = job.Assignment.Channel
	v.afterwards(func(free workflow.Context) {
		summary := fmt.Sprintf("%s · job %.80s", job.Assignment.Channel, job.Ticket.Job)
		if err := workflow.ExecuteActivity(withCancel(free, summary), v.acts.Poller.Cancel, job).Get(free, nil); err != nil {
			workflow.GetLogger(free).Warn("job not cancelled at the upstream", "job", job.Ticket.Job, "err", err)
		}
	})
}
