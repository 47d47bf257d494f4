package activities_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"reflect"
	"strings"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/secret"
	"modelrelay/storage/archive"
	"modelrelay/storage/tokens"
)

// TestStepsAreRecorded: the recorder receives the outcome and the channel of each step, and nothing of the request.
func TestStepsAreRecorded(t *testing.T) {
	t.Parallel()
	refused := &providers.Fault{Kind: providers.RateLimited, Message: "full", Accepted: providers.NotAccepted}
	lost := &providers.Fault{Kind: providers.Timeout, Message: "gone"}
	at := func(name activities.StepName, outcome string) activities.Step {
		return activities.Step{Name: name, Channel: "main", Model: "sora-2", Outcome: outcome}
	}
	job := activities.Job{
		TaskID: "video_1", Model: "sora-2", Assignment: assignment(), Ticket: providers.Ticket{Job: "job-1"},
		AcceptedAt: time.Now(),
	}
	submits := func(err error) providers.VideoAdapter {
		return fakeAdapter{submit: func(context.Context, providers.Target, providers.VideoRequest) (providers.Ticket, error) {
			return providers.Ticket{Job: "job-1"}, err
		}}
	}
	polls := func(status providers.VideoStatus, err error) providers.VideoAdapter {
		return fakeAdapter{poll: func(context.Context, providers.Target, providers.Ticket) (providers.VideoStatus, error) {
			return status, err
		}}
	}
	submit := func(r *testEnv) { _, _ = r.env.ExecuteActivity(r.acts.Submitter.Submit, submitInput()) }
	reconcile := func(r *testEnv) {
		r.keepIn(fakeObjects{claim: begun})
		_, _ = r.env.ExecuteActivity(r.acts.Submitter.Reconcile, activities.ReconcileInput{Submit: submitInput(), Until: time.Now()})
	}
	poll := func(r *testEnv) {
		r.env.SetHeartbeatDetails(activities.Progress{State: providers.JobQueued, Since: time.Now()})
		_, _ = r.env.ExecuteActivity(r.acts.Poller.Poll, activities.PollInput{Job: job, Deadline: time.Now().Add(time.Hour)})
	}
	for name, tc := range map[string]struct {
		video providers.VideoAdapter
		do    func(*testEnv)
		want  activities.Step
	}{
		"submit accepted": {submits(nil), submit, at(activities.StepSubmit, activities.OutcomeAccepted)},
		"submit refused":  {submits(refused), submit, at(activities.StepSubmit, activities.OutcomeRefused)},
		"submit unknown":  {submits(lost), submit, at(activities.StepSubmit, activities.OutcomeUnknown)},
		"reconcile unknown": {
			submits(nil), reconcile,
			activities.Step{Name: activities.StepReconcile, Channel: "main", Outcome: activities.OutcomeUnknown},
		},
		"poll running": {
			polls(providers.VideoStatus{State: providers.JobRunning}, nil), poll,
			at(activities.StepPoll, activities.OutcomeRunning),
		},
		"poll done": {
			polls(providers.VideoStatus{State: providers.JobDone}, nil), poll,
			at(activities.StepPoll, activities.OutcomeDone),
		},
		"poll failed": {
			polls(providers.VideoStatus{State: providers.JobFailed}, nil), poll,
			at(activities.StepPoll, activities.OutcomeFailed),
		},
		"poll forgotten": {
			polls(providers.VideoStatus{State: providers.JobForgotten}, nil), poll,
			at(activities.StepPoll, activities.OutcomeForgotten),
		},
		"poll meets a fault": {polls(providers.VideoStatus{}, lost), poll, at(activities.StepPoll, "timeout")},
		"archive": {fakeAdapter{open: func(context.Context, providers.Target, providers.Ticket, int) (providers.Video, error) {
			return providers.Video{Body: io.NopCloser(strings.NewReader("12345")), Length: 5}, nil
		}}, func(r *testEnv) {
			r.acts.Copier.Objects = fakeObjects{put: func(_ context.Context, key string, body io.Reader, _ int64,
				_ archive.PutOptions,
			) (archive.Object, error) {
				n, err := io.Copy(io.Discard, body)
				return archive.Object{Key: key, Size: n}, err
			}}
			_, _ = r.env.ExecuteActivity(r.acts.Copier.Archive, activities.ArchiveInput{Job: job, Outputs: 1, Expires: time.Now()})
		}, activities.Step{Name: activities.StepArchive, Channel: "main", Model: "sora-2", Outcome: activities.OutcomeOK, Bytes: 5}},
		"archive fails": {fakeAdapter{open: func(context.Context, providers.Target, providers.Ticket, int) (providers.Video, error) {
			return providers.Video{}, lost
		}}, func(r *testEnv) {
			_, _ = r.env.ExecuteActivity(r.acts.Copier.Archive, activities.ArchiveInput{Job: job, Outputs: 1, Expires: time.Now()})
		}, at(activities.StepArchive, "timeout")},
		"webhook delivered": {
			nil, delivers(t, http.StatusOK),
			activities.Step{Name: activities.StepDeliver, Outcome: activities.OutcomeDelivered},
		},
		"webhook refused": {
			nil, delivers(t, http.StatusTeapot),
			activities.Step{Name: activities.StepDeliver, Outcome: activities.OutcomeAgain},
		},
		"webhook unwanted": {
			nil, delivers(t, http.StatusGone),
			activities.Step{Name: activities.StepDeliver, Outcome: activities.OutcomeGivenUp},
		},
		"webhook of a revoked token": {nil, func(r *testEnv) {
			r.acts.Deliverer.Webhooks = fakeWebhooks(func(context.Context, string) (tokens.Webhook, error) {
				return tokens.Webhook{},
					tokens.ErrRevoked
			})
			_, _ = r.env.ExecuteActivity(r.acts.Deliverer.Deliver, activities.DeliverInput{})
		}, activities.Step{Name: activities.StepDeliver, Outcome: activities.OutcomeGivenUp}},
		"end": {nil, func(r *testEnv) {
			created := time.Now()
			_ = r.acts.Settler.Settle(t.Context(), activities.SettleInput{
				TaskID: "video_1", Created: created,
				Accepted: created.Add(20 * time.Second), Bill: activities.Bill{
					Channel: "main", Model: "sora-2", Ending: activities.EndedCompleted, At: created.Add(time.Minute),
				},
			})
		}, activities.Step{
			Name: activities.StepEnd, TaskID: "video_1", Channel: "main", Model: "sora-2", Outcome: activities.OutcomeCompleted,
			Took: time.Minute, Ran: 40 * time.Second,
		}},
		"failed end": {nil, func(r *testEnv) {
			now := time.Now()
			_ = r.acts.Settler.Settle(t.Context(), activities.SettleInput{
				TaskID: "video_1", Code: "upstream_unknown", Created: now,
				Bill: activities.Bill{
					Model: "sora-2", Ending: activities.EndedUnknown, At: now,
				},
			})
		}, activities.Step{
			Name: activities.StepEnd, TaskID: "video_1", Model: "sora-2", Outcome: activities.OutcomeFailed,
			Code: "upstream_unknown",
		}},
		"end of a cancelled call": {nil, func(r *testEnv) {
			now := time.Now()
			_ = r.acts.Settler.Settle(t.Context(), activities.SettleInput{TaskID: "call_1", Code: "cancelled", Created: now, Bill: activities.Bill{
				Model: "gpt-4o", At: now.Add(time.Minute),
				Call: &activities.Answered{CallProgress: activities.CallProgress{StartedAt: now.Add(time.Second)}},
			}})
		}, activities.Step{
			Name: activities.StepEnd, TaskID: "call_1", Model: "gpt-4o", Outcome: activities.OutcomeCancelled, Took: time.Minute,
			Ran: 59 * time.Second,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			r := newTestEnv(t, tc.video)
			r.keepIn(fakeObjects{putJSON: func(context.Context, string, any) error { return errors.New("not here") }})
			var got []activities.Step
			count := func(step activities.Step) { got = append(got, step) }
			r.acts.Submitter.Record, r.acts.Poller.Record, r.acts.Copier.Record = count, count, count
			r.acts.Deliverer.Record, r.acts.Settler.Record = count, count
			tc.do(r)
			if len(got) == 1 && tc.want.Name == activities.StepArchive && tc.want.Bytes > 0 {
				if got[0].Took <= 0 {
					t.Errorf("got %s for a copy", got[0].Took)
				}
				got[0].Took = 0
			}
			if !reflect.DeepEqual(got, []activities.Step{tc.want}) {
				t.Errorf("got %+v\nwant %+v", got, tc.want)
			}
		})
	}
}

// delivers tries to deliver an event to a receiver that answers with the code.
func delivers(t *testing.T, code int) func(*testEnv) {
	t.Helper()
	to := newReceiver(t, status(code))
	return func(r *testEnv) {
		r.acts.Deliverer.Receivers = activities.NewReceivers(activities.ReceiversOptions{AllowPrivate: true})
		defer r.acts.Deliverer.Receivers.Close()
		r.acts.Deliverer.Webhooks = fakeWebhooks(func(context.Context, string) (tokens.Webhook, error) {
			return tokens.Webhook{URL: to.URL, Secrets: []secret.Text{tokens.NewWebhookSecret()}}, nil
		})
		_, _ = r.env.ExecuteActivity(r.acts.Deliverer.Deliver, deliver())
	}
}
