package activities_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage"
)

// TestReconcileRarelyAsks: an upstream without an answer is not asked every two seconds for as long as a submit may be lost.
func TestReconcileRarelyAsks(t *testing.T) {
	t.Parallel()
	const tries = 10 // the test environment makes no more
	var (
		suite testsuite.WorkflowTestSuite
		looks []time.Time
	)
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	env := suite.NewTestWorkflowEnvironment()
	r := newTestEnv(t, finder{find: func(context.Context, providers.Target, providers.VideoRequest) (providers.Ticket, error) {
		looks = append(looks, env.Now())
		return providers.Ticket{}, &providers.Fault{Kind: providers.Upstream, Message: "Not there."}
	}})
	r.keepIn(fakeObjects{getJSON: func(context.Context, string, any) error { return storage.ErrNotFound }})
	r.acts.Register(env)
	env.ExecuteWorkflow(func(ctx workflow.Context) error {
		ctx = workflow.WithActivityOptions(ctx, workflow.ActivityOptions{
			StartToCloseTimeout: time.Minute, RetryPolicy: &temporal.RetryPolicy{MaximumAttempts: tries},
		})
		in := activities.ReconcileInput{Submit: submitInput(), Until: time.Now().Add(time.Hour)}
		return workflow.ExecuteActivity(ctx, r.acts.Submitter.Reconcile, in).Get(ctx, nil)
	})
	if len(looks) != tries {
		t.Fatalf("%d looks, want %d", len(looks), tries)
	}
	for i, gap := 1, 2*time.Second; i < len(looks); i, gap = i+1, min(2*gap, time.Minute) {
		if got := looks[i].Sub(looks[i-1]); got < gap-time.Second || got > gap+time.Second {
			t.Errorf("look %d came after %s, want %s", i+1, got, gap)
		}
	}
}

// TestReconcileWithoutLookup: an upstream that reports that it stores no keys is not asked for another ten minutes.
func TestReconcileWithoutLookup(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, finder{find: func(context.Context, providers.Target, providers.VideoRequest) (providers.Ticket, error) {
		return providers.Ticket{}, &providers.Fault{Kind: providers.Upstream, Message: "No lookup.", Err: providers.ErrNoLookup}
	}})
	r.keepIn(fakeObjects{claim: begun, getJSON: func(context.Context, string, any) error { return storage.ErrNotFound }})
	_, err := do[activities.Job](t, r, r.acts.Submitter.Reconcile, activities.ReconcileInput{Submit: submitInput(), Until: time.Now()})
	if got, retried, _ := fault(t, err); retried || got.Accepted != providers.AcceptedUnknown {
		t.Errorf("got %+v, retried %t, want the end of it", got, retried)
	}
}
