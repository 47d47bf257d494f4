package workflows_test

import (
	"context"
	"slices"
	"testing"
	"time"

	"github.com/stretchr/testify/mock"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
)

// ends scripts how the task's jobs end, one after the other; the last repeats.
func (s *testEnv) ends(statuses ...providers.VideoStatus) *int {
	n := new(int)
	s.OnActivity("Poll", mock.Anything, mock.Anything).Return(func(context.Context, activities.PollInput) (providers.VideoStatus, error) {
		status := statuses[min(*n, len(statuses)-1)]
		*n++
		return status, nil
	})
	return n
}

func jobFailed(retryable bool) providers.VideoStatus {
	return providers.VideoStatus{State: providers.JobFailed, Progress: 40, Failure: &providers.VideoFailure{
		Code: providers.FailedVendor, Message: "capacity: no worker", Retryable: retryable,
	}}
}

// TestVideoTriesFailedJobsElsewhere: a job that fails by its vendor's own fault is followed by one at another channel, so many
// times as the task may; other failures end it.
func TestVideoTriesFailedJobsElsewhere(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name     string
		jobs     int
		channels []string // as Admit gives them
		ends     []providers.VideoStatus
		want     workflows.State
		submits  int
		excepts  []string // at the second Admit
	}{
		{
			"another channel", 2,
			[]string{"first", "second"},
			[]providers.VideoStatus{jobFailed(true), done},
			workflows.Completed, 2,
			[]string{"first"},
		},
		{
			"the same channel where there is no other", 2,
			[]string{"first", "", "first"},
			[]providers.VideoStatus{jobFailed(true), done},
			workflows.Completed, 2,
			[]string{"first"},
		},
		{
			"twice at most", 2,
			[]string{"first", "second", "third"},
			[]providers.VideoStatus{jobFailed(true)},
			workflows.Failed, 2,
			[]string{"first"},
		},
		{"the request's own failure", 2, []string{"first"}, []providers.VideoStatus{jobFailed(false)}, workflows.Failed, 1, nil},
		{"one job is all it may have", 1, []string{"first"}, []providers.VideoStatus{jobFailed(true)}, workflows.Failed, 1, nil},
		{"no number of jobs", 0, []string{"first"}, []providers.VideoStatus{jobFailed(true)}, workflows.Failed, 1, nil},
	} {
		s := newTestEnv(t)
		seen := s.admits(tc.channels...)
		submits := s.submits(nil)
		s.ends(tc.ends...)
		if tc.want == workflows.Completed {
			s.archives()
		}
		in := input()
		in.Limits.Jobs = tc.jobs
		s.OnActivity("Settle", mock.Anything, mock.Anything).Return(nil)
		result := s.play(t, in)
		if result.State != tc.want || *submits != tc.submits {
			t.Errorf("%s: got %s after %d submits, want %s after %d: %+v", tc.name, result.State, *submits, tc.want, tc.submits, result.Failure)
		}
		if tc.submits > 1 && !slices.Equal((*seen)[1].Except, tc.excepts) {
			t.Errorf("%s: the second choice excepts %v, want %v", tc.name, (*seen)[1].Except, tc.excepts)
		}
		if tc.submits > 1 && (len(result.Attempts) != 2 || result.Attempts[0].Fault == nil || result.Attempts[0].Job == "") {
			t.Errorf("%s: the story does not say what became of the first job: %+v", tc.name, result.Attempts)
		}
		if tc.want == workflows.Failed && (result.Failure == nil || result.Failure.Code != providers.FailedVendor) {
			t.Errorf("%s: got failure %+v", tc.name, result.Failure)
		}
	}
}

// TestVideoQueuesAnewAfterAFailedJob: the time that the first job took is not taken from the second's in the queue.
func TestVideoQueuesAnewAfterAFailedJob(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	s.admits("first", "", "second")
	s.submits(nil)
	n := 0
	s.OnActivity("Poll", mock.Anything, mock.Anything).Return(func(context.Context, activities.PollInput) (providers.VideoStatus, error) {
		if n++; n > 1 {
			return done, nil
		}
		return jobFailed(true), nil
	}).After(2 * time.Hour)
	s.archives()
	s.OnActivity("Settle", mock.Anything, mock.Anything).Return(nil)
	in := input()
	in.Limits.Jobs, in.Limits.Queue = 2, activities.Duration(time.Hour)
	if result := s.play(t, in); result.State != workflows.Completed {
		t.Errorf("got %+v", result)
	}
}

// TestVideoTriesModelElsewhere: a channel that lacks the model is excluded for the rest of the task. The task fails at once if no
// other channel has the model.
func TestVideoTriesModelElsewhere(t *testing.T) {
	t.Parallel()
	lacks := &activities.Record{
		Kind: providers.ModelNotFound, Message: "No such model.", Status: 404, Accepted: providers.NotAccepted,
		NoModel: true,
	}
	keyLacks := &activities.Record{
		Kind: providers.NotFound, Message: "No such model.", Accepted: providers.NotAccepted, KeyOnly: true,
		NoModel: true,
	}
	busy := &activities.Record{Kind: providers.RateLimited, Message: "Slowly.", Accepted: providers.NotAccepted, Retryable: true}
	for _, tc := range []struct {
		name     string
		channels []string // as Admit gives them
		faults   []*activities.Record
		pinned   bool
		want     workflows.State
		submits  int
		excepts  [][]string // at each Admit
	}{
		{
			"another channel has it",
			[]string{"first", "second"},
			[]*activities.Record{lacks, nil},
			false, workflows.Completed, 2,
			[][]string{nil, {"first"}},
		},
		{"no other channel", []string{"first", ""}, []*activities.Record{lacks}, false, workflows.Failed, 1, [][]string{nil, {"first"}}},
		{
			"none has it",
			[]string{"first", "second", ""},
			[]*activities.Record{lacks},
			false, workflows.Failed, 2,
			[][]string{nil, {"first"}, {"first", "second"}},
		},
		{
			"the other is busy",
			[]string{"first", "second", "", "second"},
			[]*activities.Record{lacks, busy, nil},
			false, workflows.Completed, 3,
			[][]string{nil, {"first"}, {"first", "second"}, {"first"}},
		},
		{
			"a key alone lacks it",
			[]string{"first", "", "first"},
			[]*activities.Record{keyLacks, nil},
			false, workflows.Completed, 2,
			[][]string{nil, nil, nil},
		},
		{"a variation of a video there", []string{"first"}, []*activities.Record{lacks}, true, workflows.Failed, 1, [][]string{nil}},
	} {
		t.Run(tc.name, func(t *testing.T) {
			t.Parallel()
			s := newTestEnv(t)
			seen := s.admits(tc.channels...)
			submits := s.submits(tc.faults...)
			if tc.want == workflows.Completed {
				s.polls(done, nil)
				s.archives()
			}
			s.OnActivity("Settle", mock.Anything, mock.Anything).Return(nil)
			in := input()
			if tc.pinned {
				pin := assignment("first")
				in.Pin = &pin
			}
			began := s.Now()
			result := s.play(t, in)
			if result.State != tc.want || *submits != tc.submits {
				t.Errorf("got %s after %d submits, want %s after %d: %+v", result.State, *submits, tc.want, tc.submits, result.Failure)
			}
			if tc.want == workflows.Failed && (result.Failure == nil || result.Failure.Message != "No such model." ||
				s.Now().Sub(began) > time.Minute) {
				t.Errorf("got failure %+v after %s", result.Failure, s.Now().Sub(began))
			}
			var excepts [][]string
			for _, one := range *seen {
				excepts = append(excepts, one.Except)
			}
			if !slices.EqualFunc(excepts, tc.excepts, slices.Equal) {
				t.Errorf("got excepts %v, want %v", excepts, tc.excepts)
			}
		})
	}
}

// TestVideoLacksModelInLine: a channel that lacks the model stays excluded while the task waits for a slot and after that.
func TestVideoLacksModelInLine(t *testing.T) {
	t.Parallel()
	s := newTestEnv(t)
	var excepts [][]string
	s.OnActivity("Admit", mock.Anything, mock.Anything).Return(func(_ context.Context, in activities.AdmitInput) (activities.Admission,
		error,
	) {
		excepts = append(excepts, in.Except)
		if len(excepts) == 2 {
			return activities.Admission{Full: &activities.Waiting{Position: 1, Channel: "second", Channels: []string{"second"}}}, nil
		}
		to := assignment([]string{"first", "", "second"}[min(len(excepts)-1, 2)])
		return activities.Admission{Assignment: &to}, nil
	})
	awaits := s.awaits(0, "second")
	s.submits(
		&activities.Record{
			Kind: providers.ModelNotFound, Message: "No such model.", Accepted: providers.NotAccepted,
			NoModel: true,
		},
		&activities.Record{Kind: providers.Overloaded, Message: "Later.", Accepted: providers.NotAccepted, Retryable: true, KeyOnly: true},
		nil,
	)
	s.polls(done, nil)
	s.archives()
	s.settles()
	if got := s.play(t, weighted()); got.State != workflows.Completed {
		t.Errorf("got %+v", got)
	}
	if len(*awaits) != 1 || !slices.Equal((*awaits)[0].Admit.Lacking, []string{"first"}) ||
		!slices.Equal((*awaits)[0].Admit.Except, []string{"first"}) {
		t.Errorf("stood in line with %+v", *awaits)
	}
	if len(excepts) != 3 || !slices.Equal(excepts[2], []string{"first"}) {
		t.Errorf("excepted %v, want the first channel left out after the line", excepts)
	}
}
