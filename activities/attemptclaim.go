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
	// claimTimeout bounds the claim of an attempt before it is paid for. While the archive is away nothing is sent.
	claimTimeout = 10 * time.Second
	// archiveTry bounds one look whether the archive is back.
	archiveTry = 5 * time.Second
	// archiveRetry and archiveRetryMost bound the wait between two of them: soon at first, and so seldom later that ten
	// thousand waiting tasks leave most of a worker's places free while a store hangs.
	archiveRetry     = 5 * time.Second
	archiveRetryMost = 2 * time.Minute
	// reconciler holds the claim of an attempt that never began, so that it never will.
	reconciler = "reconcile"
)

// claim makes the attempt this submit's own. Its faults are NotAccepted, but where another has it: then nobody here can tell.
func (a *Submitter) claim(ctx context.Context, in SubmitInput) error {
	wait, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	owner := activity.GetInfo(ctx).WorkflowExecution.RunID + " " + rand.Text()
	holder, err := a.Objects.Claim(wait, in.BegunObject(), owner)
	switch {
	case err != nil:
		return &providers.Fault{
			Kind: providers.Overloaded, Message: "The archive is away; nothing is submitted meanwhile.", Accepted: providers.NotAccepted, Err: fmt.Errorf("claim the attempt: %w", err),
		}
	case holder == reconciler:
		return &providers.Fault{Kind: providers.Timeout, Message: "The attempt was given up before it began.", Accepted: providers.NotAccepted}
	case holder != owner:
		return &providers.Fault{Kind: providers.Upstream, Message: "The attempt was begun before, and its answer is not known.", Accepted: providers.AcceptedUnknown}
	}
	return nil
}

// AwaitArchiveInput is a task that cannot be submitted while the archive is away.
type AwaitArchiveInput struct {
	TaskID     string    `json:"task_id"`
	Generation string    `json:"generation"`
	Until      time.Time `json:"until"`
}

// probe is the object that is written to see whether the archive is back.
func (in AwaitArchiveInput) probe() string {
	return GenerationPrefix(in.TaskID, in.Generation) + "waited.json"
}

// AwaitArchive returns when the archive takes the task's objects again. It may run any number of times.
func (a *Submitter) AwaitArchive(ctx context.Context, in AwaitArchiveInput) error {
	try, cancel := context.WithTimeout(ctx, archiveTry)
	defer cancel()
	// A write: a store that only reads would let the attempt fail again at once.
	err := a.Objects.PutJSON(try, in.probe(), map[string]time.Time{"at": time.Now().UTC()})
	switch {
	case err == nil:
		return nil
	case ctx.Err() != nil:
		return ctx.Err()
	}
	r := record(err)
	r.Message, r.Archive = "The archive is away; nothing is submitted meanwhile.", true
	left := time.Until(in.Until) - deadlineMargin
	if left <= 0 {
		r.Deadline = true
		return fail(r)
	}
	delay := archiveRetry
	for try := int32(1); try < activity.GetInfo(ctx).Attempt && delay < archiveRetryMost; try++ {
		delay *= 2
	}
	return again(r, min(delay, archiveRetryMost, left))
}

// unclaim gives the attempt of a submit back that surely was not taken, so that an operator may have it tried again. A
// claim that stays only makes such a retry end as unknown.
func (a *Submitter) unclaim(ctx context.Context, in SubmitInput) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), earlierTimeout)
	defer cancel()
	if err := a.Objects.DeletePrefix(ctx, in.BegunObject()); err != nil {
		a.Log.DebugContext(ctx, "claim not given back", "task", in.TaskID, "attempt", in.Attempt, "err", err)
	}
}

// neverBegan claims the attempt of a lost submit; true when nothing was sent for it, and from now on nothing will be.
func (a *Submitter) neverBegan(ctx context.Context, in SubmitInput) (bool, error) {
	holder, err := a.Objects.Claim(ctx, in.BegunObject(), reconciler)
	if err != nil {
		return false, fmt.Errorf("look whether the attempt began: %w", err)
	}
	return holder == reconciler, nil
}
