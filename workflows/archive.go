package workflows

import (
	"fmt"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
)

func (v *task) archive(
	ctx workflow.Context, job activities.Job, status providers.VideoStatus,
) ([]activities.Output, *providers.VideoFailure, error) {
	if err := v.enter(ctx, PhaseArchiving); err != nil {
		return nil, nil, err
	}
	v.showDetails(ctx)
	limit := time.Duration(v.in.Limits.Archive)
	if len(status.OpenData) > 0 {
		job.Ticket.Data = status.OpenData
	}
	// The expiry date is after every possible completion plus the retention.
	expires := workflow.Now(ctx).Add(limit + time.Duration(v.in.Limits.Retention))
	summary := fmt.Sprintf("%s · %d video(s)", job.Assignment.Channel, max(1, status.Outputs))
	var outputs []activities.Output
	archive := workflow.ExecuteActivity(withArchive(ctx, limit, job.Assignment.Channel, status.ExpiresAt, summary), v.acts.Copier.Archive,
		activities.ArchiveInput{
			Job: job, Outputs: max(1, status.Outputs), Expires: expires, ExpiresAt: status.ExpiresAt,
			Unmeasured: status.Seconds == "" && job.Sent.Seconds == "",
		})
	ended := workflow.NewSelector(ctx).AddFuture(archive, func(workflow.Future) {})
	ended.AddReceive(ctx.Done(), func(workflow.ReceiveChannel, bool) {}).Select(ctx)
	if !archive.IsReady() { // the task was cancelled
		v.deferWork(func(free workflow.Context) {
			_ = archive.Get(free, nil) // the workflow does not use a result that arrives after the cancel
			v.discard(free, expires)
		})
		return nil, v.cancelFailure(ctx), nil
	}
	err := archive.Get(ctx, &outputs)
	if err == nil {
		return outputs, nil, nil
	}
	v.deferWork(func(free workflow.Context) { v.discard(free, expires) })
	if temporal.IsCanceledError(err) {
		return nil, v.cancelFailure(ctx), nil
	}
	fault, _ := activities.Outcome(err)
	message := "The finished video could not be archived: " + clientMessage(fault)
	return nil, &providers.VideoFailure{Code: CodeArchiveFailed, Message: message}, nil
}

// discard removes the outputs of a task that did not complete. The sweep removes what discard cannot.
func (v *task) discard(free workflow.Context, expires time.Time) {
	in := activities.DiscardInput{TaskID: v.in.TaskID, Expires: expires}
	if err := workflow.ExecuteActivity(retried(free, discardLimit, cancelTry, "remove outputs"), v.acts.Copier.Discard, in).Get(free,
		nil); err != nil {
		workflow.GetLogger(free).Warn("outputs not removed", "error", err)
	}
}
