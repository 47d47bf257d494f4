package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	all := stack.NewReceiver(t, nil)
	g := s.StartGateway(stack.WithReceiver(all.URL + "/all"))
	hooked := option.WithAPIKey(stack.HookToken)
	sdk := g.SDK(hooked)

	video := g.Create(t.Context(), "sora-2-fast", "told", hooked)
	if event := all.AwaitVerified(t, 1, video.ID); event.Type != "video.completed" {
		t.Errorf("told %s", event.Type)
	}
	if now, err := sdk.Videos.Get(t.Context(), video.ID); err != nil || now.Status != openai.VideoStatusCompleted {
		t.Errorf("a task that was told of: %v, %v", now, err)
	}
	doomed := g.Create(t.Context(), "sora-2-fast-fail", "told as well", hooked)
	if event := all.AwaitVerified(t, 2, doomed.ID); event.Type != "video.failed" {
		t.Errorf("told %s", event.Type)
	}

	t.Run("redelivered", func(t *testing.T) {
		before := len(all.Requests())
		notice, err := g.Redeliver(t, video.ID)
		event := all.AwaitVerified(t, before+1, video.ID)
		if err != nil || notice.State != string(workflows.PhaseDelivered) || notice.Status != http.StatusOK || notice.EventID != event.ID ||
			event.ID != all.Requests()[0].Header.Get("Webhook-Id") {
			t.Errorf("notice = %+v, %v; event %s", notice, err, event.ID)
		}
		if _, stderr, err := g.Command(t.Context(), "video", "redeliver", "video_00000000000000000000000000"); err == nil ||
			!strings.Contains(stderr, "no task") {
			t.Errorf("of an unknown task: %v %s", err, stderr)
		}
		waiting := g.Create(t.Context(), "sora-2-manual", "not ended", hooked)
		if _, stderr, err := g.Command(t.Context(), "video", "redeliver", waiting.ID); err == nil || !strings.Contains(stderr, "has not ended") {
			t.Errorf("of a running task: %v %s", err, stderr)
		}
	})
	for name, own := range map[string]string{"own webhook": "/own", "own webhook with a query": "/own?key=hush"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := stack.NewReceiver(t, func(n int) int { // fails first
				if n == 1 {
					return http.StatusServiceUnavailable
				}
				return http.StatusNoContent
			})
			before := len(all.Requests())
			id := g.CreateGeneric(t, stack.HookToken, name, mine.URL+own)
			first, second := mine.AwaitVerified(t, 1, id), mine.AwaitVerified(t, 2, id)
			got := mine.Requests()
			if first.ID != second.ID || got[1].Path != own {
				t.Errorf("again with %s at %s, first %s", second.ID, got[1].Path, first.ID)
			}
			if len(all.Requests()) != before {
				t.Error("the token's webhook was told as well")
			}
			for _, execution := range []string{id, notifyID(s, id, workflows.Completed)} {
				events := stack.History(t.Context(), t, s.TemporalClient(), execution).String()
				for _, secret := range []string{stack.HookSecret[6:], stack.HookToken, "hush"} {
					if strings.Contains(events, secret) {
						t.Errorf("%q stands in the history of %s", secret, execution)
					}
				}
			}
		})
	}
	t.Run("a key used again while the end of the deleted task is told", func(t *testing.T) {
		t.Parallel()
		var mine *stack.Receiver
		mine = stack.NewReceiver(t, func(int) int { // gets nothing of the first until it got the second
			events := make(map[string]bool)
			for _, one := range mine.Requests() {
				events[one.Header.Get("Webhook-Id")] = true
			}
			if len(events) < 2 {
				return http.StatusServiceUnavailable
			}
			return http.StatusNoContent
		})
		create := func() (video openai.Video) {
			body := map[string]any{"model": "sora-2-fast", "prompt": "used twice", "webhook_url": mine.URL}
			if err := sdk.Post(t.Context(), "videos", body, &video, option.WithHeader("Idempotency-Key", "used-twice")); err != nil {
				t.Fatal(err)
			}
			return video
		}
		first := create()
		mine.AwaitVerified(t, 1, first.ID)
		if _, err := sdk.Videos.Delete(t.Context(), first.ID); err != nil {
			t.Fatal(err)
		}
		testwait.Eventually(t, "the key is free", stack.DeliveryTimeout, func() bool {
			_, err := s.TemporalClient().DescribeWorkflowExecution(t.Context(), first.ID, "")
			return err != nil
		})
		second := create()
		if second.ID != first.ID {
			t.Fatalf("got %s, want %s again", second.ID, first.ID)
		}
		testwait.Eventually(t, "both ends are told", stack.DeliveryTimeout, func() bool {
			events := make(map[string]bool)
			for _, one := range mine.Requests() {
				events[one.Header.Get("Webhook-Id")] = true
			}
			return len(events) == 2
		})
		stdout, stderr, err := g.Command(t.Context(), "video", "show", second.ID, "--json")
		var story tasks.Details
		if json.Unmarshal([]byte(stdout), &story) != nil || len(story.Webhooks) != 1 ||
			story.Webhooks[0].ID != notifyID(s, second.ID, workflows.Completed) {
			t.Errorf("show: %v %s, deliveries %+v", err, stderr, story.Webhooks)
		}
	})
	t.Run("the receiver wants no more", func(t *testing.T) {
		t.Parallel()
		gone := stack.NewReceiver(t, func(int) int { return http.StatusGone })
		id := g.CreateGeneric(t, stack.HookToken, "gone", gone.URL)
		gone.AwaitVerified(t, 1, id)
		testwait.Eventually(t, "the delivery ends", stack.DeliveryTimeout, func() bool {
			count, err := s.TemporalClient().CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
				Query: "WorkflowType = 'Notify' AND TaskState = 'undelivered' AND TaskToken = 'hooked'",
			})
			return err == nil && count.GetCount() == 1
		})
		notice, err := g.Redeliver(t, id)
		if err == nil || notice.State != string(workflows.PhaseUndelivered) || notice.Status != http.StatusGone {
			t.Errorf("notice = %+v, %v", notice, err)
		}
	})
	t.Run("the receiver reads the task at once", func(t *testing.T) {
		t.Parallel()
		seen := make(chan openai.VideoStatus, 1)
		var id atomic.Value
		mine := stack.NewReceiver(t, func(int) int {
			video, err := sdk.Videos.Get(t.Context(), id.Load().(string))
			if err != nil {
				return http.StatusInternalServerError
			}
			seen <- video.Status
			return http.StatusOK
		})
		id.Store(g.CreateGeneric(t, stack.HookToken, "read at once", mine.URL))
		testwait.Eventually(t, "the receiver has read", stack.DeliveryTimeout, func() bool { // others read it all the time
			if _, err := sdk.Videos.Get(t.Context(), id.Load().(string)); err != nil {
				t.Error(err)
			}
			return len(seen) > 0
		})
		if got := <-seen; got != openai.VideoStatusCompleted {
			t.Errorf("the receiver of video.completed reads %s", got)
		}
	})
	t.Run("refused", func(t *testing.T) {
		t.Parallel()
		for key, url := range map[string]string{stack.HookToken: "ftp://client.example/", stack.Token: all.URL} { // the other token has no secret
			if got := g.PostGeneric(t, key, "refused", url); got.Status != http.StatusBadRequest ||
				!strings.Contains(string(got.Body), `"param":"webhook_url"`) {
				t.Errorf("%s: %d %s", url, got.Status, got.Body)
			}
		}
	})
	t.Cleanup(func() {
		for _, secret := range []string{stack.HookSecret, stack.HookSecret[6:], "key=hush"} {
			if strings.Contains(g.Out.Text(), secret) {
				t.Errorf("%q stands in the gateway's log", secret)
			}
		}
	})
}

// TestKillWorkerDuringDelivery: the receiver holds the first request when the worker dies; the next worker sends it
// again, with the same id. Redis is away meanwhile, for longer than the worker.
func TestKillWorkerDuringDelivery(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t).OwnRedis()
	release := make(chan struct{})
	receiver := stack.NewReceiver(t, func(n int) int {
		if n == 1 {
			<-release
		}
		return http.StatusOK
	})
	options := stack.WithReceiver(receiver.URL)
	options.Args = []string{"serve", "--worker=false"}
	front := s.StartGateway(options)
	options.Args = []string{"worker"}
	worker := s.StartGateway(options)
	video := front.Create(t.Context(), "sora-2-fast", "told twice", option.WithAPIKey(stack.HookToken))
	first := receiver.AwaitVerified(t, 1, video.ID)
	worker.Kill()
	close(release)
	s.Redis.Kill()
	worker.Start()
	testwait.Eventually(t, "the new worker finds Redis away", stack.DeliveryTimeout,
		func() bool { return strings.Contains(worker.Out.Text(), "webhook lookup failed") })
	s.StartRedis()
	s.Redis.AwaitReady(t)
	if second := receiver.AwaitVerified(t, 2, video.ID); second.ID != first.ID {
		t.Errorf("told as %s, then as %s", first.ID, second.ID)
	}
	s.WantSubmittedOnce(1)
}

// TestPrivateWebhookRefused: a gateway that does not allow private networks delivers to none, however the address came in.
func TestPrivateWebhookRefused(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	receiver := stack.NewReceiver(t, nil)
	allowing := stack.WithReceiver(receiver.URL)
	allowing.Args = []string{"serve", "--worker=false"}
	front := s.StartGateway(allowing)
	strict := s.StartGateway(stack.GatewayOptions{
		Tokens: "  - {name: hooked, key: " + stack.HookToken + ", webhook_secret: " + stack.HookSecret + "}\n",
	})
	for _, url := range []string{receiver.URL, "http://localhost/", "http://169.254.169.254/latest", "http://[::ffff:127.0.0.1]/"} {
		if got := strict.PostGeneric(t, stack.HookToken, "refused", url); got.Status != http.StatusBadRequest ||
			!strings.Contains(string(got.Body), `"param":"webhook_url"`) {
			t.Errorf("%s: %d %s", url, got.Status, got.Body)
		}
	}
	// The front allows it, the one worker there is does not.
	id := front.CreateGeneric(t, stack.HookToken, "not to be told", receiver.URL)
	sdk := front.SDK(option.WithAPIKey(stack.HookToken))
	testwait.Eventually(t, "the task ends", stack.TaskTimeout, func() bool {
		video, err := sdk.Videos.Get(t.Context(), id)
		return err == nil && video.Status == openai.VideoStatusCompleted
	})
	notice, err := strict.Redeliver(t, id)
	if err == nil || notice.State != string(workflows.PhaseUndelivered) || !strings.Contains(notice.Reason, "allow_private_networks") {
		t.Errorf("notice = %+v, %v", notice, err)
	}
	if n := len(receiver.Requests()); n != 0 {
		t.Errorf("%d requests reached the receiver", n)
	}
}

// notifyID is the delivery that the task ended so.
func notifyID(s *stack.Stack, id string, state workflows.State) string {
	s.T.Helper()
	started := stack.History(s.T.Context(), s.T, s.TemporalClient(), id).GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	var in workflows.Input
	if err := converter.GetDefaultDataConverter().FromPayloads(started.GetInput(), &in); err != nil {
		s.T.Fatal(err)
	}
	return in.NotifyID(state)
}

// TestHistoriesOfDeliveries plays what TestHistories does not: the deliveries of a task's end to its webhook.
func TestHistoriesOfDeliveries(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	receiver := stack.NewReceiver(t, func(n int) int {
		switch n {
		case 1:
			return http.StatusInternalServerError
		case 2:
			return http.StatusOK
		default:
			return http.StatusGone
		}
	})
	g := s.StartGateway(stack.WithReceiver(receiver.URL))
	video := g.Create(t.Context(), "sora-2-fast", "told", option.WithAPIKey(stack.HookToken))
	receiver.AwaitVerified(t, 2, video.ID)
	id := notifyID(s, video.ID, workflows.Completed)
	if err := s.TemporalClient().GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	record(s, "notify", id)
	if notice, err := g.Redeliver(t, video.ID); err == nil || notice.State != string(workflows.PhaseUndelivered) {
		t.Errorf("notice = %+v, %v", notice, err)
	}
}
