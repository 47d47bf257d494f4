package workflows_test

import (
	"context"
	"errors"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

func TestVideoSettlesOnce(t *testing.T) {
	t.Parallel()
	for name, fails := range map[string]int{"at once": 0, "after a Redis outage": 3} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			s.admits("main")
			s.submits(nil)
			s.polls(done, nil)
			s.archives()
			tries, settled := 0, 0
			s.OnActivity("Settle", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SettleInput) error {
				if in.TaskID != "video_test" || in.Token != "demo" || in.Accepted.IsZero() {
					t.Errorf("settles %+v", in)
				}
				if tries++; tries <= fails {
					return errors.New("redis does not answer")
				}
				settled++
				return nil
			})
			if got := s.play(t, input()); got.State != workflows.Completed || got.Job == nil || got.Job.Ticket.Job != "job-main" {
				t.Errorf("result = %+v", got)
			}
			if settled != 1 || tries != fails+1 {
				t.Errorf("settled %d times in %d tries, want once in %d", settled, tries, fails+1)
			}
		})
	}
}

func TestVideoFailedByOperator(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.admits("main")
	s.submits(nil)
	s.OnActivity("Poll", mock.Anything, mock.Anything).Return(done, nil).After(time.Hour)
	s.OnActivity("Cancel", mock.Anything, mock.Anything).Return(nil).Once()
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(nil).Once()
	s.RegisterDelayedCallback(func() { s.SignalWorkflow("fail", "the account is closed") }, time.Minute)
	got := s.play(t, input())
	if got.State != workflows.Failed || got.Failure.Code != workflows.CodeFailedByOperator || got.Failure.Message != "the account is closed" {
		t.Errorf("result = %+v, failure %+v", got, got.Failure)
	}
}

func TestVideoDeliversItsEnd(t *testing.T) {
	t.Parallel()
	var notified []workflows.NotifyInput
	s := newTestEnv(t)
	s.OnWorkflow("Notify", mock.Anything, mock.Anything).Return(func(_ workflow.Context, in workflows.NotifyInput) (activities.Delivery,
		error,
	) {
		notified = append(notified, in)
		return activities.Delivery{Delivered: true}, nil
	})
	s.admits("main")
	s.submits(&activities.Record{Kind: providers.Invalid, Message: "no", Accepted: providers.NotAccepted})
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(nil)
	in := input()
	in.Notify, in.Request.WebhookURL = true, "https://client.example/hook"
	if got := s.play(t, in); got.State != workflows.Failed || got.Job != nil {
		t.Errorf("result = %+v", got)
	}
	if len(notified) != 1 || notified[0].TaskID != in.TaskID || notified[0].State != workflows.Failed ||
		notified[0].URL != in.Request.WebhookURL || notified[0].CompletedAt.IsZero() || len(notified[0].EventID) != len("evt_")+26 {
		t.Errorf("notified %+v", notified)
	}
}

// TestVideoNamesItsDelivery: the id of a delivery contains the task's incarnation. So it does not collide with a running delivery of a
// deleted task with the same id.
func TestVideoNamesItsDelivery(t *testing.T) {
	t.Parallel()
	for _, incarnation := range []string{"one", "two"} {
		var id string
		s := newTestEnv(t)
		s.OnWorkflow("Notify", mock.Anything, mock.Anything).Return(func(ctx workflow.Context, _ workflows.NotifyInput) (activities.Delivery,
			error,
		) {
			id = workflow.GetInfo(ctx).WorkflowExecution.ID
			return activities.Delivery{Delivered: true}, nil
		})
		s.admits("main")
		s.submits(&activities.Record{Kind: providers.Invalid, Message: "no", Accepted: providers.NotAccepted})
		s.OnActivity("Settle", mock.Anything, mock.Anything).Return(nil)
		in := input()
		in.Notify, in.Incarnation = true, incarnation
		s.play(t, in)
		if want := "notify_video_test_failed_" + incarnation; id != want || in.NotifyID(workflows.Failed) != want {
			t.Errorf("delivered by %q, operators look for %q, want %q", id, in.NotifyID(workflows.Failed), want)
		}
	}
}

// TestVideoSubmitsAgain: a lost submit that never began is followed by another.
func TestVideoSubmitsAgain(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.admits("main")
	submits := 0
	s.OnActivity("Submit", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SubmitInput) (activities.Job, error) {
		if submits++; submits == 1 {
			return activities.Job{}, temporal.NewHeartbeatTimeoutError()
		}
		return s.job(in), nil
	})
	s.OnActivity("Reconcile", mock.Anything, mock.Anything).Return(func(context.Context, activities.ReconcileInput) (activities.Job, error) {
		return activities.Job{}, faultError(activities.Record{
			Kind: providers.Timeout, Message: "never began", Accepted: providers.NotAccepted,
			Retryable: true,
		})
	})
	s.polls(done, nil)
	s.archives()
	s.settles()
	if got := s.play(t, input()); got.State != workflows.Completed || submits != 2 {
		t.Errorf("result = %+v after %d submits, want two", got, submits)
	}
}

// TestNewerRevision: a worker takes no step of a workflow that was started with a newer revision.
func TestNewerRevision(t *testing.T) {
	t.Parallel()
	const newer = workflows.Revision + 1
	task := input()
	task.Revision = newer
	for name, start := range map[string]struct{ workflow, in any }{
		"Video":            {workflows.Video, task},
		"Notify":           {workflows.Notify, workflows.NotifyInput{Revision: newer}},
		"Remove":           {workflows.Remove, activities.RemoveInput{Revision: newer}},
		"Finish":           {workflows.Finish, workflows.FinishInput{Revision: newer}},
		"Finish of a task": {workflows.Finish, workflows.FinishInput{Revision: workflows.Revision, Task: task}},
	} {
		s := newTestEnv(t)
		s.ExecuteWorkflow(start.workflow, start.in)
		var panicked *temporal.PanicError
		if err := s.GetWorkflowError(); !errors.As(err, &panicked) || !strings.Contains(err.Error(), "it needs a newer worker") ||
			len(s.states) > 0 {
			t.Errorf("%s: got %v, states %v, want a failed step", name, err, s.states)
		}
	}
}

// TestFinish: Finish settles a task whose workflow ended early as that workflow would have, and delivers the webhook. It retries
// until Redis is back.
func TestFinish(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	in := input()
	in.Notify, in.Reservation, in.Request = true, "video_test.CLAIM", &providers.VideoRequest{WebhookURL: "https://client.example/hook"}
	var (
		notified []workflows.NotifyInput
		settled  []activities.SettleInput
		tries    int
		at       = time.Date(2026, 1, 1, 0, 0, 0, 0, time.UTC)
	)
	s.OnWorkflow("Notify", mock.Anything, mock.Anything).Return(func(_ workflow.Context, in workflows.NotifyInput) (activities.Delivery,
		error,
	) {
		notified = append(notified, in)
		return activities.Delivery{Delivered: true}, nil
	})
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SettleInput) error {
		if tries++; tries < 3 {
			return errors.New("redis does not answer")
		}
		settled = append(settled, in)
		return nil
	})
	s.ExecuteWorkflow(workflows.Finish, workflows.FinishInput{
		Task: in, Began: at.Add(-time.Hour), Channel: "main",
		Result: workflows.Result{
			State:  workflows.Failed,
			Ending: workflows.Ending{CompletedAt: at, Failure: &providers.VideoFailure{Code: workflows.CodeFailedByOperator}},
		},
	})
	if err := s.GetWorkflowError(); err != nil {
		t.Fatal(err)
	}
	if len(notified) != 1 || notified[0].State != workflows.Failed || notified[0].URL != in.Request.WebhookURL ||
		!notified[0].CompletedAt.Equal(at) {
		t.Errorf("notified %+v", notified)
	}
	if len(settled) != 1 {
		t.Fatalf("settled %+v", settled)
	}
	got := settled[0]
	if got.Code != workflows.CodeFailedByOperator || !slices.Equal(got.Channels, []string{"main"}) || !got.Created.Equal(at.Add(-time.Hour)) ||
		got.Bill.Reservation != in.Reservation || got.Bill.Ending != activities.EndedFailed || got.Bill.Channel != "main" {
		t.Errorf("settled %+v, %+v", got, got.Bill)
	}
}

// TestVideoIsBilled: the bill of a task depends on how the task ended.
func TestVideoIsBilled(t *testing.T) {
	t.Parallel()
	unknown := &activities.Record{Kind: providers.Upstream, Message: "lost", Finished: true}
	lost := providers.VideoStatus{State: providers.JobFailed, Failure: &providers.VideoFailure{Code: "bad"}}
	asked := providers.Footage{Seconds: "8", Videos: 1, Audio: "true"}
	counted := done
	counted.Seconds, counted.Resolution, counted.Tokens = "", "480P", providers.VideoTokens{Output: 7}
	for name, tc := range map[string]struct {
		submit *activities.Record
		status providers.VideoStatus
		want   activities.Bill
	}{
		"completed": {nil, done, activities.Bill{
			Ending:  activities.EndedCompleted,
			Footage: providers.Footage{Seconds: done.Seconds, Videos: 1, Resolution: "720p", Audio: "true"},
		}},
		"counted": {nil, counted, activities.Bill{Ending: activities.EndedCompleted, Footage: providers.Footage{
			Seconds: asked.Seconds, Videos: 1, Resolution: "480p", Audio: "true", Tokens: counted.Tokens,
		}}},
		"failed":  {nil, lost, activities.Bill{Ending: activities.EndedFailed}},
		"unknown": {unknown, done, activities.Bill{Ending: activities.EndedUnknown, Footage: asked}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			s.admits("main")
			s.submits(tc.submit)
			s.OnActivity("Reconcile", mock.Anything, mock.Anything).Return(activities.Job{}, faultError(*unknown)).Maybe()
			if tc.submit == nil {
				s.polls(tc.status, nil)
			}
			if tc.want.Ending == activities.EndedCompleted {
				s.archives()
			}
			seen := s.settles()
			in := input()
			in.Reservation, in.Footage = "video_test.CLAIM", asked
			s.play(t, in)
			if len(*seen) != 1 {
				t.Fatalf("settled %+v", *seen)
			}
			got := (*seen)[0].Bill
			if got.At.IsZero() {
				t.Error("no time of the end")
			}
			tc.want.Reservation, tc.want.Model, tc.want.Channel, tc.want.At = in.Reservation, "sora-2", "main", got.At
			if got != tc.want {
				t.Errorf("got  %+v\nwant %+v", got, tc.want)
			}
		})
	}
}
