package workflows

import (
	"crypto/sha256"
	"encoding/hex"
	"time"

	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
)

// Every timeout and retry policy of a task, with its reason. They are part of the workflow's code: a change needs the
// committed histories to replay.
const (
	// submitMargin is what a submit may need beside its HTTP request: reading the input, writing the ticket.
	submitMargin = 30 * time.Second
	// submitLimit bounds a submit from its start to its answer.
	submitLimit = activities.SubmitTimeout + submitMargin
	// submitHeartbeat is the silence after which a submit's worker counts as lost. It decides how soon the look for the
	// ticket begins, never whether a submit is repeated.
	submitHeartbeat = 20 * time.Second
	// pollMargin is what one look at a job may need beside its HTTP request. A worker killed during a look is noticed
	// when the two have passed.
	pollMargin = 5 * time.Second
	// reconcileLimit bounds the look for a lost ticket. While the archive cannot be read nothing is decided, so it is long.
	reconcileLimit = 24 * time.Hour
	// reconcileTry bounds one look, which may be the whole submit repeated under its idempotency key.
	reconcileTry = submitLimit
	// copyHeartbeat is the silence after which an archiving worker, or a stalled download, counts as lost.
	copyHeartbeat = 60 * time.Second
	// diesSoon is the life of a result that is copied before others, and priorityFirst the server's first of five.
	diesSoon      = time.Hour
	priorityFirst = 1
	// cancelLimit bounds how long a vendor is told to stop a job that nobody wants.
	cancelLimit = 10 * time.Minute
	// cancelTry bounds one telling.
	cancelTry = 30 * time.Second
	// discardLimit bounds the removal of outputs that nobody wants; what stays is swept at its expiry.
	discardLimit = 20 * time.Second
	// laterLimit bounds what is left to do of a task whose end is written.
	laterLimit = max(cancelLimit, copyHeartbeat+discardLimit)
	// settleNow bounds the quick try to settle, which holds the task's end up while Redis is away.
	settleNow = 2 * time.Second
	// settleLimit bounds the patient one: a Redis outage of a day is the longest that is sat out.
	settleLimit = 24 * time.Hour
	// settleTry bounds one try of it.
	settleTry = 10 * time.Second
	// removeLimit bounds each step of a removal: as long as a task under removal is hidden.
	removeLimit = 7 * 24 * time.Hour
	// sweepLimit bounds a sweep; the next one goes on where it ended.
	sweepLimit = 50 * time.Minute
	// endedLimit bounds a look for tasks that ended without their finish; the next one begins where the last complete one did.
	endedLimit = 10 * time.Minute
	// sweepHeartbeat is the silence after which a sweeping worker counts as lost.
	sweepHeartbeat = 30 * time.Second
	// removeQuick bounds the try to remove an ended task within the workflow's task, which lives for ten seconds: a few
	// requests where nothing is away.
	removeQuick = 5 * time.Second
	// removeTry bounds one try of it.
	removeTry = time.Minute
	// admitLimit bounds the choice of a channel: a look into memory, and one into Redis, which fails fast. It counts from when
	// the choice is due, so a worker with very many tasks at once may come too late for some of them.
	admitLimit = 10 * time.Second
	// awaitTry bounds one ask of a task that stands in line. A worker killed in it is noticed then.
	awaitTry = 10 * time.Second
	// queueFirst and queueMost bound the wait of a task that no channel takes now: soon at first, then seldom enough
	// that a day of refusals by a few channels, each attempt with its request, stays well below Temporal's 50 MB a history.
	queueFirst = 5 * time.Second
	queueMost  = 10 * time.Minute
	// notifyLimit is how long an event is delivered, from the end of its task to the begin of the last try.
	notifyLimit = 72 * time.Hour
	// notifySlack is what the last try may need beyond it, the look for room included.
	notifySlack = activities.LastRoom + 5*time.Minute
	// deliverMargin is what one try may need beside its request, until its worker counts as lost.
	deliverMargin = 5 * time.Second
	// WorkerStopTimeout is longer than a submit may live: a deploy does not interrupt one.
	WorkerStopTimeout = submitLimit + 10*time.Second
)

// once lets an activity run a single time.
func once() *temporal.RetryPolicy { return &temporal.RetryPolicy{MaximumAttempts: 1} }

// patiently retries without a limit of tries; the activity's ScheduleToClose is the bound.
func patiently() *temporal.RetryPolicy {
	return &temporal.RetryPolicy{InitialInterval: 2 * time.Second, BackoffCoefficient: 2, MaximumInterval: time.Minute}
}

func withAdmit(ctx workflow.Context) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{
		ScheduleToCloseTimeout: admitLimit, Summary: "choose a channel",
	})
}

// tried are the options of an activity that is tried again until limit is over; a try ends after so long.
func tried(ctx workflow.Context, limit, try time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: limit, StartToCloseTimeout: try, RetryPolicy: patiently(), Summary: summary,
	})
}

func withAwait(ctx workflow.Context, left time.Duration, summary string) workflow.Context {
	return tried(ctx, left, awaitTry, summary)
}

func withReconcile(ctx workflow.Context, summary string) workflow.Context {
	return tried(ctx, reconcileLimit, reconcileTry, summary)
}

func withPoll(ctx workflow.Context, left time.Duration, summary string) workflow.Context {
	return tried(ctx, left, activities.PollTimeout+pollMargin, summary)
}

func withCancel(ctx workflow.Context, summary string) workflow.Context {
	return tried(ctx, cancelLimit, cancelTry, summary)
}

func withDiscard(ctx workflow.Context) workflow.Context {
	return tried(ctx, discardLimit, cancelTry, "remove outputs")
}

func withSettle(ctx workflow.Context) workflow.Context {
	return tried(ctx, settleLimit, settleTry, "settle")
}

func withRemoval(ctx workflow.Context, summary string) workflow.Context {
	return tried(ctx, removeLimit, removeTry, summary)
}

// withDeliver: a failed try says itself when the next is due; these tries are for lost workers.
func withDeliver(ctx workflow.Context, summary string) workflow.Context {
	return tried(ctx, notifyLimit+notifySlack, activities.DeliverTimeout+deliverMargin, summary)
}

// swept are the options of an activity that tells how far it is, whose worker counts as lost after a silence.
func swept(ctx workflow.Context, limit time.Duration, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		ScheduleToCloseTimeout: limit, HeartbeatTimeout: sweepHeartbeat, RetryPolicy: patiently(), Summary: summary,
	})
}

func withSweepEnded(ctx workflow.Context) workflow.Context {
	return swept(ctx, endedLimit, "tasks that ended without their finish")
}

func withSweep(ctx workflow.Context, summary string) workflow.Context {
	return swept(ctx, sweepLimit, summary)
}

// quickly are the options of a local activity that runs a single time.
func quickly(ctx workflow.Context, limit time.Duration, summary string) workflow.Context {
	return workflow.WithLocalActivityOptions(ctx, workflow.LocalActivityOptions{ScheduleToCloseTimeout: limit, RetryPolicy: once(), Summary: summary})
}

func withSettleNow(ctx workflow.Context) workflow.Context { return quickly(ctx, settleNow, "settle") }

func withRemovalNow(ctx workflow.Context) workflow.Context {
	return quickly(ctx, removeQuick, "remove it")
}

func withSubmit(ctx workflow.Context, summary string) workflow.Context {
	return workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
		StartToCloseTimeout: submitLimit, HeartbeatTimeout: submitHeartbeat, RetryPolicy: once(), Summary: summary,
	})
}

// withArchive waits for the end of a copy that was called off: what it writes until then is removed.
//
// Copies have a task queue of their own, so that submits and polls do not wait for them. Where the server supports it
// (matching.useNewMatcher, matching.enableFairness), channels take turns there, and a result that expires soon is copied first.
func withArchive(ctx workflow.Context, left time.Duration, channel string, dies time.Time, summary string) workflow.Context {
	options := workflow.ActivityOptions{
		ScheduleToCloseTimeout: left, HeartbeatTimeout: copyHeartbeat, RetryPolicy: patiently(), WaitForCancellation: true, Summary: summary,
		TaskQueue: CopyQueue(workflow.GetInfo(ctx).TaskQueueName), Priority: temporal.Priority{FairnessKey: FairnessKey(channel)},
	}
	if !dies.IsZero() && dies.Sub(workflow.Now(ctx)) <= diesSoon {
		options.Priority.PriorityKey = priorityFirst
	}
	return workflow.WithActivityOptions(ctx, options)
}

// FairnessKey is a name as the server takes it for a key.
func FairnessKey(name string) string {
	if len(name) <= fairnessKeyLimit {
		return name
	}
	sum := sha256.Sum256([]byte(name))
	return hex.EncodeToString(sum[:])[:fairnessKeyLimit]
}

// fairnessKeyLimit is Temporal's own, in bytes.
const fairnessKeyLimit = 64

// CopyQueue is the task queue of the copies of a task queue's tasks.
func CopyQueue(taskQueue string) string { return taskQueue + "-copies" }
