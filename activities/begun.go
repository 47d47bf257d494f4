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
	// reconciler holds the claim of an attempt that never began, so that it never will.
	reconciler = "reconcile"
)

// SubmitClaimed is Submit under a name that no worker knows who sends without a claim.
func (a *Activities) SubmitClaimed(ctx context.Context, in SubmitInput) (Job, error) {
	return a.Submit(ctx, in)
}

// claim makes the attempt this submit's own. Its faults are TakenNo, but where another has it: then nobody here can tell.
func (a *Activities) claim(ctx context.Context, in SubmitInput) error {
	wait, cancel := context.WithTimeout(ctx, claimTimeout)
	defer cancel()
	owner := activity.GetInfo(ctx).WorkflowExecution.RunID + " " + rand.Text()
	holder, err := a.Objects.Claim(wait, in.BegunObject(), owner)
	switch {
	case err != nil:
		return &providers.Fault{
			Kind: providers.Overloaded, Message: "The archive is away; nothing is submitted meanwhile.", Taken: providers.TakenNo, Err: fmt.Errorf("claim the attempt: %w", err),
		}
	case holder == reconciler:
		return &providers.Fault{Kind: providers.Timeout, Message: "The attempt was given up before it began.", Taken: providers.TakenNo}
	case holder != owner:
		return &providers.Fault{Kind: providers.Upstream, Message: "The attempt was begun before, and its answer is not known.", Taken: providers.TakenUnknown}
	}
	return nil
}

// unclaim gives the attempt of a submit back that surely was not taken, so that an operator may have it tried again. A
// claim that stays only makes such a retry end as unknown.
func (a *Activities) unclaim(ctx context.Context, in SubmitInput) {
	ctx, cancel := context.WithTimeout(context.WithoutCancel(ctx), earlierTimeout)
	defer cancel()
	if err := a.Objects.DeletePrefix(ctx, in.BegunObject()); err != nil {
		a.Log.DebugContext(ctx, "claim not given back", "task", in.TaskID, "attempt", in.Attempt, "err", err)
	}
}

// neverBegan claims the attempt of a lost submit; true when nothing was sent for it, and from now on nothing will be.
func (a *Activities) neverBegan(ctx context.Context, in SubmitInput) (bool, error) {
	holder, err := a.Objects.Claim(ctx, in.BegunObject(), reconciler)
	if err != nil {
		return false, fmt.Errorf("look whether the attempt began: %w", err)
	}
	return holder == reconciler, nil
}
