package e2e_test

import (
	"errors"
	"io"
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// TestVendors drives a task over each vendor's adapter against its fake upstream, links that ran out included.
func TestVendors(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{Channels: s.EveryVendor()})
	for _, vendor := range []struct{ name, model, manual string }{
		{"openai", "sora-2", "sora-2-manual"},
		{"vendorc", "jimeng", "jimeng_t2v_v30_manual"},
		{"generic", "generic-video", "generic-video-manual"},
	} {
		t.Run(vendor.name, func(t *testing.T) {
			sdk := g.SDK()
			video, err := sdk.Videos.New(t.Context(), openai.VideoNewParams{
				Prompt: vendor.name + " at dawn", Model: openai.VideoModel(vendor.model + "-fast"), Size: "1280x720",
			})
			if err != nil {
				t.Fatal(err)
			}
			g.AwaitCompleted(video.ID, stack.TaskTimeout)
			picturesAndRemix(t, g, video.ID, vendor.name != "vendorc")

			failing := g.Create(t.Context(), vendor.model+"-fast-fail", vendor.name+" is doomed")
			if ended := g.AwaitEnd(failing.ID, stack.TaskTimeout); ended.Status != openai.VideoStatusFailed || ended.Error.Code == "" ||
				ended.Error.Message == "" {
				t.Errorf("ended = %s", ended.RawJSON())
			}

			// The first link is dead when it comes; the next one works.
			manual := g.Create(t.Context(), vendor.model+"-manual", vendor.name+" and an old link")
			s.Control.Await("video.get", vendor.manual, "", 1)
			s.Control.AddRule(map[string]any{"vendor": vendor.name, "operation": "video.content", "action": "status", "status": 403, "times": 1})
			s.Control.Drive(s.Control.Job(vendor.name+" and an old link").ID, "completed", 100)
			g.AwaitCompleted(manual.ID, stack.TaskTimeout)
			s.Control.Clear()
		})
	}
	t.Run("a lost answer is found by its key", func(t *testing.T) {
		const prompt = "accepted, and the answer lost"
		s.Control.AddRule(map[string]any{"vendor": "generic", "operation": "video.create", "action": "drop", "accept": true, "times": 1})
		video := g.Create(t.Context(), "generic-video-fast", prompt)
		g.AwaitCompleted(video.ID, stack.TaskTimeout)
		var made []stack.Job
		for _, j := range s.Control.Jobs() {
			if j.Prompt == prompt {
				made = append(made, j)
			}
		}
		if len(made) != 1 || made[0].Submissions != 2 {
			t.Errorf("got jobs %+v, want one that was asked for twice", made)
		}
	})
	t.Run("a cancel reaches the upstream", func(t *testing.T) {
		video := g.Create(t.Context(), "generic-video-manual", "called off")
		testwait.Eventually(t, "the upstream is asked for the job", stack.TaskTimeout, func() bool {
			j := s.Control.Job("called off")
			return j != nil && j.Polls > 0
		})
		sdk := g.SDK()
		if err := sdk.Post(t.Context(), "videos/"+video.ID+"/cancel", nil, nil); err != nil {
			t.Fatal(err)
		}
		s.Control.Await("video.cancel", "generic-video-manual", "accepted", 1)
		if ended := g.AwaitEnd(video.ID, stack.TaskTimeout); ended.Error.Code != "cancelled" {
			t.Errorf("ended = %s", ended.RawJSON())
		}
	})
	g.WantNoSecrets(t)
}

// picturesAndRemix reads the pictures that the archive has of a completed video and makes a variation of it, where its
// vendor can; else they are not found and refused.
func picturesAndRemix(t *testing.T, g *stack.Gateway, id string, can bool) {
	t.Helper()
	sdk := g.SDK()
	for variant, contentType := range map[openai.VideoDownloadContentParamsVariant]string{
		"thumbnail":   "image/webp",
		"spritesheet": "image/jpeg",
	} {
		resp, err := sdk.Videos.DownloadContent(t.Context(), id, openai.VideoDownloadContentParams{Variant: variant})
		if !can {
			var fault *openai.Error
			if !errors.As(err, &fault) || fault.StatusCode != http.StatusNotFound {
				t.Errorf("%s: %v, want 404", variant, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%s: %v", variant, err)
			continue
		}
		picture, err := io.ReadAll(resp.Body)
		_ = resp.Body.Close()
		if err != nil || len(picture) == 0 || resp.Header.Get("Content-Type") != contentType {
			t.Errorf("%s: %d bytes of type %s, %v", variant, len(picture), resp.Header.Get("Content-Type"), err)
		}
	}
	remix, err := sdk.Videos.Remix(t.Context(), id, openai.VideoRemixParams{Prompt: "the same at night"})
	if !can {
		var fault *openai.Error
		if !errors.As(err, &fault) || fault.StatusCode != http.StatusBadRequest {
			t.Errorf("remix: %v, want 400", err)
		}
		return
	}
	if err != nil {
		t.Fatal(err)
	}
	if remix.RemixedFromVideoID != id || remix.ID == id {
		t.Errorf("remix = %s", remix.RawJSON())
	}
	g.AwaitCompleted(remix.ID, stack.TaskTimeout)
}
