package e2e_test

import (
	"slices"
	"strings"
	"syscall"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	workflowpb "go.temporal.io/api/workflow/v1"

	"modelrelay/activities"
	"modelrelay/cmd/gateway/e2e/stack"
	"modelrelay/internal/testwait"
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
	s := stack.NewSplit(t, nil)
	_ = s.S3.Cmd.Process.Signal(syscall.SIGSTOP) // the submit gets as far as the archive
	video := s.Front.Create(t.Context(), "sora-2-fast", "never begun")
	temporal := s.TemporalClient()
	testwait.Eventually(t, "the submit is started", stack.ReadyTimeout, func() bool {
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
	s.Worker.Kill()
	_ = s.S3.Cmd.Process.Signal(syscall.SIGCONT)
	for object, err := range s.Archive().List(t.Context(), activities.AttemptsPrefix(video.ID)) {
		t.Fatalf("the attempt was claimed: %s, %v", object.Key, err)
	}
	s.RestartWorker()
	s.Front.AwaitCompleted(video.ID, stack.CrashTimeout)
	s.WantSubmittedOnce(1)
}

// TestHistoriesOfOutages: a create goes on while the archive is away, its submit waits for it.
func TestHistoriesOfOutages(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	g := s.StartGateway(stack.GatewayOptions{})
	s.S3.Kill()
	video := g.Create(t.Context(), "sora-2-fast", "patience")
	temporal := s.TemporalClient()
	testwait.Eventually(t, "the task waits", stack.ReadyTimeout, func() bool { // one attempt is behind it
		about, err := temporal.DescribeWorkflowExecution(t.Context(), video.ID, "")
		if err != nil {
			t.Fatal(err)
		}
		return slices.ContainsFunc(about.GetPendingActivities(), func(act *workflowpb.PendingActivityInfo) bool {
			return act.GetActivityType().GetName() == "AwaitArchive" && act.GetAttempt() > 1
		})
	})
	if len(s.Control.Jobs()) != 0 {
		t.Error("it was submitted while its ticket could not be kept")
	}
	s.StartS3()
	s.S3.AwaitReady(t)
	g.AwaitCompleted(video.ID, stack.CrashTimeout)
	s.WantSubmittedOnce(1)
	record(s, "archive-away", video.ID)
}
