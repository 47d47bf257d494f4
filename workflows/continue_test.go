package workflows_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/converter"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

const week = 7 * 24 * time.Hour

// next is the input of the run that follows the environment's; false where the task has ended.
func (s *testEnv) next(t *testing.T) (in workflows.Input, goesOn bool) {
	t.Helper()
	var again *workflow.ContinueAsNewError
	if err := s.GetWorkflowError(); !errors.As(err, &again) {
		if err != nil {
			t.Fatalf("the workflow failed, which is a bug: %v", err)
		}
		return in, false
	}
	if err := converter.GetDefaultDataConverter().FromPayloads(again.Input, &in); err != nil {
		t.Fatal(err)
	}
	return in, true
}

// TestVideoOfAWeek: a task that all keys refuse for a week has no run of many steps, and ends when its time in the queue is
// over, counted from its first run. No attempt has the number of another.
func TestVideoOfAWeek(t *testing.T) {
	t.Parallel()
	const (
		keys      = 2
		stepsMost = 250 // each is a dozen events at most, of which Temporal takes 51,200
	)
	var (
		in       = input()
		now      = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
		began    = now
		attempts = make(map[int]bool)
		result   workflows.Result
		settled  activities.SettleInput
		runs     = 0
	)
	in.Limits.Queue = activities.Duration(week)
	for goesOn := true; goesOn; runs++ {
		s, steps := newTestEnv(t), 0
		s.SetStartTime(now)
		s.OnActivity("Admit", mock.Anything, mock.Anything).Return(func(_ context.Context, ask activities.AdmitInput) (activities.Admission,
			error,
		) {
			steps++
			if first := steps == 1; first && in.Before != nil && !slices.Equal(ask.Held, in.Before.Held) {
				t.Errorf("asks with %v held, the run before had %v", ask.Held, in.Before.Held)
			}
			if !ask.Waiter.Since.Equal(began) {
				t.Errorf("waits since %v, want %v", ask.Waiter.Since, began)
			}
			if n := len(ask.ExceptKeys); n < keys {
				to := slot("main")
				to.Key = fmt.Sprint("key-", n)
				return activities.Admission{Assignment: &to}, nil
			}
			return activities.Admission{Refused: &activities.Record{Kind: providers.Overloaded, Message: "all keys rest"}}, nil
		})
		s.OnActivity("Submit", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SubmitInput) (activities.Job, error) {
			steps++
			if attempts[in.Attempt] {
				t.Errorf("attempt %d was made before", in.Attempt)
			}
			attempts[in.Attempt] = true
			return activities.Job{}, faultError(activities.Record{
				Kind: providers.Upstream, Message: "401", Accepted: providers.NotAccepted,
				Retryable: true, KeyOnly: true,
			})
		})
		s.OnActivity("Settle", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SettleInput) error {
			settled = in
			return nil
		}).Maybe()
		s.ExecuteWorkflow(workflows.Video, in)
		if steps > stepsMost {
			t.Fatalf("run %d takes %d steps", runs+1, steps)
		}
		now = s.Now()
		if in, goesOn = s.next(t); goesOn {
			continue
		}
		if err := s.GetWorkflowResult(&result); err != nil {
			t.Fatal(err)
		}
	}
	if runs < 10 || len(attempts) < 2*1_000 {
		t.Errorf("%d attempts in %d runs: that was no week of refusals", len(attempts), runs)
	}
	if result.Failure == nil || result.Failure.Code != workflows.CodeQueueTimeout {
		t.Errorf("ended as %+v", result)
	}
	if waited := now.Sub(began); waited < week || waited > week+time.Minute {
		t.Errorf("waited %v, want about %v", waited, week)
	}
	if last := result.Attempts[len(result.Attempts)-1]; last.Number != len(attempts) || len(result.Attempts) != 10 {
		t.Errorf("the result names %d attempts, the last is %d, want 10 and %d", len(result.Attempts), last.Number, len(attempts))
	}
	if !settled.Created.Equal(began) || !settled.Waiter.Since.Equal(began) {
		t.Errorf("settles %+v, want what began at %v", settled, began)
	}
}

// TestVideoOfALaterRun: a cancel or fail also ends a task that has continued in a new run, and one that arrives in the last step of a run.
func TestVideoOfALaterRun(t *testing.T) {
	t.Parallel()
	for name, tc := range map[string]struct {
		send func(s *testEnv)
		want string
	}{
		"cancel": {func(s *testEnv) { s.CancelWorkflow() }, workflows.CodeCancelled},
		"fail":   {func(s *testEnv) { s.SignalWorkflow("fail", "no") }, workflows.CodeFailedByOperator},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			in := input()
			for run := 1; ; run++ {
				s := newTestEnv(t)
				s.OnActivity("Settle", mock.Anything, mock.Anything).Return(nil).Maybe()
				asks := 0
				s.OnActivity("Admit", mock.Anything, mock.Anything).Return(func(context.Context, activities.AdmitInput) (activities.Admission, error) {
					if asks++; asks == 100 && run == 2 { // the last of a run
						tc.send(s)
					}
					return activities.Admission{Refused: &activities.Record{Kind: providers.Overloaded, Message: "none now"}}, nil
				})
				s.ExecuteWorkflow(workflows.Video, in)
				var goesOn bool
				if in, goesOn = s.next(t); goesOn && run < 2 {
					continue
				}
				var got workflows.Result
				if err := s.GetWorkflowResult(&got); goesOn || err != nil || got.Failure == nil || got.Failure.Code != tc.want {
					t.Errorf("run %d goes on %t, %v, %+v, want %s", run, goesOn, err, got.Failure, tc.want)
				}
				return
			}
		})
	}
}

// TestVideoCancelledWhileTheVendorIsAway: a cancelled task is recorded, settled and delivered before the vendor has accepted the
// cancel. The job keeps its slot until then.
func TestVideoCancelledWhileTheVendorIsAway(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	var (
		mu    sync.Mutex // the task settles while its delivery begins
		steps []string
	)
	note := func(step string) {
		mu.Lock()
		defer mu.Unlock()
		steps = append(steps, step)
	}
	s.OnActivity("Admit", mock.Anything, mock.Anything).Return(func(context.Context, activities.AdmitInput) (activities.Admission, error) {
		to := slot("main")
		return activities.Admission{Assignment: &to}, nil
	})
	s.submits(nil)
	s.OnActivity("Poll", mock.Anything, mock.Anything).After(time.Hour).Return(done, nil)
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SettleInput) error {
		note("settled")
		if len(in.Channels) != 0 {
			t.Errorf("gives up %v while the job runs", in.Channels)
		}
		return nil
	})
	s.OnWorkflow("Notify", mock.Anything, mock.Anything).Return(func(workflow.Context, workflows.NotifyInput) (activities.Delivery, error) {
		note("delivered")
		return activities.Delivery{Delivered: true}, nil
	})
	tries := 0
	s.OnActivity("Cancel", mock.Anything, mock.Anything).Return(func(context.Context, activities.Job) error {
		if tries++; tries == 1 {
			note("stops")
		}
		if tries < 5 {
			return errors.New("the vendor is away")
		}
		note("stopped")
		return nil
	})
	s.RegisterDelayedCallback(s.CancelWorkflow, time.Minute)
	in := input()
	in.Notify = true
	if got := s.play(t, in); got.Failure == nil || got.Failure.Code != workflows.CodeCancelled {
		t.Errorf("result = %+v", got)
	}
	if last := steps[len(steps)-1]; last != "stopped" || len(steps) != 4 || slices.Index(steps, "stops") != 2 {
		t.Errorf("steps %v, want the job stopped last", steps)
	}
	if last := s.states[len(s.states)-1]; last != "failed" {
		t.Errorf("states = %v", s.states)
	}
}

// TestVideoCancelledWhileItIsCopied: the task ends first, and the objects of the unfinished copy are removed after that.
func TestVideoCancelledWhileItIsCopied(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	var steps []string
	s.admits("main")
	s.submits(nil)
	s.polls(done, nil)
	s.OnActivity("Archive", mock.Anything, mock.Anything).After(time.Hour).Return(nil, nil)
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(func(context.Context, activities.SettleInput) error {
		steps = append(steps, "settled")
		return nil
	})
	s.OnActivity("Discard", mock.Anything, mock.Anything).Return(func(context.Context, activities.DiscardInput) error {
		steps = append(steps, "discarded")
		return nil
	})
	s.RegisterDelayedCallback(s.CancelWorkflow, time.Minute)
	if got := s.play(t, input()); got.Failure == nil || got.Failure.Code != workflows.CodeCancelled {
		t.Errorf("result = %+v", got)
	}
	if want := []string{"settled", "discarded"}; !slices.Equal(steps, want) {
		t.Errorf("steps %v, want %v", steps, want)
	}
}

// TestVideoWithoutAnAnswerIsNotStuck: a task does not count as stuck while Reconcile searches for its lost submit.
func TestVideoWithoutAnAnswerIsNotStuck(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	var left time.Duration
	s.admits("main")
	s.submits(&activities.Record{Kind: providers.Upstream, Message: "500", Finished: true})
	s.OnActivity("Reconcile", mock.Anything, mock.Anything).Return(func(context.Context, activities.ReconcileInput) (activities.Job, error) {
		left = s.due.Sub(s.Now())
		return activities.Job{}, faultError(activities.Record{Kind: providers.Upstream, Message: "no lookup"})
	})
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(nil)
	s.play(t, input())
	if left < activities.FindLag {
		t.Errorf("stuck after %v of a look that takes up to %v", left, activities.FindLag)
	}
}
