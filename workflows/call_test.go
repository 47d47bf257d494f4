package workflows_test

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/workflow"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

const callDeadline = time.Hour

func callInput() workflows.Input {
	return workflows.Input{
		Revision: workflows.Revision, TaskID: "call_test", Token: "demo", Group: "default", Format: providers.OpenAI, Model: "gpt-4o",
		Reservation: "r", Notify: true,
		Call:   &activities.StagedCall{Method: "POST", Path: "/v1/chat/completions", Amount: 1000},
		Limits: workflows.Limits{Deadline: activities.Duration(callDeadline), Retention: activities.Duration(retention)},
	}
}

// call plays a background call and returns its result, its bill, and the events of its webhook.
func (s *testEnv) call(t *testing.T) (result workflows.Result, bill activities.Bill, events []string) {
	t.Helper()
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.SettleInput) error {
		bill = in.Bill
		return nil
	}).Once()
	s.OnWorkflow("Notify", mock.Anything, mock.Anything).Return(func(_ workflow.Context, in workflows.NotifyInput) (activities.Delivery,
		error,
	) {
		events = append(events, in.EventType())
		return activities.Delivery{Delivered: true}, nil
	}).Maybe()
	s.ExecuteWorkflow(workflows.Call, callInput())
	if err := s.GetWorkflowError(); err != nil || !s.IsWorkflowCompleted() {
		t.Fatalf("the workflow failed, which is a bug: %v", err)
	}
	if err := s.GetWorkflowResult(&result); err != nil {
		t.Fatal(err)
	}
	s.AssertExpectations(t)
	return result, bill, events
}

var answered = activities.Answered{
	Status: 200, Output: &activities.Output{Object: "o", Size: 2}, Usage: providers.Usage{Input: 1, Output: 2}, Cost: 70, Priced: true,
	CallProgress: activities.CallProgress{Attempts: 1, Channel: "main"},
}

func TestCall(t *testing.T) {
	t.Parallel()
	lost := activities.Answered{Unknown: true, Cost: 1000, Failure: &providers.VideoFailure{Code: "upstream_unknown", Message: "lost"}}
	tooLate := activities.Record{Kind: providers.Timeout, Deadline: true, Accepted: providers.NotAccepted}
	for name, test := range map[string]struct {
		answer activities.Answered
		err    error
		// concluded is the answer in the archive; nil: the archive is not asked. away: the archive is away.
		concluded *activities.Answered
		away      bool
		state     workflows.State
		code      string
		cost      int64
		ending    activities.Ending
		event     string
	}{
		"completed": {answer: answered, state: workflows.Completed, cost: 70, ending: activities.EndedCompleted, event: "task.completed"},
		"failed": {
			answer: activities.Answered{Status: 400, Failure: &providers.VideoFailure{Code: "bad"}}, state: workflows.Failed, code: "bad",
			ending: activities.EndedFailed, event: "task.failed",
		},
		"lost": {
			answer: lost, state: workflows.Failed, code: "upstream_unknown", cost: 1000, ending: activities.EndedUnknown,
			event: "task.failed",
		},
		"cancelled": {
			answer: activities.Answered{Cancelled: true, Cost: 30}, state: workflows.Cancelled, code: "cancelled", cost: 30,
			ending: activities.EndedFailed, event: "task.cancelled",
		},
		"never sent": {
			err: faultError(tooLate), concluded: &activities.Answered{}, state: workflows.Failed, code: "queue_timeout",
			ending: activities.EndedFailed, event: "task.failed",
		},
		"no worker for an hour, answer lost": {
			err: faultError(activities.Record{Kind: providers.Timeout, Deadline: true}), concluded: &lost, state: workflows.Failed,
			code: "upstream_unknown",
			cost: 1000, ending: activities.EndedUnknown, event: "task.failed",
		},
		"no worker for an hour, answer stored": {
			err: faultError(activities.Record{Kind: providers.Timeout, Deadline: true}), concluded: &answered, state: workflows.Completed, cost: 70,
			ending: activities.EndedCompleted, event: "task.completed",
		},
		"no worker for an hour, archive away": {
			err: faultError(activities.Record{Kind: providers.Timeout, Deadline: true}), away: true, state: workflows.Failed,
			code: "deadline_exceeded",
			cost: 1000, ending: activities.EndedUnknown, event: "task.failed",
		},
		"a bug": {
			err: errors.New("a bug"), concluded: &activities.Answered{}, state: workflows.Failed, code: "internal_error",
			ending: activities.EndedFailed, event: "task.failed",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			err := test.err
			if err != nil && err.Error() == "a bug" {
				err = temporal.NewNonRetryableApplicationError("a bug", "Bug", nil)
			}
			s.OnActivity("Relay", mock.Anything, mock.Anything).Return(test.answer, err).Once()
			switch {
			case test.away:
				s.OnActivity("Conclude", mock.Anything, mock.Anything).Return(activities.Answered{}, errors.New("the archive is away"))
			case test.concluded != nil:
				s.OnActivity("Conclude", mock.Anything, mock.Anything).Return(*test.concluded, nil).Once()
			}
			got, bill, events := s.call(t)
			code := ""
			if got.Failure != nil {
				code = got.Failure.Code
			}
			if got.State != test.state || code != test.code {
				t.Errorf("got %s %q, want %s %q", got.State, code, test.state, test.code)
			}
			if bill.Call == nil || bill.Call.Cost != test.cost || bill.Ending != test.ending || bill.Reservation != "r" {
				t.Errorf("bill %+v of %+v, want %s of %d", bill, bill.Call, test.ending, test.cost)
			}
			if len(events) != 1 || events[0] != test.event {
				t.Errorf("delivered %q, want %q", events, test.event)
			}
			if s.channel != got.Call.Channel {
				t.Errorf("operators see channel %q, want %q", s.channel, got.Call.Channel)
			}
			if want := got.CompletedAt.Add(retention); !got.ExpiresAt.Equal(want) {
				t.Errorf("expires at %v, want %v", got.ExpiresAt, want)
			}
		})
	}
}

// TestCallLane: a call of an early lane goes first at the server, and its activity receives the lane and the weight of the token.
func TestCallLane(t *testing.T) {
	t.Parallel()
	last := 0
	for _, lane := range []string{"high", "normal", "low"} {
		s := newTestEnv(t)
		in := callInput()
		in.Lane, in.Weight = lane, 3
		s.OnActivity("Relay", mock.Anything, mock.Anything).Return(func(_ context.Context, got activities.RelayInput) (activities.Answered,
			error,
		) {
			if got.Lane != lane || got.Weight != 3 {
				t.Errorf("got lane %q and weight %d", got.Lane, got.Weight)
			}
			return answered, nil
		}).Once()
		s.OnActivity("Settle", mock.Anything, mock.Anything).Return(nil).Once()
		s.OnWorkflow("Notify", mock.Anything, mock.Anything).Return(activities.Delivery{Delivered: true}, nil).Maybe()
		if s.ExecuteWorkflow(workflows.Call, in); s.GetWorkflowError() != nil {
			t.Fatal(s.GetWorkflowError())
		}
		s = newTestEnv(t)
		s.ExecuteWorkflow(func(ctx workflow.Context) (int, error) {
			return workflow.GetActivityOptions(workflows.WithRelay(ctx, time.Hour, lane, "")).Priority.PriorityKey, nil
		})
		var key int
		if err := s.GetWorkflowResult(&key); err != nil || key <= last || key > 5 {
			t.Errorf("lane %s has priority %d after %d, %v", lane, key, last, err)
		}
		last = key
	}
}

// TestCallCancelledWithoutWorker: a cancelled call whose worker is gone ends as cancelled, and costs what was lost.
func TestCallCancelledWithoutWorker(t *testing.T) {
	t.Parallel()
	for name, remove := range map[string]bool{"cancelled": false, "removed": true} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			s.OnActivity("Relay", mock.Anything, mock.Anything).Return(activities.Answered{}, temporal.NewCanceledError()).After(time.Minute).Once()
			s.OnActivity("Conclude", mock.Anything, mock.Anything).Return(activities.Answered{Unknown: true, Cost: 1000}, nil).Once()
			s.RegisterDelayedCallback(func() {
				if remove {
					s.SignalWorkflow(workflows.SignalRemove, nil)
				}
				s.CancelWorkflow()
			}, time.Second)
			got, bill, events := s.call(t)
			if got.State != workflows.Cancelled || bill.Call.Cost != 1000 || bill.Ending != activities.EndedUnknown {
				t.Errorf("got %+v with the bill %+v", got, bill)
			}
			if delivered := len(events) == 1 && events[0] == "task.cancelled"; delivered == remove {
				t.Errorf("delivered %q, removed %t", events, remove)
			}
		})
	}
}

// TestCallFailedByOperator: the signal ends a running call as failed.
func TestCallFailedByOperator(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.OnActivity("Relay", mock.Anything, mock.Anything).Return(activities.Answered{Cancelled: true, Cost: 30}, nil).After(time.Minute).Once()
	s.RegisterDelayedCallback(func() { s.SignalWorkflow(workflows.SignalFail, "the account is closed") }, time.Second)
	got, bill, _ := s.call(t)
	if got.State != workflows.Failed || got.Failure.Code != workflows.CodeFailedByOperator || got.Failure.Message != "the account is closed" ||
		bill.Call == nil {
		t.Errorf("got %+v, %+v", got, got.Failure)
	}
}
