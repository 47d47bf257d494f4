package activities_test

import (
	"context"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/storage/storagetest"
)

// fakeClaims runs the attempts of one task on one archive. Its upstream counts the submits and answers each with answer.
type fakeClaims struct {
	archive *storagetest.MemoryArchive
	sent    atomic.Int32
	answer  error // nil: the upstream accepts
}

func (c *fakeClaims) env(t *testing.T) *testEnv {
	t.Helper()
	r := newTestEnv(t, fakeAdapter{submit: func(context.Context, providers.Target, providers.VideoRequest) (providers.Ticket, error) {
		c.sent.Add(1)
		return providers.Ticket{Job: "job-1"}, c.answer
	}})
	r.keepIn(c.archive)
	return r
}

func (c *fakeClaims) submit(t *testing.T) (activities.Job, error) {
	t.Helper()
	r := c.env(t)
	return do[activities.Job](t, r, r.acts.Submitter.Submit, submitInput())
}

// reconcile asks for the attempt after its time has passed, when no submit can still be in progress.
func (c *fakeClaims) reconcile(t *testing.T, in activities.ReconcileInput) (activities.Job, error) {
	t.Helper()
	r := c.env(t)
	in.Submit = submitInput()
	return do[activities.Job](t, r, r.acts.Submitter.Reconcile, in)
}

func newClaimed() *fakeClaims { return &fakeClaims{archive: storagetest.NewMemoryArchive()} }

func over() activities.ReconcileInput {
	return activities.ReconcileInput{Until: time.Now().Add(-time.Second)}
}

func TestSubmitClaimsThenSends(t *testing.T) {
	t.Parallel()
	c := newClaimed()
	for range 2 { // a second run of the attempt finds its ticket
		if job, err := c.submit(t); err != nil || job.Ticket.Job != "job-1" {
			t.Fatalf("got %+v, %v", job, err)
		}
	}
	if c.sent.Load() != 1 {
		t.Errorf("sent %d times", c.sent.Load())
	}
	if _, err := c.archive.Stat(t.Context(), submitInput().BegunObject()); err != nil {
		t.Errorf("no claim: %v", err)
	}
	if job, err := c.reconcile(t, over()); err != nil || job.Ticket.Job != "job-1" {
		t.Errorf("reconciled to %+v, %v", job, err)
	}
}

// TestSubmitWithoutArchiveSendsNothing: what cannot be claimed is surely not taken.
func TestSubmitWithoutArchiveSendsNothing(t *testing.T) {
	t.Parallel()
	c := newClaimed()
	c.archive.Fail = func(string, string) error { return storage.ErrUnavailable }
	_, err := c.submit(t)
	if r, retried, _ := fault(t, err); r.Accepted != providers.NotAccepted || !r.Retryable || !r.Archive || retried || c.sent.Load() != 0 {
		t.Errorf("got %+v, sent %d times; want surely not taken, for the archive", r, c.sent.Load())
	}
}

// TestAwaitArchive: while the archive is unavailable, the waits between two checks grow. They end at the task's queue limit.
func TestAwaitArchive(t *testing.T) {
	t.Parallel()
	c := newClaimed()
	away := true
	c.archive.Fail = func(operation, _ string) error {
		if away && operation == "put" { // it reads all the time
			return storage.ErrUnavailable
		}
		return nil
	}
	for _, tc := range []struct {
		left  time.Duration
		delay time.Duration
		ends  bool
	}{
		{left: time.Hour, delay: 5 * time.Second},
		{left: 3 * time.Second, delay: 2 * time.Second},
		{left: 0, ends: true},
	} {
		r := c.env(t)
		_, err := r.env.ExecuteActivity(r.acts.Submitter.AwaitArchive,
			activities.AwaitArchiveInput{TaskID: "video_1", Incarnation: "one", Until: time.Now().Add(tc.left)})
		got, retried, delay := fault(t, err)
		if !got.Archive || got.Deadline != tc.ends || retried == tc.ends || delay > tc.delay || delay < tc.delay-time.Second {
			t.Errorf("%s left: got %+v, retried %t after %s", tc.left, got, retried, delay)
		}
	}
	away = false
	r := c.env(t)
	if _, err := r.env.ExecuteActivity(r.acts.Submitter.AwaitArchive,
		activities.AwaitArchiveInput{TaskID: "video_1", Incarnation: "one", Until: time.Now().Add(time.Hour)}); err != nil {
		t.Errorf("back: %v", err)
	}
	for _, key := range c.archive.Keys() {
		if !strings.HasPrefix(key, activities.TaskPrefix("video_1")) || strings.HasPrefix(key, activities.AttemptsPrefix("video_1")) {
			t.Errorf("left %s, want it removed with the task and no attempt's", key)
		}
	}
}

// TestReconcileNeverBegun: Reconcile reports an attempt without a claim as not accepted. It takes the claim itself, so a submit
// that starts later sends nothing.
func TestReconcileNeverBegun(t *testing.T) {
	t.Parallel()
	c := newClaimed()
	for range 2 {
		_, err := c.reconcile(t, over())
		if r, _, _ := fault(t, err); r.Accepted != providers.NotAccepted || !r.Retryable {
			t.Fatalf("got %+v, want surely not taken", r)
		}
	}
	_, err := c.submit(t)
	if r, _, _ := fault(t, err); r.Accepted != providers.NotAccepted || c.sent.Load() != 0 {
		t.Errorf("a late submit: %+v, sent %d times", r, c.sent.Load())
	}
}

// TestReconcileBegun: an attempt with a claim and without a ticket is unknown, and is not sent again.
func TestReconcileBegun(t *testing.T) {
	t.Parallel()
	c := newClaimed()
	c.answer = &providers.Fault{Kind: providers.Upstream, Message: "cut off", Accepted: providers.AcceptedUnknown}
	if _, err := c.submit(t); err == nil {
		t.Fatal("accepted")
	}
	_, err := c.reconcile(t, over())
	if r, retried, _ := fault(t, err); r.Accepted != providers.AcceptedUnknown || retried {
		t.Errorf("got %+v, want unknown without a retry", r)
	}
	_, err = c.submit(t) // as after a reset
	// The process that holds the claim may still be sending, so the fault is not final: the ticket may still arrive.
	if r, _, _ := fault(t, err); r.Accepted != providers.AcceptedUnknown || r.Finished || c.sent.Load() != 1 {
		t.Errorf("sent again: %+v, %d times", r, c.sent.Load())
	}
}

// TestSubmitTwice: an operator's reset runs Submit a second time. If the archive did not store the ticket, the outcome is
// unknown and nothing is sent again.
func TestSubmitTwice(t *testing.T) {
	t.Parallel()
	c := newClaimed()
	c.archive.Fail = func(_, key string) error {
		if key == submitInput().TicketObject() {
			return storage.ErrUnavailable
		}
		return nil
	}
	if job, err := c.submit(t); err != nil || job.Ticket.Job != "job-1" {
		t.Fatalf("got %+v, %v", job, err)
	}
	_, err := c.submit(t)
	if r, _, _ := fault(t, err); r.Accepted != providers.AcceptedUnknown || r.Finished || c.sent.Load() != 1 {
		t.Errorf("got %+v, sent %d times, want unknown and sent once", r, c.sent.Load())
	}
}

func TestReconcileWaitsBeforeItClaims(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		in   activities.ReconcileInput
		fail bool
	}{
		"submit may be under way": {in: activities.ReconcileInput{Until: time.Now().Add(time.Hour)}},
		"archive away":            {in: over(), fail: true},
	}
	for name, test := range cases {
		c := newClaimed()
		if test.fail {
			c.archive.Fail = func(string, string) error { return storage.ErrUnavailable }
		}
		_, err := c.reconcile(t, test.in)
		if r, retried, _ := fault(t, err); r.Accepted != providers.AcceptedUnknown || !retried {
			t.Errorf("%s: got %+v, tried again %v", name, r, retried)
		}
		for _, key := range c.archive.Keys() {
			if strings.HasSuffix(key, ".begun") {
				t.Errorf("%s: it claimed the attempt", name)
			}
		}
	}
}

// TestRefusedSubmitGivesItsClaimBack: a submit that certainly was not accepted releases its claim, so that an operator's reset may repeat
// the attempt.
func TestRefusedSubmitGivesItsClaimBack(t *testing.T) {
	t.Parallel()
	c := newClaimed()
	c.answer = &providers.Fault{Kind: providers.Overloaded, Message: "busy", Accepted: providers.NotAccepted}
	if _, err := c.submit(t); err == nil {
		t.Fatal("accepted")
	}
	c.answer = nil
	if job, err := c.submit(t); err != nil || job.Ticket.Job != "job-1" || c.sent.Load() != 2 {
		t.Errorf("got %+v, %v, sent %d times", job, err, c.sent.Load())
	}
}

// TestClaimRace: a late submit and Reconcile run concurrently. A job that Reconcile reports as not accepted is never sent.
func TestClaimRace(t *testing.T) {
	t.Parallel()
	began, never := 0, 0
	for range 200 {
		c := newClaimed()
		var group sync.WaitGroup
		var found error
		group.Go(func() { _, _ = c.submit(t) })
		group.Go(func() { _, found = c.reconcile(t, over()) })
		group.Wait()
		if found == nil {
			began++
			continue
		}
		r, _, _ := fault(t, found)
		if r.Accepted == providers.NotAccepted {
			never++
			if c.sent.Load() > 0 {
				t.Fatal("sent, and said to be never begun")
			}
			continue
		}
		began++
	}
	t.Logf("%d began, %d never did", began, never)
}

// TestSubmitOfAnIDUsedAgain: what the archive and the upstream know of an earlier task of the same id, whose key was used
// again, is not the new task's.
func TestSubmitOfAnIDUsedAgain(t *testing.T) {
	t.Parallel()
	archive := storagetest.NewMemoryArchive()
	seen := make(map[string]int)
	for _, life := range []string{"one", "two"} {
		in := submitInput()
		in.Incarnation = life
		r := newTestEnv(t, fakeAdapter{submit: func(_ context.Context, _ providers.Target, req providers.VideoRequest) (providers.Ticket, error) {
			seen[req.IdempotencyKey]++
			return providers.Ticket{Job: "job " + life}, nil
		}})
		r.keepIn(archive)
		for range 2 {
			if job, err := do[activities.Job](t, r, r.acts.Submitter.Submit, in); err != nil || job.Ticket.Job != "job "+life {
				t.Errorf("life %q: got %+v, %v", life, job, err)
			}
		}
		job, err := do[activities.Job](t, r, r.acts.Submitter.Reconcile, activities.ReconcileInput{Submit: in, Until: time.Now()})
		if err != nil || job.Ticket.Job != "job "+life {
			t.Errorf("life %q: reconciled to %+v, %v", life, job, err)
		}
	}
	if len(seen) != 2 {
		t.Errorf("submitted under %v, want a key each, once", seen)
	}
}
