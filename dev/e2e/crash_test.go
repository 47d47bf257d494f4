package e2e_test

import (
	"fmt"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/activities"
	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/archive"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

// TestKillWorkerDuringSubmit: the upstream took the job, its answer died with the worker. The outcome is not known, so the task
// says so and is not submitted again.
func TestKillWorkerDuringSubmit(t *testing.T) {
	t.Parallel()
	s := stack.NewSplit(stack.Shared(t))
	s.Control.AddRule(map[string]any{"operation": "video.create", "action": "hang", "accept": true})
	video := s.Front.Create(t.Context(), "sora-2-fast", "lost answer")
	s.Control.Await("video.create", "sora-2-fast", "accepted", 1)
	s.Worker.Kill()
	s.Control.Clear()
	s.RestartWorker()
	ended := s.Front.AwaitEnd(video.ID, stack.CrashTimeout)
	if ended.Status != openai.VideoStatusFailed || ended.Error.Code != workflows.CodeUpstreamUnknown {
		t.Errorf("ended as %s %s, want %s", ended.Status, ended.Error.Code, workflows.CodeUpstreamUnknown)
	}
	s.WantSubmittedOnce(1)
}

// TestKillWorkerAfterSubmit: the worker dies after it has archived the ticket, before it reports to Temporal.
func TestKillWorkerAfterSubmit(t *testing.T) {
	t.Parallel()
	s := stack.NewSplit(stack.Shared(t))
	s.Control.AddRule(map[string]any{"operation": "video.create", "action": "hang", "accept": true})
	video := s.Front.Create(t.Context(), "sora-2-fast", "found ticket")
	s.Control.Await("video.create", "sora-2-fast", "accepted", 1)
	s.ToTemporal.Hold(stack.Towards)
	s.Control.Clear()
	archive := s.Archive()
	testwait.Eventually(t, "the ticket is in the archive", stack.ReadyTimeout, func() bool {
		return len(tickets(t, archive, video.ID)) == 1
	})
	s.Worker.Kill()
	s.RestartWorker()
	s.Front.AwaitCompleted(video.ID, stack.CrashTimeout)
	s.WantSubmittedOnce(1)
}

func TestKillWorkerDuringPoll(t *testing.T) {
	t.Parallel()
	s := stack.NewSplit(stack.Shared(t))
	video := s.Front.Create(t.Context(), "sora-2-manual", "polled")
	s.Control.Await("video.get", "sora-2-manual", "", 2)
	s.Worker.Kill()
	s.Control.Drive(s.Control.Job("polled").ID, "completed", 100)
	s.RestartWorker()
	s.Front.AwaitCompleted(video.ID, stack.CrashTimeout)
	s.WantSubmittedOnce(1)
}

func TestKillWorkerDuringArchive(t *testing.T) {
	t.Parallel()
	s := stack.NewSplit(stack.Shared(t))
	s.Control.AddRule(map[string]any{"operation": "video.content", "action": "stall", "bytes": 1000, "times": 1})
	video := s.Front.Create(t.Context(), "sora-2-fast", "archived")
	s.Control.Await("video.content", "sora-2-fast", "", 1)
	s.Worker.Kill()
	s.Control.Clear()
	s.RestartWorker()
	s.Front.AwaitCompleted(video.ID, stack.CrashTimeout)
	s.WantSubmittedOnce(1)
}

// TestKillGatewayDuringCreate: the gateway dies after it has started the workflow, before it answers. The client repeats the create, once
// with its idempotency key and once as its SDK does.
func TestKillGatewayDuringCreate(t *testing.T) {
	t.Parallel()
	for name, options := range map[string][]option.RequestOption{
		"with a key":        {option.WithHeader("Idempotency-Key", "k1")},
		"the SDK by itself": nil,
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			s := stack.Shared(t)
			worker := s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}})
			link := stack.NewLink(t, s.TemporalAt)
			front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}, TemporalAt: link.Addr()})

			link.Hold(stack.Back) // Temporal hears the front, the front hears nothing
			sdk := front.SDK(option.WithMaxRetries(8))
			var (
				video *openai.Video
				err   error
				group sync.WaitGroup
			)
			group.Go(func() {
				video, err = sdk.Videos.New(t.Context(), openai.VideoNewParams{Prompt: "asked twice", Model: "sora-2-fast"}, options...)
			})
			s.AwaitTasks(1)
			front.Kill()
			link.Restore()
			front.Start()
			group.Wait()
			if err != nil {
				t.Fatalf("create: %v", err)
			}
			front.AwaitCompleted(video.ID, stack.CrashTimeout)
			s.WantSubmittedOnce(1)
			if n := s.CountTasks(t.Context()); n != 1 {
				t.Errorf("%d tasks, want 1", n)
			}
			worker.Stop(t)
		})
	}
}

// TestRestartTemporal kills the server while tasks are in every phase.
func TestRestartTemporal(t *testing.T) {
	t.Parallel()
	s := stack.New(t)
	g := s.StartGateway(stack.GatewayOptions{})
	const each = 3
	var ids []string
	s.Control.AddRule(map[string]any{"operation": "video.content", "action": "stall", "bytes": 1000, "times": each})
	for i := range each {
		ids = append(ids, g.Create(t.Context(), "sora-2-fast", fmt.Sprint("archiving ", i)).ID)
	}
	s.Control.Await("video.content", "sora-2-fast", "", each)
	for i := range each {
		ids = append(ids, g.Create(t.Context(), "sora-2-manual", fmt.Sprint("polling ", i)).ID)
	}
	s.Control.Await("video.get", "sora-2-manual", "", each)
	s.Control.AddRule(map[string]any{"operation": "video.create", "model": "sora-2-pro", "action": "hang", "accept": true})
	for i := range each {
		ids = append(ids, g.Create(t.Context(), "sora-2-pro", fmt.Sprint("submitting ", i)).ID)
	}
	s.Control.Await("video.create", "sora-2-pro", "accepted", each)

	s.Temporal.Kill()
	s.Control.Clear()
	sdk := g.SDK(option.WithMaxRetries(0))
	_, err := sdk.Videos.New(t.Context(), openai.VideoNewParams{Prompt: "while away", Model: "sora-2-fast"})
	if status := stack.ErrorStatus(err); status != http.StatusServiceUnavailable {
		t.Errorf("a create while Temporal is away: %v, want 503", err)
	}
	if _, err := sdk.Models.List(t.Context()); err != nil {
		t.Errorf("the relay side fails while Temporal is away: %v", err)
	}
	s.StartTemporal()
	s.Temporal.AwaitReady(t)
	for i := range each {
		s.Control.Drive(s.Control.Job(fmt.Sprint("polling ", i)).ID, "completed", 100)
	}
	for _, id := range ids {
		g.AwaitCompleted(id, stack.CrashTimeout)
	}
	s.WantSubmittedOnce(len(ids))
}

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

// TestKillWorkerBeforeSubmit: Temporal knows the submit as started, its worker died before anything was sent. It cannot be
// would know that without the claim; with it the task is submitted after all.
func TestKillWorkerBeforeSubmit(t *testing.T) {
	t.Parallel()
	s := stack.NewSplit(stack.Shared(t).OwnS3())
	s.S3.Pause() // the submit gets as far as the archive
	video := s.Front.Create(t.Context(), "sora-2-fast", "never begun")
	awaitSubmit(t, s.Stack, video.ID)
	s.Worker.Kill()
	s.S3.Resume()
	for object, err := range s.Archive().List(t.Context(), activities.AttemptsPrefix(video.ID)) {
		t.Fatalf("the attempt was claimed: %s, %v", object.Key, err)
	}
	s.RestartWorker()
	s.Front.AwaitCompleted(video.ID, stack.CrashTimeout)
	s.WantSubmittedOnce(1)
}
