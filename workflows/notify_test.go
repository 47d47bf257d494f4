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

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

func notice() workflows.NotifyInput {
	return workflows.NotifyInput{
		TaskID: "video_test", Token: "demo", EventID: "evt_test", State: workflows.Completed,
		CompletedAt: time.Unix(1_790_000_000, 0).UTC(), URL: "https://client.example/hook",
	}
}

// notify plays a delivery and returns its result, which must not be an error, and how long it took.
func (s *testEnv) notify(t *testing.T) (activities.Delivery, time.Duration) {
	t.Helper()
	begin := s.Now()
	s.ExecuteWorkflow(workflows.Notify, notice())
	if err := s.GetWorkflowError(); err != nil {
		t.Fatalf("the workflow failed, which is a bug: %v", err)
	}
	var d activities.Delivery
	if err := s.GetWorkflowResult(&d); err != nil {
		t.Fatal(err)
	}
	return d, s.Now().Sub(begin)
}

// later is a failed try as package activities makes it.
func later(wait time.Duration) error {
	return temporal.NewApplicationErrorWithOptions("The receiver answered with status 500.", "Fault", temporal.ApplicationErrorOptions{
		NextRetryDelay: wait, Details: []any{activities.Record{Kind: providers.Upstream, Message: "The receiver answered with status 500."}},
	})
}

func TestNotifyDelivers(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	tries := 0
	s.OnActivity("Deliver", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.DeliverInput) (activities.Delivery,
		error,
	) {
		want := activities.Event{ID: "evt_test", Type: "video.completed", TaskID: "video_test", At: notice().CompletedAt}
		if in.Event != want || in.Token != "demo" || in.URL != notice().URL {
			t.Errorf("delivers %+v", in)
		}
		if tries++; tries < 3 {
			return activities.Delivery{}, later(time.Hour)
		}
		return activities.Delivery{Delivered: true, Host: "client.example", Status: 200, Tries: tries}, nil
	})
	d, took := s.notify(t)
	if !d.Delivered || d.Tries != 3 || took < 2*time.Hour || took > 2*time.Hour+time.Minute {
		t.Errorf("%+v after %s", d, took)
	}
	if !slices.Equal(s.states, []string{"delivered"}) {
		t.Errorf("states %v", s.states)
	}
}

func TestNotifyEndsUndelivered(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		answer func(in activities.DeliverInput, now time.Time) (activities.Delivery, error)
		reason string
		took   time.Duration
	}{
		"410": {answer: func(activities.DeliverInput, time.Time) (activities.Delivery, error) {
			return activities.Delivery{Host: "client.example", Status: 410, Tries: 1, Reason: "The receiver refuses more events (410)."}, nil
		}, reason: "refuses more"},
		"three days are over": {answer: func(in activities.DeliverInput, now time.Time) (activities.Delivery, error) {
			if left := in.Until.Sub(now); left > 0 {
				return activities.Delivery{}, later(min(24*time.Hour, left))
			}
			return activities.Delivery{Tries: 4, Reason: "The deadline of the delivery has passed."}, nil
		}, reason: "has passed", took: 72 * time.Hour},
		"no worker ever finishes a try": {answer: func(activities.DeliverInput, time.Time) (activities.Delivery, error) {
			return activities.Delivery{}, later(50 * time.Hour)
		}, reason: "status 500"},
		"a bug": {answer: func(activities.DeliverInput, time.Time) (activities.Delivery, error) {
			return activities.Delivery{}, temporal.NewNonRetryableApplicationError("boom", "panic", errors.New("boom"))
		}, reason: "The gateway failed"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			s.OnActivity("Deliver", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.DeliverInput) (activities.Delivery,
				error,
			) {
				return test.answer(in, s.Now())
			})
			d, took := s.notify(t)
			if d.Delivered || !strings.Contains(d.Reason, test.reason) || test.took > 0 && (took < test.took || took > test.took+time.Minute) {
				t.Errorf("%+v after %s", d, took)
			}
			if !slices.Equal(s.states, []string{"undelivered"}) {
				t.Errorf("states %v", s.states)
			}
		})
	}
}

func TestNotifyCancelled(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.OnActivity("Deliver", mock.Anything, mock.Anything).Return(activities.Delivery{}, later(time.Hour))
	s.RegisterDelayedCallback(s.CancelWorkflow, time.Minute)
	d, took := s.notify(t)
	if d.Delivered || !strings.Contains(d.Reason, "operator") || took > 2*time.Minute {
		t.Errorf("%+v after %s", d, took)
	}
}
