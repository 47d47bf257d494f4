package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
)

// Every timeout and retry policy of a task, with its reason. Recorded histories must replay after a change.
const (
	// submitMargin is the time that a submit needs in addition to its HTTP request: reading the input, writing the ticket.
	submitMargin = 30 * time.Second
	submitLimit  = activities.SubmitTimeout + submitMargin
	// submitHeartbeat is the silence after which the worker of a submit counts as lost. It determines when Reconcile starts.
	submitHeartbeat = 20 * time.Second
	// pollMargin is the time that one poll needs in addition to its HTTP request. A worker that died during a poll is noticed after both.
	pollMargin = 5 * time.Second
	// reconcileLimit bounds the search for a lost ticket. It is long because nothing can be decided while the archive is unavailable.
	reconcileLimit = 24 * time.Hour
	// reconcileTry bounds one try, which may repeat the whole submit under its idempotency key.
	reconcileTry = submitLimit
	// copyHeartbeat is the silence after which an archiving worker, or a stalled download, counts as lost.
	copyHeartbeat = 60 * time.Second
	// A result that expires within diesSoon is copied first: priorityFirst is the highest of the server's five priorities.
	diesSoon      = time.Hour
	priorityFirst = 1
	cancelLimit   = 10 * time.Minute
	cancelTry     = 30 * time.Second
	// discardLimit bounds the removal of outputs of a task that did not complete. The sweep removes what is left.
	discardLimit = 20 * time.Second
	// deferredLimit bounds the work that remains after the result was written.
	deferredLimit = max(cancelLimit, copyHeartbeat+discardLimit)
	// settleNow bounds the first try to settle, which delays the end of the task while Redis is unavailable.
	settleNow = 2 * time.Second
	// settleLimit bounds the later tries: the longest tolerated outage of Redis is a day.
	settleLimit = 24 * time.Hour
	settleTry   = 10 * time.Second
	// removeLimit bounds each step of a removal. A task under removal is hidden as long.
	removeLimit = 7 * 24 * time.Hour
	// sweepLimit bounds a sweep; the next one continues where it stopped.
	sweepLimit = 50 * time.Minute
	// endedLimit bounds a search for tasks that closed without settlement. The next one starts where the last complete one started.
	endedLimit = 10 * time.Minute
	// sweepHeartbeat is the silence after which a sweeping worker counts as lost.
	sweepHeartbeat = 30 * time.Second
	// removeQuick bounds the try to remove an ended task within the workflow task, of ten seconds at most. Usually it is a few requests.
	removeQuick = 5 * time.Second
	removeTry   = time.Minute
	// admitLimit bounds the choice of a channel, including the time in the worker's queue; an overloaded worker may exceed it.
	admitLimit = 10 * time.Second
	// awaitTry bounds one request for a slot. A worker that died during it is noticed then.
	awaitTry = 10 * time.Second
	// queueFirst and queueMost bound the wait after all channels refused: a day of refusals must stay below 50 MB of history.
	queueFirst = 5 * time.Second
	queueMost  = 10 * time.Minute
	// notifyLimit is the time from the end of a task to the start of the last delivery try.
	notifyLimit = 72 * time.Hour
	// notifySlack is the time that the last try may need after that, including its wait for a slot.
	notifySlack = activities.LastTryGrace + 5*time.Minute
	// relayHeartbeat is the silence after which the worker of a call counts as lost.
	relayHeartbeat = 20 * time.Second
	// relayMargin is the time after the deadline of a call in which its activity stores and reports the answer so far.
	relayMargin = time.Minute
	// stopMargin is the time after the grace of a stopping worker in which its calls report that their answers are lost.
	stopMargin = 5 * time.Second
	// concludeNow bounds the search for the end of a call in the archive within the step of the workflow, and concludeLimit the later tries.
	concludeNow, concludeLimit = 5 * time.Second, time.Hour
	concludeTry                = time.Minute
	// deliverMargin is the time that one try needs in addition to its request.
	deliverMargin = 5 * time.Second
	// WorkerStopTimeout is the time that a stopping worker gives its activities. It exceeds submitLimit, so a deploy interrupts no submit.
	WorkerStopTimeout = submitLimit + 10*time.Second
)

func noRetries() *temporal.RetryPolicy { return &temporal.RetryPolicy{MaximumAttempts: 1} }

// unlimitedRetries is the policy of an activity whose only bound is its ScheduleToClose timeout.
func unlimitedRetries() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: 2 * time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}
}

func withAdmit(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: admitLimit, Summary: "choose a channel",
	})
}

// retried returns the options of an activity that is retried until limit; each try may take up to try.
func retried(ctx workflow.Context, limit, try time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: limit, StartToCloseTimeout: try, RetryPolicy: unlimitedRetries(), Summary: summary,
	})
}

// withRelay returns the options of a call. A try ends at the deadline at the latest, and sends heartbeats. A cancelled call reports its
// usage. When calls wait for workers, an earlier lane comes first.
func withRelay(ctx workflow.Context, left time.Duration, lane, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: left + relayMargin, HeartbeatTimeout: relayHeartbeat, RetryPolicy: unlimitedRetries(), WaitForCancellation: true,
		Summary: summary, Priority: temporal.Priority{PriorityKey: priorityFirst + 1 + activities.LaneIndex(lane)},
	})
}

// withHeartbeats returns the options of an activity that reports its progress in heartbeats.
func withHeartbeats(ctx workflow.Context, limit time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: limit, HeartbeatTimeout: sweepHeartbeat, RetryPolicy: unlimitedRetries(), Summary: summary,
	})
}

func localOnce(ctx workflow.Context, limit time.Duration, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: limit, RetryPolicy: noRetries(),
		Summary: summary,
	})
}

func withSubmit(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: submitLimit, HeartbeatTimeout: submitHeartbeat, RetryPolicy: noRetries(), Summary: summary,
	})
}

// withArchive waits for the end of a cancelled copy, so that what the copy has written can be removed.
//
// Copies have their own task queue, so submits and polls do not wait for them. Where the server supports it (matching.useNewMatcher,
// matching.enableFairness), channels take turns there, and a result that expires soon is copied first.
func withArchive(ctx workflow.Context, left time.Duration, channel string, dies time.Time, summary string) workflow.Context {
	options := workflow.ActivityOptions{
		ScheduleToCloseTimeout: left, HeartbeatTimeout: copyHeartbeat, RetryPolicy: unlimitedRetries(), WaitForCancellation: true,
		Summary:   summary,
		TaskQueue: CopyQueue(workflow.GetInfo(ctx).TaskQueueName), Priority: temporal.Priority{FairnessKey: FairnessKey(channel)},
	}
	if !dies.IsZero() && dies.Sub(workflow.Now(ctx)) <= diesSoon {
		options.Priority.PriorityKey = priorityFirst
	}
	return workflow.WithActivityOptions(ctx, options)
}

// FairnessKey returns the name as a fairness key of the server: a long one is hashed.
func FairnessKey(name string) string {
	if len(name) <= fairnessKeyLimit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:fairnessKeyLimit]
}

// fairnessKeyLimit is Temporal's limit, in bytes.
const fairnessKeyLimit = 64

// CopyQueue returns the task queue of the copies of a task queue's tasks.
func CopyQueue(taskQueue string) string { return taskQueue + "-copies" }
