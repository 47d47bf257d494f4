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
	err := workflow.ExecuteActivity(withPoll(ctx, left, summary), v.acts.Poll, activities.PollInput{
		Job: job, Deadline: workflow.Now(ctx).Add(left), Entry: v.entry(),
	}).Get(ctx, &status)
	fault, bad := activities.Outcome(err)
	if bad {
		status.Progress = fault.Progress
	}
	switch {
	case temporal.IsCanceledError(err):
		v.stopJob(ctx, job)
		return status, v.calledOff(ctx), nil
	case bad && fault.Gone:
		return status, &providers.VideoFailure{Code: CodeChannelGone, Message: channelGone}, nil
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

// stopJob tells the vendor that nobody wants the job any more, for cancelLimit at most. The task's end is written before: a
// vendor that cannot be reached holds up no client. Its slot is the job's until the vendor has heard.
func (v *video) stopJob(ctx workflow.Context, job activities.Job) {
	if v.in.Revision >= revisionRestores {
		v.stopping = job.Assignment.Channel
	}
	v.afterwards(ctx, func(free workflow.Context) {
		summary := fmt.Sprintf("%s · job %.80s", job.Assignment.Channel, job.Ticket.Job)
		if err := workflow.ExecuteActivity(withCancel(free, summary), v.acts.Cancel, job).Get(free, nil); err != nil {
			workflow.GetLogger(free).Warn("job not cancelled at the upstream", "job", job.Ticket.Job, "err", err)
		}
	})
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
	waits := v.in.Revision >= revisionRestores
	archive := workflow.ExecuteActivity(withArchive(ctx, limit, waits, job.Assignment.Channel, status.Dies, summary), v.acts.Archive, activities.ArchiveInput{
		Job: job, Outputs: max(1, status.Outputs), Expires: expires, Dies: status.Dies,
	})
	if waits {
		ended := workflow.NewSelector(ctx).AddFuture(archive, func(workflow.Future) {})
		ended.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {}).Select(ctx)
		if !archive.IsReady() { // called off
			v.afterwards(ctx, func(free workflow.Context) {
				_ = archive.Get(free, nil) // what is written until then nobody wants
				v.discard(free, expires)
			})
			return nil, v.calledOff(ctx), nil
		}
	}
	err := archive.Get(ctx, &outputs)
	if err == nil {
		return outputs, nil, nil
	}
	v.afterwards(ctx, func(free workflow.Context) { v.discard(free, expires) })
	if temporal.IsCanceledError(err) {
		return nil, v.calledOff(ctx), nil
	}
	fault, _ := activities.Outcome(err)
	return nil, &providers.VideoFailure{Code: CodeArchiveFailed, Message: "The finished video could not be archived: " + words(fault)}, nil
}

// discard removes outputs of a task that did not complete; what it cannot remove is swept at its date.
func (v *video) discard(free workflow.Context, expires time.Time) {
	in := activities.DiscardInput{TaskID: v.in.TaskID, Expires: expires}
	if err := workflow.ExecuteActivity(withDiscard(free), v.acts.Discard, in).Get(free, nil); err != nil {
		workflow.GetLogger(free).Warn("outputs not removed", "err", err)
	}
}
