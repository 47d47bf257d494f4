package e2e_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"go.temporal.io/api/workflowservice/v1"

	"modelrelay/workflows"
)

// crashTimeout is how long a task may take after a kill: heartbeat and submit time-outs pass first.
const crashTimeout = 5 * time.Minute

// split is a stack with a front and a worker apart, each of which can be killed alone. The worker reaches Temporal
// through a gate.
type split struct {
	*stack
	front, worker *gateway
	gate          *gate
}

func newSplit(t *testing.T, channels func(*stack) string) *split {
	t.Helper()
	s := &split{stack: newStack(t)}
	s.gate = newGate(t, s.temporalAt)
	var list string
	if channels != nil {
		list = channels(s.stack)
	}
	s.front = s.gateway(gatewayOptions{args: []string{"serve", "--worker=false"}, channels: list})
	s.worker = s.gateway(gatewayOptions{args: []string{"worker"}, temporalAt: s.gate.addr(), channels: list})
	return s
}

// restartWorker replaces the worker that was killed.
func (s *split) restartWorker() {
	s.t.Helper()
	s.gate.release()
	s.worker.start()
}

// TestOperatorWithoutWorker: an operator who ends a task while no worker is there reads how it stands, and that it has not
// ended; it does when one comes.
func TestOperatorWithoutWorker(t *testing.T) {
	t.Parallel()
	s := newSplit(t, nil)
	video := s.front.create(t.Context(), "sora-2-manual", "nobody there")
	s.control.wait("video.get", "sora-2-manual", "", 1)
	s.worker.kill()
	for _, args := range [][]string{{"fail", "--reason", "lost"}, {"cancel", "--operator"}} {
		stdout, stderr, err := s.front.operate(t.Context(), slices.Concat([]string{"video"}, args, []string{"--wait", "1s", "--json", video.ID})...)
		var said struct{ ID, State string }
		if json.Unmarshal([]byte(stdout), &said) != nil || said.ID != video.ID || said.State != "in_progress" && said.State != "queued" {
			t.Errorf("%s: printed %q, want how it stands", args[0], stdout)
		}
		if exit, failed := errors.AsType[*exec.ExitError](err); !failed || exit.ExitCode() != 1 || !strings.Contains(stderr, "has not ended after 1s") {
			t.Errorf("%s: got %v, %s; want exit code 1 and the reason", args[0], err, stderr)
		}
	}
	s.restartWorker()
	if ended := s.front.end(video.ID, crashTimeout); ended.Error.Code != workflows.CodeFailedByOperator {
		t.Errorf("ended as %s %s", ended.Status, ended.Error.Code)
	}
}

// TestKillWorkerDuringSubmit: the upstream took the job, its answer died with the worker. Nobody can tell, so the task
// says so and is not submitted again.
func TestKillWorkerDuringSubmit(t *testing.T) {
	t.Parallel()
	s := newSplit(t, nil)
	s.control.rule(map[string]any{"operation": "video.create", "action": "hang", "accept": true})
	video := s.front.create(t.Context(), "sora-2-fast", "lost answer")
	s.control.wait("video.create", "sora-2-fast", "accepted", 1)
	s.worker.kill()
	s.control.clear()
	s.restartWorker()
	ended := s.front.end(video.ID, crashTimeout)
	if ended.Status != openai.VideoStatusFailed || ended.Error.Code != workflows.CodeUpstreamUnknown {
		t.Errorf("ended as %s %s, want %s", ended.Status, ended.Error.Code, workflows.CodeUpstreamUnknown)
	}
	s.submittedOnce(1)
}

// TestKillWorkerAfterSubmit: the ticket is in the archive, but Temporal never heard of it.
func TestKillWorkerAfterSubmit(t *testing.T) {
	t.Parallel()
	s := newSplit(t, nil)
	s.control.rule(map[string]any{"operation": "video.create", "action": "hang", "accept": true})
	video := s.front.create(t.Context(), "sora-2-fast", "found ticket")
	s.control.wait("video.create", "sora-2-fast", "accepted", 1)
	s.gate.hold(true)
	s.control.clear()
	archive := s.archive()
	eventually(t, "the ticket is in the archive", readyTimeout, func() bool {
		return len(tickets(t, archive, video.ID)) == 1
	})
	s.worker.kill()
	s.restartWorker()
	s.front.completed(video.ID, crashTimeout)
	s.submittedOnce(1)
}

func TestKillWorkerDuringPoll(t *testing.T) {
	t.Parallel()
	s := newSplit(t, nil)
	video := s.front.create(t.Context(), "sora-2-manual", "polled")
	s.control.wait("video.get", "sora-2-manual", "", 2)
	s.worker.kill()
	s.control.drive(s.control.job("polled").ID, "completed", 100)
	s.restartWorker()
	s.front.completed(video.ID, crashTimeout)
	s.submittedOnce(1)
}

func TestKillWorkerDuringArchive(t *testing.T) {
	t.Parallel()
	s := newSplit(t, nil)
	s.control.rule(map[string]any{"operation": "video.content", "action": "stall", "bytes": 1000, "times": 1})
	video := s.front.create(t.Context(), "sora-2-fast", "archived")
	s.control.wait("video.content", "sora-2-fast", "", 1)
	s.worker.kill()
	s.control.clear()
	s.restartWorker()
	s.front.completed(video.ID, crashTimeout)
	s.submittedOnce(1)
}

// TestKillGatewayDuringCreate: the workflow was started, the client never heard of it and asks again, once by its
// idempotency key and once as its SDK does by itself.
func TestKillGatewayDuringCreate(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]option.RequestOption{
		"with a key":        {option.WithHeader("Idempotency-Key", "k1")},
		"the SDK by itself": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := newStack(t)
			worker := s.gateway(gatewayOptions{args: []string{"worker"}})
			gate := newGate(t, s.temporalAt)
			front := s.gateway(gatewayOptions{args: []string{"serve", "--worker=false"}, temporalAt: gate.addr()})

			gate.hold(false) // Temporal hears the front, the front hears nothing
			sdk := front.sdk(option.WithMaxRetries(8))
			var (
				video *openai.Video
				err   error
				group sync.WaitGroup
			)
			group.Go(func() {
				video, err = sdk.Videos.New(t.Context(), openai.VideoNewParams{Prompt: "asked twice", Model: "sora-2-fast"}, options...)
			})
			s.awaitTasks(1)
			front.kill()
			gate.release()
			front.start()
			group.Wait()
			if err != nil {
				t.Fatalf("create: %v", err)
			}
			front.completed(video.ID, crashTimeout)
			s.submittedOnce(1)
			if n := s.tasks(t.Context()); n != 1 {
				t.Errorf("%d tasks, want 1", n)
			}
			worker.stop(t)
		})
	}
}

// TestRestartTemporal kills the server while tasks stand in every phase.
func TestRestartTemporal(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	g := s.gateway(gatewayOptions{})
	const each = 3
	var ids []string
	s.control.rule(map[string]any{"operation": "video.content", "action": "stall", "bytes": 1000, "times": each})
	for i := range each {
		ids = append(ids, g.create(t.Context(), "sora-2-fast", fmt.Sprint("archiving ", i)).ID)
	}
	s.control.wait("video.content", "sora-2-fast", "", each)
	for i := range each {
		ids = append(ids, g.create(t.Context(), "sora-2-manual", fmt.Sprint("polling ", i)).ID)
	}
	s.control.wait("video.get", "sora-2-manual", "", each)
	s.control.rule(map[string]any{"operation": "video.create", "model": "sora-2-pro", "action": "hang", "accept": true})
	for i := range each {
		ids = append(ids, g.create(t.Context(), "sora-2-pro", fmt.Sprint("submitting ", i)).ID)
	}
	s.control.wait("video.create", "sora-2-pro", "accepted", each)

	s.temporal.kill()
	s.control.clear()
	sdk := g.sdk(option.WithMaxRetries(0))
	_, err := sdk.Videos.New(t.Context(), openai.VideoNewParams{Prompt: "while away", Model: "sora-2-fast"})
	if status := statusOf(err); status != http.StatusServiceUnavailable {
		t.Errorf("a create while Temporal is away: %v, want 503", err)
	}
	if _, err := sdk.Models.List(t.Context()); err != nil {
		t.Errorf("the relay side fails while Temporal is away: %v", err)
	}
	s.startTemporal()
	s.temporal.ready(t)
	for i := range each {
		s.control.drive(s.control.job(fmt.Sprint("polling ", i)).ID, "completed", 100)
	}
	for _, id := range ids {
		g.completed(id, crashTimeout)
	}
	s.submittedOnce(len(ids))
}

// submittedOnce compares the upstream's own count of submissions with the number of tasks.
func (s *stack) submittedOnce(tasks int) {
	s.t.Helper()
	submissions := 0
	for _, j := range s.control.jobs() {
		submissions += j.Submissions
	}
	if submissions != tasks {
		s.t.Errorf("the upstream counts %d submissions for %d tasks", submissions, tasks)
	}
}

// tasks counts the executions Temporal knows.
func (s *stack) tasks(ctx context.Context) int {
	s.t.Helper()
	count, err := s.temporalClient().CountWorkflow(ctx, &workflowservice.CountWorkflowExecutionsRequest{Query: "WorkflowType = 'Video'"})
	if err != nil {
		s.t.Fatal(err)
	}
	return int(count.GetCount())
}

func (s *stack) awaitTasks(n int) {
	s.t.Helper()
	c := s.temporalClient()
	eventually(s.t, "the workflow is started", readyTimeout, func() bool {
		count, err := c.CountWorkflow(s.t.Context(), &workflowservice.CountWorkflowExecutionsRequest{Query: "WorkflowType = 'Video'"})
		return err == nil && int(count.GetCount()) >= n
	})
}
