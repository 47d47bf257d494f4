package activities_test

import (
	"context"
	"encoding/json"
	"errors"
	"net/http"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"go.temporal.io/sdk/temporal"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/providers/secret"
	"modelrelay/storage/fair"
	"modelrelay/storage/tokens"
)

// crowded returns shares of which the token has used its own up.
func crowded(t *testing.T, token string) *activities.Shares {
	t.Helper()
	s := fair.New[string](fair.Bounds{Total: 2, Share: 1})
	if err := s.Try(token, 1); err != nil {
		t.Fatal("no room in the beginning")
	}
	return s
}

// TestDeliverCrowded: a delivery whose token is at its share waits longer each time. It uses up no try and sends no request.
// A delivery of another token is made.
func TestDeliverCrowded(t *testing.T) {
	t.Parallel()
	for before, want := range map[int]time.Duration{0: 5 * time.Second, 3: 40 * time.Second, 60: 10 * time.Minute} {
		hook := newReceiver(t, status(http.StatusOK))
		r := newNotifier(t, tokens.Webhook{URL: hook.URL, Secrets: []secret.Text{tokens.NewWebhookSecret()}})
		r.acts.Deliverer.Shares = crowded(t, "demo")
		r.env.SetHeartbeatDetails(activities.Delivery{Tries: 1, NoSlot: before})
		seen := beats[activities.Delivery](t, r)
		_, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, deliver())
		_, retried, delay := fault(t, err)
		if !retried || delay < want || delay > want+want/10 {
			t.Errorf("after %d times: again in %s (%t), want %s", before, delay, retried, want)
		}
		var app *temporal.ApplicationError
		if errors.As(err, &app); app.Category() != temporal.ApplicationErrorCategoryBenign {
			t.Errorf("it has category %v: the SDK would log it as an error of the worker", app.Category())
		}
		if got := seen(); len(got) != 1 || got[0].Tries != 1 || got[0].NoSlot != before+1 || len(hook.requests()) != 0 {
			t.Errorf("recorded %+v after %d requests", got, len(hook.requests()))
		}
		r.acts.Deliverer.Shares = crowded(t, "other")
		if d, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, deliver()); err != nil || !d.Delivered || d.NoSlot != 0 {
			t.Errorf("while another token is at its share: %+v, %v", d, err)
		}
		if err := r.acts.Deliverer.Shares.Try("demo", 1); err != nil {
			t.Error("the delivery did not release its share")
		}
	}
}

// TestDeliverCrowdedLastTry: a delivery whose token is at its share until the delivery's limit gets a last try if the worker has
// a free slot. Without one, it waits for LastTryGrace and then ends untried.
func TestDeliverCrowdedLastTry(t *testing.T) {
	t.Parallel()
	hook := newReceiver(t, status(http.StatusOK))
	r := newNotifier(t, tokens.Webhook{URL: hook.URL, Secrets: []secret.Text{tokens.NewWebhookSecret()}})
	r.acts.Deliverer.Shares = crowded(t, "demo")
	over := deliver()
	over.Until = time.Now()
	if d, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, over); err != nil || !d.Delivered || d.Tries != 1 {
		t.Errorf("got %+v, %v, want the last try", d, err)
	}
	if err := r.acts.Deliverer.Shares.Try("other", 1); err != nil {
		t.Error("the last try did not release its share")
	}
	r.env.SetHeartbeatDetails(activities.Delivery{NoSlot: 60})
	_, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, over) // the worker has no free slot now
	if _, retried, delay := fault(t, err); !retried || delay < 5*time.Second || delay > 6*time.Second {
		t.Errorf("again in %s (%t), want soon", delay, retried)
	}
	over.Until = time.Now().Add(-activities.LastTryGrace)
	if d, err := do[activities.Delivery](t, r, r.acts.Deliverer.Deliver, over); err != nil || d.Delivered ||
		!strings.Contains(d.Reason, "has passed. Too many") {
		t.Errorf("got %+v, %v, want it given up", d, err)
	}
	if n := len(hook.requests()); n != 1 {
		t.Errorf("%d requests, want 1", n)
	}
}

// TestSubmitCrowded: a submit whose token is at its share sends nothing, and its task tries again.
func TestSubmitCrowded(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, fakeAdapter{}) // which panics when it is asked
	in := submitInput()
	in.Assignment.Token = "demo"
	r.upstreams.Shares = crowded(t, "demo")
	_, err := do[activities.Job](t, r, r.acts.Submitter.Submit, in)
	if got, retried, _ := fault(t, err); got.Accepted != providers.NotAccepted || !got.Retryable || !got.Finished ||
		got.Kind != providers.Overloaded || retried {
		t.Errorf("got %+v, retried %t", got, retried)
	}
}

// TestCancelAndReconcileCrowded: a cancel, and the look for a lost submit, come back later; the submit's outcome stays open.
func TestCancelAndReconcileCrowded(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, finder{}) // which panics when it is asked
	r.keepIn(fakeObjects{claim: begun})
	in := activities.ReconcileInput{Submit: submitInput(), Until: time.Now()}
	in.Submit.Assignment.Token = "demo"
	r.upstreams.Shares = crowded(t, "demo")
	_, err := do[activities.Job](t, r, r.acts.Submitter.Reconcile, in)
	if got, retried, delay := fault(t, err); got.Accepted != providers.AcceptedUnknown || !retried || delay < time.Second {
		t.Errorf("look: got %+v, retried %t after %s", got, retried, delay)
	}
	r.keepIn(fakeObjects{getJSON: func(_ context.Context, _ string, into any) error {
		return json.Unmarshal([]byte(`{"ticket":{"job":"job-1"}}`), into)
	}})
	if job, err := do[activities.Job](t, r, r.acts.Submitter.Reconcile, in); err != nil || job.Ticket.Job != "job-1" {
		t.Errorf("got %+v, %v, want the ticket of the archive, for which no room is needed", job, err)
	}

	r = newTestEnv(t, canceler{}) // which panics as well
	r.upstreams.Shares = crowded(t, "demo")
	_, err = r.env.ExecuteActivity(r.acts.Poller.Cancel, activities.Job{TaskID: "video_1", Assignment: in.Submit.Assignment})
	if got, retried, delay := fault(t, err); got.Kind != providers.Overloaded || !retried || delay != 5*time.Second {
		t.Errorf("cancel: got %+v, retried %t after %s", got, retried, delay)
	}
}

// TestPollCrowded: a poll whose token is at its share is put off for poll_max, and sends the vendor no request.
func TestPollCrowded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		asked := 0
		w := newWatch(t, func(int) (providers.VideoStatus, error) {
			asked++
			return done()
		})
		w.in.Job.Assignment.Token = "demo"
		if _, err, ended := w.look(t); ended {
			t.Fatal(err)
		}
		w.upstreams.Shares = crowded(t, "demo")
		for range 2 {
			if _, err, ended := w.look(t); ended || asked > 0 {
				t.Fatalf("asked %d times, %v", asked, err)
			}
			if wait := w.waits[len(w.waits)-1]; wait < w.acts.Poller.PollMax || wait > w.acts.Poller.PollMax*11/10 {
				t.Errorf("put off for %s", wait)
			}
		}
		w.upstreams.Shares = crowded(t, "other")
		if _, err := w.end(t); err != nil || asked != 1 {
			t.Errorf("asked %d times, %v", asked, err)
		}
		if err := w.upstreams.Shares.Try("demo", 1); err != nil {
			t.Error("the look did not give its room back")
		}
	})
}

// TestPollCrowdedLastLook: a poll that is put off until the job's deadline is made then, although the token is at its share: the
// job is paid for and may be done.
func TestPollCrowdedLastLook(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWatch(t, func(int) (providers.VideoStatus, error) { return done() })
		w.in.Job.Assignment.Token = "demo"
		w.in.Deadline = w.in.Job.AcceptedAt.Add(10 * time.Minute)
		w.upstreams.Shares = crowded(t, "demo")
		status, err := w.end(t)
		if err != nil || status.State != providers.JobDone || w.polls != 1 {
			t.Errorf("got %+v, %v after %d looks", status, err, w.polls)
		}
		if early := time.Until(w.in.Deadline); early < 0 || early > 2*time.Second {
			t.Errorf("the look was taken %s before the end", early)
		}
	})
}

// TestCancelCrowdedKeepsSlot: a cancel whose token is at its share does not reach the vendor yet. The job still runs and keeps
// its slot.
func TestCancelCrowdedKeepsSlot(t *testing.T) {
	t.Parallel()
	r := newTestEnv(t, canceler{}) // which panics when it is asked
	redis := r.slots(t)
	r.limited(map[string]int{"main": 1}, "main")
	wantAt(t, admit(t, r, admitInput("1")), "main", true)
	redis.FlushAll() // and its last sign is lost
	r.upstreams.Shares = crowded(t, "demo")
	job := activities.Job{TaskID: "video_1", Assignment: assignment()}
	job.Assignment.Slot, job.Assignment.Token = true, "demo"
	_, err := r.env.ExecuteActivity(r.acts.Poller.Cancel, job)
	if _, retried, _ := fault(t, err); !retried {
		t.Errorf("got %v", err)
	}
	if got := admit(t, r, admitInput("2")); got.Full == nil {
		t.Errorf("got %+v, want a full channel", got)
	}
}
