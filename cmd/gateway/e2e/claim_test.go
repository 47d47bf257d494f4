package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"modelrelay/activities"
	"modelrelay/storage/archive"
)

// tickets are the archive keys of a task's tickets.
func tickets(t *testing.T, archive *archive.Store, id string) []string {
	t.Helper()
	var keys []string
	for object, err := range archive.List(t.Context(), activities.AttemptsPrefix(id)) {
		if err != nil {
			t.Fatalf("list attempts: %v", err)
		}
		if !strings.HasSuffix(object.Key, ".begun") {
			keys = append(keys, object.Key)
		}
	}
	return keys
}

// TestKillWorkerBeforeSubmit: Temporal knows the submit as started, its worker died before anything was sent. Nobody
// would know that without the claim; with it the task is submitted after all.
func TestKillWorkerBeforeSubmit(t *testing.T) {
	t.Parallel()
	s := newSplit(t, nil)
	_ = s.s3.cmd.Process.Signal(syscall.SIGSTOP) // the submit gets as far as the archive
	video := s.front.create(t.Context(), "sora-2-fast", "never begun")
	temporal := s.temporalClient()
	eventually(t, "the submit is started", readyTimeout, func() bool {
		about, err := temporal.DescribeWorkflowExecution(t.Context(), video.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		for _, act := range about.GetPendingActivities() {
			if act.GetActivityType().GetName() == "SubmitClaimed" && act.GetState() == enumspb.PENDING_ACTIVITY_STATE_STARTED {
				return true
			}
		}
		return false
	})
	s.worker.kill()
	_ = s.s3.cmd.Process.Signal(syscall.SIGCONT)
	for object, err := range s.archive().List(t.Context(), activities.AttemptsPrefix(video.ID)) {
		t.Fatalf("the attempt was claimed: %s, %v", object.Key, err)
	}
	s.restartWorker()
	s.front.completed(video.ID, crashTimeout)
	s.submittedOnce(1)
}

// TestHistoriesOfOutages: a create goes on while the archive is away, its submit waits for it.
func TestHistoriesOfOutages(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	g := s.gateway(gatewayOptions{})
	s.s3.kill()
	video := g.create(t.Context(), "sora-2-fast", "patience")
	temporal := s.temporalClient()
	eventually(t, "the task waits", readyTimeout, func() bool { // one attempt is behind it
		about, err := temporal.DescribeWorkflowExecution(t.Context(), video.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(about.GetPendingActivities(), func(act *workflowpb.PendingActivityInfo) bool {
			return act.GetActivityType().GetName() == "AwaitArchive" && act.GetAttempt() > 1
		})
	})
	if len(s.control.jobs()) != 0 {
		t.Error("it was submitted while its ticket could not be kept")
	}
	s.startStore()
	s.s3.ready(t)
	g.completed(video.ID, crashTimeout)
	s.submittedOnce(1)
	s.record("archive-away", video.ID)
}
