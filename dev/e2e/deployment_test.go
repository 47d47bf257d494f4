package e2e_test

import (
	"strings"
	"testing"

	enumspb "go.temporal.io/api/enums/v1"
	"go.temporal.io/sdk/client"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// builds are the versions of workers that did steps of a task, in their order.
func builds(t *testing.T, s *stack.Stack, id string) (all []string) {
	t.Helper()
	for _, event := range stack.History(t.Context(), t, s.TemporalClient(), id).GetEvents() {
		if event.GetEventType() != enumspb.EVENT_TYPE_WORKFLOW_TASK_COMPLETED {
			continue
		}
		if build := event.GetWorkflowTaskCompletedEventAttributes().GetDeploymentVersion().GetBuildId(); len(all) == 0 ||
			all[len(all)-1] != build {
			all = append(all, build)
		}
	}
	return all
}

// TestWorkerVersions: an old and a new version of the worker run side by side. The old one has all tasks until the new one is made
// current; then it continues with those that run, and the old one may go.
func TestWorkerVersions(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
	worker := func(build string) *stack.Gateway {
		t.Helper()
		return s.StartWorker(stack.GatewayOptions{More: "worker: {deployment: video, build_id: \"" + build + "\"}\n"})
	}
	handle := s.TemporalClient().WorkerDeploymentClient().GetHandle("video")
	promote := func(build string) {
		t.Helper()
		testwait.Eventually(t, build+" is made current", stack.ReadyTimeout, func() bool {
			_, err := handle.SetCurrentVersion(t.Context(), client.WorkerDeploymentSetCurrentVersionOptions{BuildID: build})
			return err == nil
		})
	}
	old := worker("1.0")
	if command := "temporal worker deployment set-current-version --deployment-name video --build-id 1.0"; !strings.Contains(old.Out.Text(),
		command) {
		t.Errorf("the worker does not say how it gets tasks:\n%s", old.Out.Tail(10))
	}
	promote("1.0")
	first := front.Create(t.Context(), "sora-2-manual", "from the old to the new").ID
	s.Control.Await("video.get", "sora-2-manual", "", 1)

	next := worker("2.0")
	second := front.Create(t.Context(), "sora-2-fast", "with the new").ID
	front.AwaitCompleted(second, stack.TaskTimeout)
	if got := builds(t, s, second); len(got) != 1 || got[0] != "1.0" {
		t.Errorf("before the new version is current its tasks are done by %v", got)
	}
	warned := func(want bool) {
		t.Helper()
		for _, connect := range []bool{false, true} {
			args, warning := []string{"config", "check"}, "workers of build 2.0 get no tasks until it is the current version"
			if connect {
				args, warning = append(args, "--connect"), `The version 2.0 of the worker deployment "video" is not the current one`
			}
			stdout, stderr, err := next.Command(t.Context(), args...)
			if err != nil || strings.Contains(stdout, warning) != want {
				t.Errorf("%v: %v, want the warning: %v\n%s%s", args, err, want, stdout, stderr)
			}
		}
	}
	warned(true)
	promote("2.0")
	warned(false)
	third := front.Create(t.Context(), "sora-2-fast", "of the new").ID
	front.AwaitCompleted(third, stack.TaskTimeout)
	if got := builds(t, s, third); len(got) != 1 || got[0] != "2.0" {
		t.Errorf("tasks of the new version are done by %v", got)
	}
	old.Stop(t)
	s.Control.Drive(s.Control.Job("from the old to the new").ID, "completed", 100)
	front.AwaitCompleted(first, stack.CrashTimeout)
	if got := builds(t, s, first); len(got) != 2 || got[0] != "1.0" || got[1] != "2.0" {
		t.Errorf("the task that both had was done by %v", got)
	}
	s.WantSubmittedOnce(3)

	// It comes back as it was: a roll-back.
	again := worker("1.0")
	promote("1.0")
	fourth := front.Create(t.Context(), "sora-2-fast", "rolled back").ID
	front.AwaitCompleted(fourth, stack.TaskTimeout)
	if got := builds(t, s, fourth); len(got) != 1 || got[0] != "1.0" {
		t.Errorf("after the roll-back tasks are done by %v", got)
	}
	for _, w := range []*stack.Gateway{next, again} {
		if strings.Contains(w.Out.Text(), "nondeterministic") {
			t.Error("a version does not replay the other's histories")
		}
	}
}

// TestWorkerVersionsUnknown: a server that does not distinguish versions is named in the log, and tasks are done all the same.
func TestWorkerVersionsUnknown(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	front := stack.NewTemporalFront(t, s.TemporalAt, stack.FrontOptions{})
	front.Refuse(workflowService+"DescribeWorkerDeployment",
		stack.FrontRefusal{Code: grpcDenied, Message: "Worker Deployment Versions are disabled on this namespace."})
	g := s.StartGateway(stack.GatewayOptions{TemporalAt: front.Address, More: "worker: {deployment: video, build_id: \"1.0\"}\n"})
	g.AwaitCompleted(g.Create(t.Context(), "sora-2-fast", "unversioned").ID, stack.TaskTimeout)
	if !strings.Contains(g.Out.Text(), "worker.deployment has no effect") {
		t.Errorf("the log does not say so:\n%s", g.Out.Tail(20))
	}
}
