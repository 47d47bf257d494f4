package e2e_test

import (
	"errors"
	"fmt"
	"net/http"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
)

// TestSoraSDK drives the whole videos service of the unmodified SDK: create and poll, list with its own pager, remix,
// download, delete.
func TestSoraSDK(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{})
	sdk := g.SDK()

	var ids []string // newest last
	for n := range 3 {
		video, err := sdk.Videos.NewAndPoll(t.Context(), openai.VideoNewParams{
			Prompt: fmt.Sprintf("harbour %d", n), Model: "sora-2-fast", Seconds: "4", Size: "1280x720",
		}, 0)
		if err != nil || video.Status != openai.VideoStatusCompleted {
			t.Fatalf("create and poll: %v, %v", video, err)
		}
		ids = append(ids, video.ID)
	}
	remix, err := sdk.Videos.Remix(t.Context(), ids[0], openai.VideoRemixParams{Prompt: "the same at night"})
	if err != nil {
		t.Fatal(err)
	}
	if remix.RemixedFromVideoID != ids[0] || remix.ID == ids[0] || remix.Prompt != "the same at night" || remix.Seconds != "4" ||
		remix.Size != "1280x720" {
		t.Errorf("remix = %s", remix.RawJSON())
	}
	g.AwaitCompleted(remix.ID, stack.TaskTimeout)
	ids = append(ids, remix.ID)

	t.Run("list", func(t *testing.T) {
		for order, want := range map[openai.VideoListParamsOrder][]string{
			openai.VideoListParamsOrderDesc: {ids[3], ids[2], ids[1], ids[0]}, openai.VideoListParamsOrderAsc: ids,
		} {
			var got []string
			pages := sdk.Videos.ListAutoPaging(t.Context(), openai.VideoListParams{Limit: openai.Int(2), Order: order})
			for pages.Next() {
				video := pages.Current()
				got = append(got, video.ID)
				if video.Status != openai.VideoStatusCompleted || video.Object != "video" {
					t.Errorf("listed = %s", video.RawJSON())
				}
			}
			if err := pages.Err(); err != nil || fmt.Sprint(got) != fmt.Sprint(want) {
				t.Errorf("%s: got %v, %v, want %v", order, got, err, want)
			}
		}
		page, err := sdk.Videos.List(t.Context(), openai.VideoListParams{}, option.WithAPIKey(stack.Token+"-other"))
		if err != nil || len(page.Data) != 0 || page.HasMore {
			t.Errorf("another token sees %+v, %v", page, err)
		}
		_, err = sdk.Videos.List(t.Context(), openai.VideoListParams{After: openai.String("video_00000000000000000000000000")})
		wantStatus(t, "an unknown cursor", err, http.StatusBadRequest)
		_, err = sdk.Videos.List(t.Context(), openai.VideoListParams{Limit: openai.Int(101)})
		wantStatus(t, "a long page", err, http.StatusBadRequest)
	})
	t.Run("delete", func(t *testing.T) {
		running := g.Create(t.Context(), "sora-2-manual", "never to be seen")
		s.Control.Await("video.get", "sora-2-manual", "", 1)
		for _, id := range []string{ids[1], running.ID} {
			gone, err := sdk.Videos.Delete(t.Context(), id)
			if err != nil || !gone.Deleted || gone.ID != id || gone.Object != "video.deleted" {
				t.Fatalf("delete %s: %+v, %v", id, gone, err)
			}
			_, err = sdk.Videos.Get(t.Context(), id)
			wantStatus(t, "a deleted task", err, http.StatusNotFound)
			resp, err := sdk.Videos.DownloadContent(t.Context(), id, openai.VideoDownloadContentParams{})
			if err == nil {
				resp.Body.Close()
			}
			wantStatus(t, "a deleted video", err, http.StatusNotFound)
		}
		page, err := sdk.Videos.List(t.Context(), openai.VideoListParams{})
		if err != nil || len(page.Data) != 3 {
			t.Errorf("after two deletions: %d tasks, %v, want 3", len(page.Data), err)
		}
	})
	t.Run("a remix of what is not finished", func(t *testing.T) {
		running := g.Create(t.Context(), "sora-2-manual", "still at work")
		_, err := sdk.Videos.Remix(t.Context(), running.ID, openai.VideoRemixParams{Prompt: "too soon"})
		wantStatus(t, "too soon", err, http.StatusBadRequest)
	})
	t.Run("a remix repeated without its source", func(t *testing.T) {
		key := option.WithHeader("Idempotency-Key", "remix")
		first, err := sdk.Videos.Remix(t.Context(), ids[2], openai.VideoRemixParams{Prompt: "once"}, key)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := sdk.Videos.Delete(t.Context(), ids[2]); err != nil {
			t.Fatal(err)
		}
		again, err := sdk.Videos.Remix(t.Context(), ids[2], openai.VideoRemixParams{Prompt: "once"}, key)
		if err != nil || again.ID != first.ID {
			t.Errorf("repeated: %v, %v, want %s", again, err, first.ID)
		}
		_, err = sdk.Videos.Remix(t.Context(), ids[2], openai.VideoRemixParams{Prompt: "twice"}, key)
		wantStatus(t, "another prompt", err, http.StatusUnprocessableEntity)
		_, err = sdk.Videos.Remix(t.Context(), ids[2], openai.VideoRemixParams{Prompt: "once"})
		wantStatus(t, "no key", err, http.StatusNotFound)
	})
}

// wantStatus wants an SDK's error to be an answer of the status.
func wantStatus(t *testing.T, what string, err error, status int) {
	t.Helper()
	var fault *openai.Error
	if !errors.As(err, &fault) || fault.StatusCode != status {
		t.Errorf("%s: %v, want %d", what, err, status)
	}
}

// TestVideoEvents: event streams report changes soon after they happen, in either format, and waiting reads are answered then. A gateway
// that stops ends its streams cleanly.
func TestVideoEvents(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{})
	video := g.Create(t.Context(), "sora-2-manual", "watched")
	sora, soraEnd := g.Follow(t.Context(), t, "/v1/videos/"+video.ID+"/events")
	generic, genericEnd := g.Follow(t.Context(), t, "/v1/video/generations/"+video.ID+"/events")
	s.Control.Await("video.get", "sora-2-manual", "", 1)
	job := s.Control.Job("watched")

	waited := make(chan string, 1)
	go func() {
		waited <- string(g.Call(t, stack.Request{Path: "/v1/video/generations/" + video.ID + "?wait=60"}).Body)
	}()
	s.Control.Drive(job.ID, "in_progress", 40)
	select {
	case answer := <-waited:
		if !strings.Contains(answer, `"status":"in_progress"`) {
			t.Errorf("the waiting read: %s", answer)
		}
	case <-time.After(50 * time.Second):
		t.Fatal("the waiting read was not answered at the change")
	}
	s.Control.Drive(job.ID, "completed", 100)
	for name, stream := range map[string]struct {
		events <-chan stack.Event
		ended  <-chan error
	}{"sora": {sora, soraEnd}, "generic": {generic, genericEnd}} {
		var ids []string
		var last stack.Event
		for e := range stream.events {
			if last, ids = e, append(ids, e.ID); len(ids) > 1 && ids[len(ids)-2] == e.ID {
				t.Errorf("%s: the same event twice: %v", name, ids)
			}
		}
		if err := <-stream.ended; err != nil || last.ID != "completed-100" || last.Status != "completed" ||
			!strings.Contains(last.Body, video.ID) ||
			!strings.HasPrefix(ids[0], "queued-0") {
			t.Errorf("%s: got %v, last %+v, %v", name, ids, last, err)
		}
	}

	open := g.Create(t.Context(), "sora-2-manual", "left alone")
	events, ended := g.Follow(t.Context(), t, "/v1/videos/"+open.ID+"/events")
	<-events
	stopped := time.Now()
	if err := g.Cmd.Process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	select {
	case err := <-ended:
		if err != nil {
			t.Errorf("the stream of a stopping gateway: %v, want a clean end", err)
		}
	case <-time.After(stack.EndTimeout):
		t.Error("the stream went on after SIGTERM")
	}
	t.Logf("stream ended %v after SIGTERM", time.Since(stopped).Round(time.Millisecond))
	g.Stop(t)
}
