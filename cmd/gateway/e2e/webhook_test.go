package e2e_test

import (
	"encoding/json"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
	"go.temporal.io/api/workflowservice/v1"
	"go.temporal.io/sdk/converter"

	"modelrelay/workflows"
)

func TestWebhooks(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	all := newHook(t, nil)
	g := s.gateway(hooks(all.URL + "/all"))
	hooked := option.WithAPIKey(hookToken)
	sdk := g.sdk(hooked)

	video := g.create(t.Context(), "sora-2-fast", "told", hooked)
	if event := all.verified(t, 1, video.ID); event.Type != "video.completed" {
		t.Errorf("told %s", event.Type)
	}
	if now, err := sdk.Videos.Get(t.Context(), video.ID); err != nil || now.Status != openai.VideoStatusCompleted {
		t.Errorf("a task that was told of: %v, %v", now, err)
	}
	doomed := g.create(t.Context(), "sora-2-fast-fail", "told as well", hooked)
	if event := all.verified(t, 2, doomed.ID); event.Type != "video.failed" {
		t.Errorf("told %s", event.Type)
	}

	t.Run("redelivered", func(t *testing.T) {
		before := len(all.requests())
		notice, err := g.redeliver(t, video.ID)
		event := all.verified(t, before+1, video.ID)
		if err != nil || notice.State != workflows.PhaseDelivered || !notice.Delivery.Delivered || notice.EventID != event.ID || event.ID != all.requests()[0].header.Get("Webhook-Id") {
			t.Errorf("notice = %+v, %v; event %s", notice, err, event.ID)
		}
		if _, stderr, err := g.operate(t.Context(), "video", "redeliver", "video_00000000000000000000000000"); err == nil || !strings.Contains(stderr, "No video task") {
			t.Errorf("of an unknown task: %v %s", err, stderr)
		}
		waiting := g.create(t.Context(), "sora-2-manual", "not ended", hooked)
		if _, stderr, err := g.operate(t.Context(), "video", "redeliver", waiting.ID); err == nil || !strings.Contains(stderr, "has not ended") {
			t.Errorf("of a running task: %v %s", err, stderr)
		}
	})
	for name, own := range map[string]string{"own webhook": "/own", "own webhook with a query": "/own?key=hush"} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			mine := newHook(t, func(n int) int { // fails first
				if n == 1 {
					return http.StatusServiceUnavailable
				}
				return http.StatusNoContent
			})
			before := len(all.requests())
			id := g.generic(t, hookToken, name, mine.URL+own)
			first, second := mine.verified(t, 1, id), mine.verified(t, 2, id)
			got := mine.requests()
			if wait := got[1].at.Sub(got[0].at); first.ID != second.ID || wait > 10*time.Second || got[1].path != own {
				t.Errorf("again after %s with %s at %s, first %s", wait, second.ID, got[1].path, first.ID)
			}
			if len(all.requests()) != before {
				t.Error("the token's webhook was told as well")
			}
			for _, execution := range []string{id, s.notifyID(id, workflows.Completed)} {
				events := history(t.Context(), t, s.temporalClient(), execution).String()
				for _, secret := range []string{hookSecret[6:], hookToken, "hush"} {
					if strings.Contains(events, secret) {
						t.Errorf("%q stands in the history of %s", secret, execution)
					}
				}
			}
		})
	}
	t.Run("a key used again while the end of the deleted task is told", func(t *testing.T) {
		t.Parallel()
		var mine *hook
		mine = newHook(t, func(int) int { // hears nothing of the first until it was told of the second
			events := make(map[string]bool)
			for _, one := range mine.requests() {
				events[one.header.Get("Webhook-Id")] = true
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
		mine.verified(t, 1, first.ID)
		if _, err := sdk.Videos.Delete(t.Context(), first.ID); err != nil {
			t.Fatal(err)
		}
		eventually(t, "the key is free", deliveryTimeout, func() bool {
			_, err := s.temporalClient().DescribeWorkflowExecution(t.Context(), first.ID, "")
			return err != nil
		})
		second := create()
		if second.ID != first.ID {
			t.Fatalf("got %s, want %s again", second.ID, first.ID)
		}
		eventually(t, "both ends are told", deliveryTimeout, func() bool {
			events := make(map[string]bool)
			for _, one := range mine.requests() {
				events[one.header.Get("Webhook-Id")] = true
			}
			return len(events) == 2
		})
		stdout, stderr, err := g.operate(t.Context(), "video", "show", second.ID, "--json")
		var story workflows.Story
		if json.Unmarshal([]byte(stdout), &story) != nil || len(story.Webhooks) != 1 || story.Webhooks[0].ID != s.notifyID(second.ID, workflows.Completed) {
			t.Errorf("show: %v %s, deliveries %+v", err, stderr, story.Webhooks)
		}
	})
	t.Run("the receiver wants no more", func(t *testing.T) {
		t.Parallel()
		gone := newHook(t, func(int) int { return http.StatusGone })
		id := g.generic(t, hookToken, "gone", gone.URL)
		gone.verified(t, 1, id)
		eventually(t, "the delivery ends", deliveryTimeout, func() bool {
			count, err := s.temporalClient().CountWorkflow(t.Context(), &workflowservice.CountWorkflowExecutionsRequest{
				Query: "WorkflowType = 'Notify' AND TaskState = 'undelivered' AND TaskToken = 'hooked'",
			})
			return err == nil && count.GetCount() == 1
		})
		notice, err := g.redeliver(t, id)
		if err == nil || notice.State != workflows.PhaseUndelivered || notice.Delivery.Status != http.StatusGone {
			t.Errorf("notice = %+v, %v", notice, err)
		}
	})
	t.Run("the receiver reads the task at once", func(t *testing.T) {
		t.Parallel()
		seen := make(chan openai.VideoStatus, 1)
		var id atomic.Value
		mine := newHook(t, func(int) int {
			video, err := sdk.Videos.Get(t.Context(), id.Load().(string))
			if err != nil {
				return http.StatusInternalServerError
			}
			seen <- video.Status
			return http.StatusOK
		})
		id.Store(g.generic(t, hookToken, "read at once", mine.URL))
		eventually(t, "the receiver has read", deliveryTimeout, func() bool { // others read it all the time
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
		for key, url := range map[string]string{hookToken: "ftp://client.example/", token: all.URL} { // the other token has no secret
			status, answer := g.post(t, key, "refused", url)
			if status != http.StatusBadRequest || !strings.Contains(answer, `"param":"webhook_url"`) {
				t.Errorf("%s: %d %s", url, status, answer)
			}
		}
	})
	t.Cleanup(func() {
		for _, secret := range []string{hookSecret, hookSecret[6:], "key=hush"} {
			if strings.Contains(g.out.text(), secret) {
				t.Errorf("%q stands in the gateway's log", secret)
			}
		}
	})
}

// TestKillWorkerDuringDelivery: the receiver holds the first request when the worker dies; the next worker tells it
// again, with the same id. Redis is away meanwhile, for longer than the worker.
func TestKillWorkerDuringDelivery(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	release := make(chan struct{})
	receiver := newHook(t, func(n int) int {
		if n == 1 {
			<-release
		}
		return http.StatusOK
	})
	options := hooks(receiver.URL)
	options.args = []string{"serve", "--worker=false"}
	front := s.gateway(options)
	options.args = []string{"worker"}
	worker := s.gateway(options)
	video := front.create(t.Context(), "sora-2-fast", "told twice", option.WithAPIKey(hookToken))
	first := receiver.verified(t, 1, video.ID)
	worker.kill()
	close(release)
	s.redis.kill()
	worker.start()
	eventually(t, "the new worker finds Redis away", deliveryTimeout, func() bool { return strings.Contains(worker.out.text(), "webhook not looked up") })
	s.startRedis()
	s.redis.ready(t)
	if second := receiver.verified(t, 2, video.ID); second.ID != first.ID {
		t.Errorf("told as %s, then as %s", first.ID, second.ID)
	}
	s.submittedOnce(1)
}

// TestPrivateWebhookRefused: a gateway that does not allow private networks delivers to none, however the address came in.
func TestPrivateWebhookRefused(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	receiver := newHook(t, nil)
	allowing := hooks(receiver.URL)
	allowing.args = []string{"serve", "--worker=false"}
	front := s.gateway(allowing)
	strict := s.gateway(gatewayOptions{
		tokens: "  - {name: hooked, key: " + hookToken + ", webhook_secret: " + hookSecret + "}\n",
	})
	for _, url := range []string{receiver.URL, "http://localhost/", "http://169.254.169.254/latest", "http://[::ffff:127.0.0.1]/"} {
		if status, answer := strict.post(t, hookToken, "refused", url); status != http.StatusBadRequest || !strings.Contains(answer, `"param":"webhook_url"`) {
			t.Errorf("%s: %d %s", url, status, answer)
		}
	}
	// The front allows it, the one worker there is does not.
	id := front.generic(t, hookToken, "not to be told", receiver.URL)
	sdk := front.sdk(option.WithAPIKey(hookToken))
	eventually(t, "the task ends", taskTimeout, func() bool {
		video, err := sdk.Videos.Get(t.Context(), id)
		return err == nil && video.Status == openai.VideoStatusCompleted
	})
	notice, err := strict.redeliver(t, id)
	if err == nil || notice.State != workflows.PhaseUndelivered || !strings.Contains(notice.Delivery.Reason, "allow_private_networks") {
		t.Errorf("notice = %+v, %v", notice, err)
	}
	if n := len(receiver.requests()); n != 0 {
		t.Errorf("%d requests reached the receiver", n)
	}
}

// notifyID is the delivery that the task ended so.
func (s *stack) notifyID(id string, state workflows.State) string {
	s.t.Helper()
	started := history(s.t.Context(), s.t, s.temporalClient(), id).GetEvents()[0].GetWorkflowExecutionStartedEventAttributes()
	var in workflows.Input
	if err := converter.GetDefaultDataConverter().FromPayloads(started.GetInput(), &in); err != nil {
		s.t.Fatal(err)
	}
	return in.NotifyID(state)
}

// TestHistoriesOfDeliveries plays what TestHistories does not: a task with a webhook, and the deliveries of its end.
func TestHistoriesOfDeliveries(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	receiver := newHook(t, func(n int) int {
		switch n {
		case 1:
			return http.StatusInternalServerError
		case 2:
			return http.StatusOK
		default:
			return http.StatusGone
		}
	})
	g := s.gateway(hooks(receiver.URL))
	video := g.create(t.Context(), "sora-2-fast", "told", option.WithAPIKey(hookToken))
	receiver.verified(t, 2, video.ID)
	id := s.notifyID(video.ID, workflows.Completed)
	if err := s.temporalClient().GetWorkflow(t.Context(), id, "").Get(t.Context(), nil); err != nil {
		t.Fatal(err)
	}
	for which, execution := range map[string]string{"told": video.ID, "notify-again": id} {
		n := len(history(t.Context(), t, s.temporalClient(), execution).GetEvents())
		t.Logf("%s: %d events", which, n)
		s.record(which, execution)
	}
	if notice, err := g.redeliver(t, video.ID); err == nil || notice.State != workflows.PhaseUndelivered {
		t.Errorf("notice = %+v, %v", notice, err)
	}
	s.record("notify-gone", id)
}
