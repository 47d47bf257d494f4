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
		{"another channel", 2, []string{"first", "second"}, []providers.VideoStatus{jobFailed(true), done}, workflows.Completed, 2, []string{"first"}},
		{"the same channel where there is no other", 2, []string{"first", "", "first"}, []providers.VideoStatus{jobFailed(true), done}, workflows.Completed, 2, []string{"first"}},
		{"twice at most", 2, []string{"first", "second", "third"}, []providers.VideoStatus{jobFailed(true)}, workflows.Failed, 2, []string{"first"}},
		{"the request's own failure", 2, []string{"first"}, []providers.VideoStatus{jobFailed(false)}, workflows.Failed, 1, nil},
		{"one job is all it may have", 1, []string{"first"}, []providers.VideoStatus{jobFailed(true)}, workflows.Failed, 1, nil},
		{"a task of an older version", 0, []string{"first"}, []providers.VideoStatus{jobFailed(true)}, workflows.Failed, 1, nil},
	} {
		s := newTestEnv(t)
		seen := s.admits(tc.channels...)
		submits := s.submits(nil)
		s.ends(tc.ends...)
		if tc.want == workflows.Completed {
			s.archives()
		}
		in := input()
		in.Revision, in.Limits.Jobs = workflows.RevisionNow, tc.jobs
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
	in.Revision, in.Limits.Jobs, in.Limits.Queue = workflows.RevisionNow, 2, activities.Duration(time.Hour)
	if result := s.play(t, in); result.State != workflows.Completed {
		t.Errorf("got %+v", result)
	}
}
