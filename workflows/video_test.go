package workflows_test

import (
	"context"
	"log/slog"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"
	"go.temporal.io/sdk/log"
	"go.temporal.io/sdk/temporal"
	"go.temporal.io/sdk/testsuite"
	"go.temporal.io/sdk/worker"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

// testEnv is a workflow under test: time is skipped, activities are scripted.
type testEnv struct {
	*testsuite.TestWorkflowEnvironment
	states  []string
	channel string
	due     time.Time // of the last step
}

func newTestEnv(t *testing.T) *testEnv {
	t.Helper()
	var suite testsuite.WorkflowTestSuite
	suite.SetLogger(log.NewStructuredLogger(slog.New(slog.DiscardHandler)))
	s := &testEnv{TestWorkflowEnvironment: suite.NewTestWorkflowEnvironment()}
	s.SetTestTimeout(time.Minute)
	s.SetWorkerOptions(worker.Options{DeadlockDetectionTimeout: time.Minute}) // the race detector is slow
	workflows.Register(s, &activities.Activities{})
	s.OnUpsertTypedSearchAttributes(mock.Anything).Run(func(args mock.Arguments) {
		attrs, ok := args.Get(0).(temporal.SearchAttributes)
		if !ok {
			return
		}
		if state, ok := attrs.GetKeyword(temporal.NewSearchAttributeKeyKeyword(workflows.AttrState)); ok {
			s.states = append(s.states, state)
		}
		if channel, ok := attrs.GetKeyword(temporal.NewSearchAttributeKeyKeyword(workflows.AttrChannel)); ok {
			s.channel = channel
		}
		if text, ok := attrs.GetKeyword(temporal.NewSearchAttributeKeyKeyword(workflows.AttrDue)); ok {
			s.due, _ = time.Parse(time.RFC3339, text)
		}
	}).Return(nil).Maybe()
	s.OnUpsertMemo(mock.Anything).Return(nil).Maybe()
	return s
}

const retention, queued = 72 * time.Hour, 24 * time.Hour

var limits = workflows.Limits{
	Queue: activities.Duration(queued), Deadline: activities.Duration(6 * time.Hour),
	Archive: activities.Duration(24 * time.Hour), Retention: activities.Duration(retention),
}

func input() workflows.Input {
	return workflows.Input{
		Revision: workflows.Revision, TaskID: "video_test", Token: "demo", Group: "default", Format: providers.OpenAI, Model: "sora-2",
		Request: &providers.VideoRequest{Model: "sora-2", Prompt: "a cat"}, Limits: limits,
	}
}

// run plays the task and returns its result, which must not be an error.
func (s *testEnv) run(t *testing.T) workflows.Result {
	t.Helper()
	return s.play(t, input())
}

func (s *testEnv) play(t *testing.T, in workflows.Input) workflows.Result {
	t.Helper()
	s.ExecuteWorkflow(workflows.Video, in)
	if !s.IsWorkflowCompleted() {
		t.Fatal("the workflow did not end")
	}
	if err := s.GetWorkflowError(); err != nil {
		t.Fatalf("the workflow failed, which is a bug: %v", err)
	}
	var result workflows.Result
	if err := s.GetWorkflowResult(&result); err != nil {
		t.Fatal(err)
	}
	s.AssertExpectations(t)
	return result
}

func assignment(channel string) activities.Assignment {
	return activities.Assignment{Channel: channel, Vendor: "openai", Key: "fp-" + channel, Model: "sora-2"}
}

// admits scripts the answers of Admit; the last repeats. An empty name means that no channel is free.
func (s *testEnv) admits(channels ...string) *[]activities.AdmitInput {
	var seen []activities.AdmitInput
	s.OnActivity("Admit", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.AdmitInput) (activities.Admission,
		error,
	) {
		name := channels[min(len(seen), len(channels)-1)]
		seen = append(seen, in)
		if name == "" {
			return activities.Admission{Refused: &activities.Record{Kind: providers.Overloaded, Message: "none now"}}, nil
		}
		to := assignment(name)
		return activities.Admission{Assignment: &to}, nil
	})
	return &seen
}

// submits scripts the answers of Submit: nil accepts.
func (s *testEnv) submits(faults ...*activities.Record) *int {
	n := new(int)
	answer := func(_ context.Context, in activities.SubmitInput) (activities.Job, error) {
		fault := faults[min(*n, len(faults)-1)]
		*n++
		if fault != nil {
			return activities.Job{}, faultError(*fault)
		}
		return s.job(in), nil
	}
	s.OnActivity("Submit", mock.Anything, mock.Anything).Return(answer).Maybe()
	return n
}

func (s *testEnv) job(in activities.SubmitInput) activities.Job {
	return activities.Job{
		TaskID: in.TaskID, Model: "sora-2", Assignment: in.Assignment,
		Ticket: providers.Ticket{Job: "job-" + in.Assignment.Channel}, AcceptedAt: s.Now(),
	}
}

// faultError is a final fault as package activities makes it.
func faultError(r activities.Record) error {
	return temporal.NewApplicationErrorWithOptions(r.Message, "Fault", temporal.ApplicationErrorOptions{NonRetryable: true, Details: []any{r}})
}

func (s *testEnv) polls(status providers.VideoStatus, err error) {
	s.OnActivity("Poll", mock.Anything, mock.Anything).Return(status, err)
}

var done = providers.VideoStatus{State: providers.JobDone, Progress: 100, Outputs: 1, Seconds: "8", Width: 1280, Height: 720}

func (s *testEnv) archives() {
	s.OnActivity("Archive", mock.Anything, mock.Anything).Return([]activities.Output{{Object: "outputs/x/0.mp4", Size: 3, SHA256: "ab"}}, nil)
}

func TestVideoCompletes(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.admits("main")
	s.submits(nil)
	s.polls(done, nil)
	s.archives()
	got := s.run(t)
	if got.State != workflows.Completed || got.Progress != 100 || len(got.Outputs) != 1 || got.Seconds != "8" {
		t.Errorf("result = %+v", got)
	}
	if want := got.CompletedAt.Add(retention); !got.ExpiresAt.Equal(want) {
		t.Errorf("expires at %v, want completion + retention = %v", got.ExpiresAt, want)
	}
	want := []string{"submitting", "polling", "archiving", "completed"}
	if len(s.states) != len(want) {
		t.Fatalf("states = %v, want %v", s.states, want)
	}
	for i := range want {
		if s.states[i] != want[i] {
			t.Errorf("states = %v, want %v", s.states, want)
		}
	}
}

func TestVideoFallsOver(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	seen := s.admits("first", "second", "third")
	submits := s.submits(
		&activities.Record{Kind: providers.RateLimited, Message: "busy", Accepted: providers.NotAccepted, Retryable: true},
		&activities.Record{Kind: providers.Upstream, Message: "key refused", Accepted: providers.NotAccepted, Retryable: true, KeyOnly: true},
		nil,
	)
	s.polls(done, nil)
	s.archives()
	if got := s.run(t); got.State != workflows.Completed {
		t.Errorf("result = %+v", got)
	}
	if *submits != 3 {
		t.Errorf("%d submits, want 3", *submits)
	}
	last := (*seen)[2]
	if len(last.Except) != 1 || last.Except[0] != "first" {
		t.Errorf("third admit excepts channels %v, want the one that was busy", last.Except)
	}
	if len(last.ExceptKeys) != 1 || last.ExceptKeys[0] != (providers.KeyRef{Channel: "second", Fingerprint: "fp-second"}) {
		t.Errorf("third admit excepts keys %v, want the refused one", last.ExceptKeys)
	}
}

func TestVideoWaitsForAChannel(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	seen := s.admits("", "main", "", "main")
	s.submits(&activities.Record{Kind: providers.Overloaded, Message: "full", Accepted: providers.NotAccepted, Retryable: true}, nil)
	s.polls(done, nil)
	s.archives()
	if got := s.run(t); got.State != workflows.Completed {
		t.Errorf("result = %+v", got)
	}
	if after := (*seen)[3]; len(after.Except) != 0 {
		t.Errorf("after a wait the channels %v are still excepted", after.Except)
	}
}

func TestVideoQueueLimit(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.admits("")
	start := s.Now()
	in := input()
	in.Limits.Queue = activities.Duration(time.Hour)
	got := s.play(t, in)
	if got.State != workflows.Failed || got.Failure.Code != workflows.CodeQueueTimeout {
		t.Errorf("result = %+v", got)
	}
	if waited := got.CompletedAt.Sub(start); waited < time.Hour || waited > time.Hour+time.Minute {
		t.Errorf("waited %v, want about an hour", waited)
	}
}

// TestVideoSubmitOnce: whatever is not surely refused is never followed by another submit.
func TestVideoSubmitOnce(t *testing.T) {
	t.Parallel()
	unknown := &activities.Record{Kind: providers.Upstream, Message: "500", Finished: true, Retryable: true}
	cases := map[string]struct {
		submit    *activities.Record
		reconcile *activities.Record // nil: not asked
		found     bool
		code      string
		submits   int
	}{
		"refused for good": {submit: &activities.Record{
			Kind: providers.Invalid, Message: "bad prompt", Accepted: providers.NotAccepted,
			Code: "moderation_blocked",
		}, code: providers.FailedContent, submits: 1},
		"refused without a code": {
			submit: &activities.Record{Kind: providers.Invalid, Message: "bad", Accepted: providers.NotAccepted},
			code:   providers.FailedInput, submits: 1,
		},
		"unknown, no lookup": {
			submit: unknown, reconcile: &activities.Record{Kind: providers.Upstream, Message: "no look-up"},
			code: workflows.CodeUpstreamUnknown, submits: 1,
		},
		"unknown, ticket found": {submit: unknown, found: true, submits: 1},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			s.admits("main")
			submits := s.submits(c.submit)
			if c.reconcile != nil || c.found {
				s.OnActivity("Reconcile", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.ReconcileInput) (activities.Job,
					error,
				) {
					if c.found {
						return s.job(in.Submit), nil
					}
					return activities.Job{}, faultError(*c.reconcile)
				})
			}
			if c.found {
				s.polls(done, nil)
				s.archives()
			}
			got := s.run(t)
			switch {
			case c.found && got.State != workflows.Completed:
				t.Errorf("result = %+v, want completed", got)
			case !c.found && (got.Failure == nil || got.Failure.Code != c.code):
				t.Errorf("result = %+v, want code %s", got, c.code)
			}
			if *submits != c.submits {
				t.Errorf("%d submits, want %d", *submits, c.submits)
			}
		})
	}
}

func TestVideoSubmitsAgainWhenTheVendorNeverHadIt(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.admits("main")
	submits := s.submits(&activities.Record{Kind: providers.Upstream, Message: "500", Finished: true}, nil)
	s.OnActivity("Reconcile", mock.Anything, mock.Anything).Return(activities.Job{}, faultError(activities.Record{
		Kind: providers.NotFound, Message: "no such job", Accepted: providers.NotAccepted,
	}))
	s.polls(done, nil)
	s.archives()
	if got := s.run(t); got.State != workflows.Completed {
		t.Errorf("result = %+v", got)
	}
	if *submits != 2 {
		t.Errorf("%d submits, want 2", *submits)
	}
}

// TestVideoLostWorker: a submit whose worker is lost may still be in progress, so the search for its ticket lasts as long as a submit may.
func TestVideoLostWorker(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.admits("main")
	s.OnActivity("Submit", mock.Anything, mock.Anything).Return(activities.Job{}, temporal.NewHeartbeatTimeoutError())
	var until, asked time.Time
	s.OnActivity("Reconcile", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.ReconcileInput) (activities.Job,
		error,
	) {
		until, asked = in.Until, s.Now()
		return s.job(in.Submit), nil
	})
	s.polls(done, nil)
	s.archives()
	if got := s.run(t); got.State != workflows.Completed {
		t.Errorf("result = %+v", got)
	}
	if left := until.Sub(asked); left < activities.SubmitTimeout {
		t.Errorf("the look lasts %v, want at least the submit's own timeout %v", left, activities.SubmitTimeout)
	}
}

func TestVideoPollEnds(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		status  providers.VideoStatus
		err     error
		code    string
		cancels bool
	}{
		"job failed": {
			status: providers.VideoStatus{State: providers.JobFailed, Failure: &providers.VideoFailure{Code: "content_policy", Message: "no"}},
			code:   "content_policy",
		},
		"job failed without a word": {status: providers.VideoStatus{State: providers.JobFailed}, code: workflows.CodeInternal},
		"deadline": {
			err:  faultError(activities.Record{Kind: providers.Timeout, Message: "late", Deadline: true}),
			code: workflows.CodeDeadlineExceeded, cancels: true,
		},
		"channel gone": {
			err:  faultError(activities.Record{Kind: providers.Internal, Message: "gone", Gone: true}),
			code: workflows.CodeChannelGone,
		},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			s.admits("main")
			s.submits(nil)
			s.polls(c.status, c.err)
			if c.cancels {
				s.OnActivity("Cancel", mock.Anything, mock.Anything).Return(nil).Once()
			}
			got := s.run(t)
			if got.State != workflows.Failed || got.Failure.Code != c.code {
				t.Errorf("result = %+v, want code %s", got, c.code)
			}
		})
	}
}

func TestVideoArchiveFails(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.admits("main")
	s.submits(nil)
	s.polls(done, nil)
	s.OnActivity("Archive", mock.Anything, mock.Anything).Return(nil,
		faultError(activities.Record{Kind: providers.TooLarge, Message: "too large"}))
	s.OnActivity("Discard", mock.Anything, mock.Anything).Return(nil).Once()
	got := s.run(t)
	if got.State != workflows.Failed || got.Failure.Code != workflows.CodeArchiveFailed || got.Progress == 100 {
		t.Errorf("result = %+v", got)
	}
}

func TestVideoCancelled(t *testing.T) {
	t.Parallel()
	cases := map[string]struct {
		setup    func(s *testEnv)
		progress int
	}{
		"while waiting for a channel": {func(s *testEnv) {
			s.admits("")
			s.RegisterDelayedCallback(s.CancelWorkflow, 3*time.Second)
		}, 0},
		"during the submit": {func(s *testEnv) {
			s.admits("main")
			s.OnActivity("Submit", mock.Anything, mock.Anything).After(10 * time.Second).Return(func(_ context.Context,
				in activities.SubmitInput,
			) (activities.Job, error) {
				return s.job(in), nil
			})
			s.RegisterDelayedCallback(s.CancelWorkflow, 3*time.Second)
			s.OnActivity("Cancel", mock.Anything, mock.Anything).Return(nil).Once() // what was paid for is called off
		}, 0},
		"while polling": {func(s *testEnv) {
			s.admits("main")
			s.submits(nil)
			s.OnActivity("Poll", mock.Anything, mock.Anything).After(time.Hour).Return(done, nil)
			s.RegisterDelayedCallback(s.CancelWorkflow, time.Minute)
			s.OnActivity("Cancel", mock.Anything, mock.Anything).Return(nil).Once()
		}, 0},
		"while archiving": {func(s *testEnv) {
			s.admits("main")
			s.submits(nil)
			s.polls(done, nil)
			s.OnActivity("Archive", mock.Anything, mock.Anything).After(time.Hour).Return(nil, nil)
			s.RegisterDelayedCallback(s.CancelWorkflow, time.Minute)
			s.OnActivity("Discard", mock.Anything, mock.Anything).Return(nil).Once()
		}, 99},
	}
	for name, c := range cases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			c.setup(s)
			got := s.run(t)
			if got.State != workflows.Failed || got.Failure.Code != workflows.CodeCancelled || got.Progress != c.progress {
				t.Errorf("result = %+v, want cancelled", got)
			}
		})
	}
}
