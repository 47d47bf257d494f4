package e2e_test

import (
	"bytes"
	"net/http"
	"os"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"go.temporal.io/sdk/client"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/archive"
	"modelrelay/storage/testwait"
	"modelrelay/workflows"
)

// TestExpiry: an expired video cannot be downloaded, and its task can still be read. The sweep removes expired days; several workers share
// its schedule.
func TestExpiry(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{Video: "poll_min: 200ms, poll_max: 1s, retention: 5s"})
	s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}})
	id := g.Create(t.Context(), "sora-2-fast", "short-lived").ID
	video := g.AwaitEnd(id, stack.TaskTimeout)
	if video.Status != openai.VideoStatusCompleted || video.ExpiresAt != video.CompletedAt+5 {
		t.Fatalf("ended = %s", video.RawJSON())
	}
	sdk := g.SDK()
	testwait.Eventually(t, "the content expires", stack.TaskTimeout, func() bool {
		resp, err := sdk.Videos.DownloadContent(t.Context(), id, openai.VideoDownloadContentParams{})
		if err == nil {
			resp.Body.Close()
			return false
		}
		return stack.ErrorStatus(err) == http.StatusNotFound
	})
	if again, err := sdk.Videos.Get(t.Context(), id); err != nil || again.Status != openai.VideoStatusCompleted ||
		again.ExpiresAt != video.ExpiresAt {
		t.Errorf("the expired task reads %+v, %v", again, err)
	}

	bucket, before := s.Archive(), s.CountObjects("outputs/")
	const old = "outputs/2020-01-01/video_old/0.mp4"
	if _, err := bucket.Put(t.Context(), old, bytes.NewReader([]byte("old")), 3, archive.PutOptions{}); err != nil {
		t.Fatal(err)
	}
	schedule := s.TemporalClient().ScheduleClient().GetHandle(t.Context(), workflows.SweepID(stack.TaskQueue))
	if err := schedule.Trigger(t.Context(), client.ScheduleTriggerOptions{}); err != nil {
		t.Fatal(err)
	}
	testwait.Eventually(t, "the sweep removes the old day", stack.TaskTimeout,
		func() bool { return s.CountObjects("outputs/2020-01-01/") == 0 })
	if n := s.CountObjects("outputs/"); n != before || n == 0 {
		t.Errorf("%d objects of days to come, want the %d of before", n, before)
	}
	// A worker that starts finds the schedule and leaves it whole.
	s.StartGateway(stack.GatewayOptions{Args: []string{"worker"}})
	if about, err := schedule.Describe(t.Context()); err != nil || len(about.Schedule.Spec.Intervals) != 1 {
		t.Errorf("schedule: %+v, %v", about, err)
	}
}

// TestChannelLeaves: a task whose channel is taken out of the configuration waits for it, says so to the operator, never
// names it to the client, and continues when it is back.
func TestChannelLeaves(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	secretName := "very-private-channel"
	g := s.StartGateway(stack.GatewayOptions{
		Channels: s.Channel(secretName, "sk-upstream-main", "    priority: 10\n") + s.Channel("spare", "sk-upstream-spare", ""),
	})
	id := g.Create(t.Context(), "sora-2-manual", "patient").ID
	s.Control.Await("video.get", "sora-2-manual", "", 1)
	with, err := os.ReadFile(g.ConfigFile)
	if err != nil {
		t.Fatal(err)
	}
	write := func(text string) {
		t.Helper()
		if err := os.WriteFile(g.ConfigFile, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	write(strings.ReplaceAll(string(with), secretName, "another"))
	testwait.Eventually(t, "the operator sees what the task waits for", stack.TaskTimeout, func() bool {
		return strings.Contains(g.Run("video", "show", id, "--json"), "gone_since")
	})
	sdk := g.SDK()
	video, err := sdk.Videos.Get(t.Context(), id)
	if err != nil || video.Status == openai.VideoStatusFailed || strings.Contains(video.RawJSON(), secretName) {
		t.Errorf("meanwhile: %v %+v", err, video)
	}
	write(string(with))
	s.Control.Drive(s.Control.Job("patient").ID, "completed", 100)
	g.AwaitCompleted(id, stack.TaskTimeout)
	s.WantSubmittedOnce(1)
}
