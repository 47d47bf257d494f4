// Package workflows determines the order, timeouts and retries of a task's steps: submit, poll, archive, finish. Package activities
// implements the steps.
//
// It must not import net/http, Redis, S3, HTTP formats, vendors, or package tasks, which uses it. Workflow code is pure: no clock, random,
// map iteration, I/O or global.
package workflows

import (
	"fmt"
	"slices"
	"time"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
)

// Video is the workflow of one video task: submit, poll, archive, finish. It returns an error only for a bug.
func Video(ctx workflow.Context, in Input) (Result, error) {
	refuseNewer(in.Revision)
	v, ctx := begin(ctx, in)
	result, err := v.run(ctx)
	if err != nil {
		return Result{}, err
	}
	return v.finish(ctx, result)
}

// begin returns the task of a run, and the context that a client's cancel or an operator's signal ends.
func begin(ctx workflow.Context, in Input) (*task, workflow.Context) {
	ctx, end := workflow.WithCancel(ctx)
	v := &task{in: in, phase: PhaseQueued, Carried: Carried{Began: workflow.GetInfo(ctx).WorkflowStartTime, Wait: queueFirst}}
	if in.Before != nil {
		v.Carried = *in.Before
	}
	workflow.GoNamed(ctx, "operator", func(ctx workflow.Context) {
		workflow.GetSignalChannel(ctx, SignalFail).Receive(ctx, &v.reason)
		v.ended = true
		end()
	})
	return v, ctx
}

type task struct {
	Carried

	in    Input
	phase Phase
	// waitingAt lists the full channels at which the task waits, for operators.
	waitingAt []string
	// ended: an operator ended the task; reason is the message for the client, "" for none.
	ended  bool
	reason string
	// deferred is the work that remains after the result is written and the webhook started. stopping is the channel whose slot the task
	// occupies until its job there is cancelled.
	deferred []func(free workflow.Context)
	stopping string
	// jobStatus is the vendor's report of the completed job.
	jobStatus providers.VideoStatus
	// acts only names the activities to the SDK; it stays empty and nothing calls it.
	acts activities.Activities
}

func (v *task) run(ctx workflow.Context) (Result, error) {
	var (
		job    activities.Job
		status providers.VideoStatus
	)
	for {
		var (
			failure *providers.VideoFailure
			err     error
		)
		if job, failure, err = v.submit(ctx); err != nil || failure != nil {
			return failed(failure, 0), err
		}
		v.Jobs++
		if status, failure, err = v.poll(ctx, job); err == nil && failure == nil {
			break
		}
		if err != nil || !failure.Retryable || v.Jobs >= v.in.Limits.Jobs || isCancelled(ctx) {
			ended := failed(failure, max(0, status.Progress)).of(job)
			ended.Price = status.Price
			return ended, err
		}
		v.prepareNextJob(workflow.Now(ctx), job, *failure)
	}
	v.jobStatus = status
	outputs, failure, err := v.archive(ctx, job, status)
	if err != nil || failure != nil {
		return failed(failure, ProgressArchiving).of(job), err
	}
	return Result{
		State: Completed, Progress: ProgressCompleted, Ending: Ending{Outputs: outputs, Price: status.Price},
		Seconds: status.Seconds, Width: status.Width, Height: status.Height,
	}.of(job), nil
}

// prepareNextJob prepares another job, first at another channel: the vendor reported a failure on its side without a charge.
func (v *task) prepareNextJob(now time.Time, job activities.Job, failure providers.VideoFailure) {
	v.Attempts[len(v.Attempts)-1].Fault = &activities.Record{
		Kind: providers.Upstream, Message: failure.Message, Code: failure.Code, Accepted: providers.NotAccepted, Retryable: true,
	}
	v.Again, v.Last, v.Wait, v.Except, v.ExceptKeys, v.Lacking = now, nil, queueFirst, nil, nil, nil
	if v.in.Pin == nil {
		v.Except = []string{job.Assignment.Channel}
	}
}

// finish writes the result into the memo, settles the task, and starts its webhook. Reads need no worker then.
func (v *task) finish(ctx workflow.Context, result Result) (Result, error) {
	free, _ := workflow.NewDisconnectedContext(ctx)
	result.CompletedAt = workflow.Now(ctx).UTC()
	if result.State == Completed || v.in.Call != nil {
		result.ExpiresAt = result.CompletedAt.Add(time.Duration(v.in.Limits.Retention))
	}
	if err := workflow.UpsertMemo(free, map[string]any{MemoResult: result}); err != nil {
		return Result{}, fmt.Errorf("write the result: %w", err)
	}
	var more []temporal.SearchAttributeUpdate
	if result.Call != nil && result.Call.Channel != "" {
		more = append(more, Keyword(AttrChannel).ValueSet(result.Call.Channel))
	}
	if len(v.deferred) > 0 {
		more = append(more, dueAt(workflow.Now(ctx).Add(deferredLimit+endUsual)))
	}
	if err := v.enter(free, Phase(result.State), more...); err != nil {
		return Result{}, err
	}
	v.showDetails(free)
	result.Attempts = v.attempts()
	delivery := v.notify(free, result)
	v.release(free, result)
	if delivery != nil {
		if err := delivery.Get(free, nil); err != nil {
			workflow.GetLogger(ctx).Error("webhook not started", "error", err)
		}
	}
	for _, do := range v.deferred {
		do(free)
	}
	return result, nil
}

// deferWork registers work for after the end of the task is written and its webhook started.
func (v *task) deferWork(do func(free workflow.Context)) { v.deferred = append(v.deferred, do) }

// release settles the task: as a local activity, which costs one history event, and if that fails as an activity with retries.
func (v *task) release(free workflow.Context, result Result) {
	in := activities.SettleInput{
		TaskID: v.in.TaskID, Token: v.in.Token, Waiter: v.waiter(), Channels: v.Held, Bill: v.bill(result),
		Created: v.Began.UTC(), Entry: v.entry(),
	}
	if v.stopping != "" {
		in.Channels = slices.DeleteFunc(slices.Clone(v.Held), func(channel string) bool { return channel == v.stopping })
	}
	if result.Failure != nil {
		in.Code = result.Failure.Code
	}
	if result.Job != nil {
		in.Accepted = result.Job.AcceptedAt
	}
	if err := workflow.ExecuteLocalActivity(localOnce(free, settleNow, "settle"), v.acts.Settler.Settle, in).Get(free, nil); err == nil {
		return
	}
	if err := workflow.ExecuteActivity(retried(free, settleLimit, settleTry, "settle"), v.acts.Settler.Settle, in).Get(free, nil); err != nil {
		workflow.GetLogger(free).Error("task not settled", "error", err)
	}
}

func (v *task) entry() activities.Entry {
	return activities.Entry{Token: v.in.Token, Created: v.in.Created}
}

// bill returns the bill of the task.
func (v *task) bill(result Result) activities.Bill {
	b := activities.Bill{Reservation: v.in.Reservation, Model: v.in.Model, Ending: activities.EndedFailed, At: result.CompletedAt}
	if v.in.Call != nil {
		return callBill(b, result)
	}
	if n := len(v.Attempts); n > 0 {
		b.Channel = v.Attempts[n-1].Assignment.Channel
	}
	switch {
	case result.State == Completed:
		b.Ending = activities.EndedCompleted
		var sent providers.Footage
		if result.Job != nil {
			sent = result.Job.Sent
		}
		b.Footage = v.in.Footage.OfJob(v.jobStatus, sent, result.Outputs[0].Seconds, len(result.Outputs))
	case result.Failure != nil && result.Failure.Billed && result.Job != nil:
		b.Billed, b.Footage = true, result.Job.Sent.Or(v.in.Footage)
	case result.Failure != nil && result.Failure.Code == CodeUpstreamUnknown:
		b.Ending, b.Footage = activities.EndedUnknown, v.in.Footage
	}
	return b
}

// notify starts the delivery of the task's end to its webhook, which outlives the task. It returns nil if there is no webhook.
func (v *task) notify(free workflow.Context, result Result) workflow.Future {
	if !v.in.Notify || workflow.GetSignalChannel(free, SignalRemove).ReceiveAsync(nil) {
		return nil
	}
	in := v.in.Notice(result.State, result.CompletedAt)
	if result.Call != nil && result.State == Completed {
		in.Event = result.Call.Event
	}
	options := workflow.WithChildOptions(free, workflow.ChildWorkflowOptions{
		WorkflowID:            v.in.NotifyID(result.State),
		ParentClosePolicy:     enumspb.PARENT_CLOSE_POLICY_ABANDON,
		WorkflowIDReusePolicy: enumspb.WORKFLOW_ID_REUSE_POLICY_ALLOW_DUPLICATE,
		TypedSearchAttributes: in.Attributes(v.in.Model),
		StaticSummary:         in.Summary(),
	})
	return workflow.ExecuteChildWorkflow(options, NotifyType, in).GetChildWorkflowExecution()
}

func failed(failure *providers.VideoFailure, progress int) Result {
	return Result{State: Failed, Ending: Ending{Failure: failure}, Progress: min(progress, ProgressArchiving)}
}

// isCancelled reports whether the client or an operator cancelled the task. That is an outcome, not an error.
func isCancelled(ctx workflow.Context) bool { return ctx.Err() != nil }

// cancelFailure returns the failure of a cancelled task. It processes signals first: an operator's reason may arrive with the cancel.
func (v *task) cancelFailure(ctx workflow.Context) *providers.VideoFailure {
	yield(ctx)
	if !v.ended {
		return &providers.VideoFailure{Code: CodeCancelled, Message: "The task was cancelled."}
	}
	message := "An operator ended the task."
	if v.reason != "" {
		message = v.reason
	}
	return &providers.VideoFailure{Code: CodeFailedByOperator, Message: message}
}
