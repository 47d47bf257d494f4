package workflows_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

// full scripts Admit for channels that are full at first: it answers so the first times, then with the channel.
func (s *testEnv) full(times int, channel string) *[]activities.AdmitInput {
	var seen []activities.AdmitInput
	s.OnActivity("Admit", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.AdmitInput) (activities.Admission,
		error,
	) {
		seen = append(seen, in)
		if len(seen) > times {
			to := slot(channel)
			return activities.Admission{Assignment: &to}, nil
		}
		return activities.Admission{Full: &activities.Waiting{
			Position: 3, Channel: channel, Channels: []string{channel, "spare"}, RetryIn: activities.Duration(time.Second),
		}}, nil
	})
	return &seen
}

// slot is an assignment with a slot.
func slot(channel string) activities.Assignment {
	to := assignment(channel)
	to.Slot = true
	return to
}

// awaits scripts Await: "not yet" so many times, then the channel. The waits are long: the test environment gives an
// activity ten tries.
func (s *testEnv) awaits(times int, channel string) *[]activities.AwaitInput {
	var seen []activities.AwaitInput
	s.OnActivity("Await", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.AwaitInput) (activities.Admission,
		error,
	) {
		seen = append(seen, in)
		if len(seen) <= times {
			return activities.Admission{}, temporal.NewApplicationErrorWithOptions("place 3", "Pending", temporal.ApplicationErrorOptions{
				NextRetryDelay: 3 * time.Hour, Category: temporal.ApplicationErrorCategoryBenign,
			})
		}
		to := slot(channel)
		return activities.Admission{Assignment: &to}, nil
	})
	return &seen
}

// settles records the settlements of the task.
func (s *testEnv) settles() *[]activities.SettleInput {
	var seen []activities.SettleInput
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SettleInput) error {
		seen = append(seen, in)
		return nil
	})
	return &seen
}

// weighted is input with a share of its own.
func weighted() workflows.Input {
	in := input()
	in.Weight, in.Lane = 4, "high"
	return in
}

func TestVideoQueuePosition(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	seen, awaits, settled := s.full(1, "main"), s.awaits(3, "main"), s.settles()
	s.submits(nil)
	s.polls(done, nil)
	s.archives()
	start := s.Now()
	if got := s.play(t, weighted()); got.State != workflows.Completed {
		t.Errorf("result = %+v", got)
	}
	in := (*awaits)[0]
	want := activities.Waiter{TaskID: "video_test", Token: "demo", Weight: 4, Lane: "high", Since: start.UTC()}
	if len(*awaits) != 4 || in.Waiting.Position != 3 || in.Admit.Waiter != want || !in.Until.Equal(start.Add(queued)) {
		t.Errorf("awaited %d times, with %+v", len(*awaits), in)
	}
	if (*seen)[0].Waiter != want {
		t.Errorf("admitted %+v", (*seen)[0].Waiter)
	}
	if len(*settled) != 1 || !slices.Equal((*settled)[0].Channels, []string{"main"}) || (*settled)[0].Waiter != want {
		t.Errorf("settled %+v", *settled)
	}
	if !slices.Equal(s.states, []string{"submitting", "polling", "archiving", "completed"}) {
		t.Errorf("states = %v", s.states)
	}
}

// TestVideoQueuePositionAgain: an attempt that was refused goes back into the line, where the refusing channel is left out
// for a while.
func TestVideoQueuePositionAgain(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	seen, awaits, settled := s.full(2, "main"), s.awaits(0, "main"), s.settles()
	submits := s.submits(&activities.Record{Kind: providers.RateLimited, Message: "busy", Accepted: providers.NotAccepted, Retryable: true},
		nil)
	s.polls(done, nil)
	s.archives()
	if got := s.play(t, weighted()); got.State != workflows.Completed || *submits != 2 {
		t.Errorf("%d submits, result = %+v", *submits, got)
	}
	if len(*seen) != 2 || !slices.Equal((*seen)[1].Held, []string{"main"}) || !slices.Equal((*seen)[1].Except, []string{"main"}) {
		t.Errorf("admitted with %+v", *seen)
	}
	if len(*awaits) != 2 || !(*awaits)[0].ExceptUntil.IsZero() || (*awaits)[1].ExceptUntil.IsZero() {
		t.Errorf("awaited with %+v", *awaits)
	}
	if len(*settled) != 1 {
		t.Errorf("settled %+v", *settled)
	}
}

// TestVideoWaitsForTheArchive: while the archive is unavailable a task is not submitted. It continues at the same channel when
// the archive is back, however long that takes. A task of an older revision waits with the queue's backoff.
func TestVideoWaitsForTheArchive(t *testing.T) {
	t.Parallel()
	away := &activities.Record{Kind: providers.Overloaded, Message: "away", Accepted: providers.NotAccepted, Retryable: true, Archive: true}
	t.Run("a long outage", func(t *testing.T) {
		t.Parallel()
		s := newTestEnv(t)
		seen := s.admits("main")
		submits := s.submits(away, nil)
		s.OnActivity("AwaitArchive", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.AwaitArchiveInput) error {
			if in.TaskID != "video_test" || in.Until.IsZero() {
				t.Errorf("awaits with %+v", in)
			}
			return nil
		}).After(7 * time.Hour).Once()
		s.polls(done, nil)
		s.archives()
		s.settles()
		start := s.Now()
		got := s.play(t, weighted())
		if took := got.CompletedAt.Sub(start); got.State != workflows.Completed || took < 7*time.Hour || took > 7*time.Hour+time.Minute {
			t.Errorf("ended after %s: %+v", took, got)
		}
		if *submits != 2 || len(*seen) != 2 || len((*seen)[1].Except) != 0 {
			t.Errorf("%d submits, admitted with %+v, want the channel not left out", *submits, *seen)
		}
	})
	t.Run("a store that takes the probe and nothing else", func(t *testing.T) {
		t.Parallel()
		s := newTestEnv(t)
		s.admits("main")
		submits := s.submits(away)
		s.OnActivity("AwaitArchive", mock.Anything, mock.Anything).Return(nil)
		s.settles()
		const hours = 8 * time.Hour // in one run
		in := weighted()
		in.Limits.Queue = activities.Duration(hours)
		got := s.play(t, in)
		if got.State != workflows.Failed || got.Failure.Code != workflows.CodeQueueTimeout {
			t.Errorf("result = %+v, %+v", got, got.Failure)
		}
		if most := int(hours/(10*time.Minute)) + 20; *submits > most {
			t.Errorf("%d submits in eight hours, want %d at most: the history contains the request of each", *submits, most)
		}
	})
	for name, code := range map[string]string{"cancelled": workflows.CodeCancelled, "queue limit": workflows.CodeQueueTimeout} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			s.admits("main")
			s.submits(away)
			s.OnActivity("AwaitArchive", mock.Anything,
				mock.Anything).Return(temporal.NewApplicationErrorWithOptions("away", "Fault",
				temporal.ApplicationErrorOptions{NextRetryDelay: 3 * time.Hour}))
			s.settles()
			if code == workflows.CodeCancelled {
				s.RegisterDelayedCallback(s.CancelWorkflow, time.Hour)
			}
			if got := s.play(t, weighted()); got.Failure == nil || got.Failure.Code != code {
				t.Errorf("result = %+v, %+v", got, got.Failure)
			}
		})
	}
}

func TestVideoLeavesTheLine(t *testing.T) {
	t.Parallel()
	for name, code := range map[string]string{
		"cancelled": workflows.CodeCancelled, "queue limit": workflows.CodeQueueTimeout,
		"by an operator": workflows.CodeFailedByOperator,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			s.full(1, "main")
			s.awaits(1<<30, "main")
			settled := s.settles()
			start := s.Now()
			const after = 90 * time.Minute
			switch code {
			case workflows.CodeCancelled:
				s.RegisterDelayedCallback(s.CancelWorkflow, after)
			case workflows.CodeFailedByOperator:
				s.RegisterDelayedCallback(func() { s.SignalWorkflow("fail", "not today") }, after)
			}
			got := s.play(t, weighted())
			if got.State != workflows.Failed || got.Failure == nil || got.Failure.Code != code {
				t.Fatalf("result = %+v", got)
			}
			waited := got.CompletedAt.Sub(start)
			if code == workflows.CodeQueueTimeout && (waited < queued-3*time.Hour || waited > queued+time.Minute) ||
				code != workflows.CodeQueueTimeout && waited != after {
				t.Errorf("waited %s", waited)
			}
			if len(*settled) != 1 || !slices.Equal((*settled)[0].Channels, []string{"main", "spare"}) {
				t.Errorf("settled %+v, want every line it stood in", *settled)
			}
		})
	}
}

// TestVideoAdmitAgain: a worker that does not come to choose a channel in time, since it stood still or has thousands of
// tasks at once, does not end the task.
func TestVideoAdmitAgain(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	asks := 0
	s.OnActivity("Admit", mock.Anything, mock.Anything).Return(func(context.Context, activities.AdmitInput) (activities.Admission, error) {
		if asks++; asks < 3 {
			return activities.Admission{}, temporal.NewNonRetryableApplicationError("deadline exceeded", "", nil)
		}
		to := assignment("main")
		return activities.Admission{Assignment: &to}, nil
	})
	s.submits(nil)
	s.polls(done, nil)
	s.archives()
	s.settles()
	began := s.Now()
	if got := s.play(t, input()); got.State != workflows.Completed || asks != 3 {
		t.Errorf("result %+v after %d tries", got, asks)
	}
	if waited := s.Now().Sub(began); waited < 10*time.Second {
		t.Errorf("asked again at once, in %s", waited)
	}

	s = newTestEnv(t)
	s.OnActivity("Admit", mock.Anything, mock.Anything).Return(activities.Admission{},
		temporal.NewNonRetryableApplicationError("deadline exceeded", "", nil))
	s.settles()
	in := input()
	in.Limits.Queue = activities.Duration(8 * time.Hour) // in one run
	if got := s.play(t, in); got.Failure == nil || got.Failure.Code != workflows.CodeQueueTimeout {
		t.Errorf("result %+v, want the end of its time in the queue", got)
	}
}

// TestVideoRefusedCreate: a create that is refused ends under the word that the vendor's own code means, else by the words of the code.
func TestVideoRefusedCreate(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		fault      activities.Record
		code, says string
	}{
		{activities.Record{
			Kind: providers.Invalid, Code: "1301", Message: "invalid",
			Failed: providers.FailedContent,
		}, providers.FailedContent, "1301: invalid"},
		{activities.Record{Kind: providers.Invalid, Code: "1301", Message: "a risk"}, providers.FailedInput, "1301: a risk"},
		{
			activities.Record{Kind: providers.Invalid, Code: "moderation_blocked", Message: "no"},
			providers.FailedContent,
			"moderation_blocked: no",
		},
		{
			activities.Record{Kind: providers.Invalid, Code: workflows.CodeUpstreamUnknown, Message: "no"},
			providers.FailedInput,
			"upstream_unknown: no",
		},
		{activities.Record{Kind: providers.Invalid, Message: "no"}, providers.FailedInput, "no"},
	} {
		s := newTestEnv(t)
		s.admits("main")
		tc.fault.Accepted = providers.NotAccepted
		s.submits(&tc.fault)
		settled := s.settles()
		got := s.play(t, weighted())
		if got.Failure == nil || got.Failure.Code != tc.code || got.Failure.Message != tc.says {
			t.Errorf("%+v: got %+v", tc.fault, got.Failure)
		}
		if bill := (*settled)[0].Bill; bill.Ending != activities.EndedFailed {
			t.Errorf("%+v: ended as %v, want nothing to be paid", tc.fault, bill.Ending)
		}
	}
}
