package activities

import (
	"context"
	"crypto/rand"
	"fmt"
	"time"

	"go.temporal.io/sdk/activity"

	"modelrelay/providers"
)

const (
	// claimTimeout bounds the claim of an attempt before the submit. While the archive is unavailable nothing is sent.
	claimTimeout = 10 * time.Second
	archiveTry   = 5 * time.Second
	// archiveRetry and archiveRetryMost bound the wait between two checks. The later waits are long, so that ten thousand waiting tasks
	// leave most of a worker's slots free while a store hangs.
	archiveRetry     = 5 * time.Second
	archiveRetryMost = 2 * time.Minute
	// reconciler is the owner of an attempt that never began. With this claim it never will.
	reconciler = "reconcile"
)

// claim claims the attempt for this submit. Its faults are NotAccepted, except if another submit has the claim: its outcome is unknown.
func (a *Submitter) claim(ctx context.Context, in SubmitInput) error {
	wait, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	owner := activity.GetInfo(ctx).WorkflowExecution.RunID + " " + rand.Text()
	holder, err := a.Objects.Claim(wait, in.BegunObject(), owner)
	switch {
	case err != nil:
		return unsent(providers.Overloaded, "The archive is unavailable; nothing is submitted meanwhile.", fmt.Errorf("claim the attempt: %w", err))
	case holder == reconciler:
		return unsent(providers.Timeout, "The attempt was given up before it began.", nil)
	case holder != owner:
		return &providers.Fault{
			Kind: providers.Upstream, Message: "The attempt began before, and its answer is unknown.",
			Accepted: providers.AcceptedUnknown,
		}
	}
	return nil
}

// AwaitArchiveInput is a task that waits for the archive.
type AwaitArchiveInput struct {
	TaskID      string    `json:"task_id"`
	Incarnation string    `json:"incarnation"`
	Until       time.Time `json:"until"`
}

// AwaitArchive returns when the archive accepts the task's objects again. It is idempotent.
func (a *Submitter) AwaitArchive(ctx context.Context, in AwaitArchiveInput) error {
	try, cancel := context.WithTimeout(ctx, archiveTry)
	defer cancel()
	// It checks with a write: with a store that can only be read, the attempt would fail again.
	err := a.Objects.PutJSON(try, IncarnationPrefix(in.TaskID, in.Incarnation)+"waited.json", map[string]time.Time{"at": time.Now().UTC()})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	r := record(err)
	r.Message, r.Archive = "The archive is unavailable; nothing is submitted meanwhile.", true
	left := time.Until(in.Until) - deadlineMargin
	if left <= 0 {
		r.Deadline = true
		return fail(r)
	}
	return again(r, min(backoff(failedTries(ctx), archiveRetry, archiveRetryMost), left))
}

// unclaim releases the attempt of a submit that certainly was not accepted, so that an operator can retry it. If the claim stays, such a
// retry ends with an unknown outcome.
func (a *Submitter) unclaim(ctx context.Context, in SubmitInput) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), earlierTimeout)
	defer cancel()
	if err := a.Objects.DeletePrefix(ctx, in.BegunObject()); err != nil {
		a.Log.DebugContext(ctx, "claim not released", "task", in.TaskID, "attempt", in.Attempt, "error", err)
	}
}
