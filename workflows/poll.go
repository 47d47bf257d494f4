package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
)

// pollFloor is the minimal time for polling, however late the ticket was found. A shorter deadline takes precedence.
const pollFloor = time.Minute

// channelGone is the message for a channel or key that is no longer configured. Recorded histories contain it.
const channelGone = "The upstream of this task is no longer available."

func clientMessage(fault activities.Record) string {
	if fault.Gone {
		return channelGone
	}
	return fault.Message
}

func (v *task) poll(ctx workflow.Context, job activities.Job) (providers.VideoStatus, *providers.VideoFailure, error) {
	var status providers.VideoStatus
	if err := v.enter(ctx, PhasePolling, dueAt(pollDue(job, workflow.Now(ctx)))); err != nil {
		return status, nil, err
	}
	v.showDetails(ctx)
	deadline := job.AcceptedAt.Add(time.Duration(v.in.Limits.Deadline))
	left := max(deadline.Sub(workflow.Now(ctx)), min(pollFloor, time.Duration(v.in.Limits.Deadline)))
	summary := fmt.Sprintf("%s · job %.80s", job.Assignment.Channel, job.Ticket.Job)
	err := workflow.ExecuteActivity(retried(ctx, left, activities.PollTimeout+pollMargin, summary), v.acts.Poller.Poll, activities.PollInput{
		Job: job, Deadline: workflow.Now(ctx).Add(left), Entry: v.entry(),
	}).Get(ctx, &status)
	fault, bad := activities.Outcome(err)
	if bad {
		status.Progress = fault.Progress
	}
	switch {
	case temporal.IsCanceledError(err):
		v.stopJob(job)
		return status, v.cancelFailure(ctx), nil
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

// stopJob cancels the job at its vendor, for cancelLimit at most, after the result is written. The job occupies its slot until then.
func (v *task) stopJob(job activities.Job) {
	v.stopping = job.Assignment.Channel
	v.deferWork(func(free workflow.Context) {
		summary := fmt.Sprintf("%s · job %.80s", job.Assignment.Channel, job.Ticket.Job)
		if err := workflow.ExecuteActivity(retried(free, cancelLimit, cancelTry, summary), v.acts.Poller.Cancel, job).Get(free, nil); err != nil {
			workflow.GetLogger(free).Warn("job not cancelled at the upstream", "job", job.Ticket.Job, "error", err)
		}
	})
}
