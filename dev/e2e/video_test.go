package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"net/http"
	"strconv"
	"strings"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/dev/e2e/stack"
	"modelrelay/storage/testwait"
)

// TestVideo is the way of a client: create, poll, download, with the unmodified SDK.
func TestVideo(t *testing.T) {
	t.Parallel()
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{})
	sdk := g.SDK()

	t.Run("create, wait, download", func(t *testing.T) {
		image := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("the start of a png is enough "), 1000)...)
		video, err := sdk.Videos.New(t.Context(), openai.VideoNewParams{
			Prompt: "a harbour at dawn", Model: "sora-2-fast", Seconds: "8", Size: "1280x720",
			InputReference: openai.VideoNewParamsInputReferenceUnion{OfFile: openai.File(bytes.NewReader(image), "hafen-früh.png", "image/png")},
		})
		if err != nil {
			t.Fatal(err)
		}
		if video.Status != openai.VideoStatusQueued || video.Progress != 0 || video.Seconds != "8" || video.Size != "1280x720" ||
			video.Object != "video" {
			t.Errorf("created = %s", video.RawJSON())
		}
		g.AwaitCompleted(video.ID, stack.TaskTimeout)
		if sum := sha256.Sum256(image); s.Control.Input("a harbour at dawn") != hex.EncodeToString(sum[:]) {
			t.Error("the input image did not reach the upstream intact")
		}
		ended, err := sdk.Videos.Get(t.Context(), video.ID)
		if err != nil {
			t.Fatal(err)
		}
		if ended.CompletedAt == 0 || ended.ExpiresAt <= ended.CompletedAt {
			t.Errorf("ended = %s", ended.RawJSON())
		}
		wantRanges(t, g, video.ID)
	})
	t.Run("upstream failed", func(t *testing.T) {
		video := g.Create(t.Context(), "sora-2-fast-fail", "doomed")
		ended := g.AwaitEnd(video.ID, stack.TaskTimeout)
		if ended.Status != openai.VideoStatusFailed || ended.Error.Code == "" || ended.Error.Message == "" {
			t.Errorf("ended = %s", ended.RawJSON())
		}
		resp, err := sdk.Videos.DownloadContent(t.Context(), video.ID, openai.VideoDownloadContentParams{})
		if err == nil {
			resp.Body.Close()
		}
		var fault *openai.Error
		if !errors.As(err, &fault) || fault.StatusCode != http.StatusNotFound {
			t.Errorf("content of a failed task: %v, want 404", err)
		}
	})
	t.Run("idempotency key", func(t *testing.T) {
		key := option.WithHeader("Idempotency-Key", "order-4711")
		first := g.Create(t.Context(), "sora-2-fast", "once only", key)
		second := g.Create(t.Context(), "sora-2-fast", "once only", key)
		if first.ID != second.ID {
			t.Errorf("the same key made %s and %s", first.ID, second.ID)
		}
		_, err := sdk.Videos.New(t.Context(), openai.VideoNewParams{Prompt: "something else", Model: "sora-2-fast"}, key)
		var fault *openai.Error
		if !errors.As(err, &fault) || fault.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("the key with another request: %v, want 422", err)
		}
		g.AwaitCompleted(first.ID, stack.TaskTimeout)
		s.Control.Job("once only")
	})
	t.Run("cancel", func(t *testing.T) {
		video := g.Create(t.Context(), "sora-2-manual", "never mind")
		s.Control.Await("video.get", "sora-2-manual", "", 1)
		var cancelled openai.Video
		if err := sdk.Post(t.Context(), "videos/"+video.ID+"/cancel", nil, &cancelled); err != nil {
			t.Fatal(err)
		}
		ended := g.AwaitEnd(video.ID, stack.TaskTimeout)
		if ended.Status != openai.VideoStatusFailed || ended.Error.Code != "cancelled" {
			t.Errorf("ended = %s", ended.RawJSON())
		}
	})
	t.Run("another token", func(t *testing.T) {
		video := g.Create(t.Context(), "sora-2-fast", "mine")
		_, err := sdk.Videos.Get(t.Context(), video.ID, option.WithAPIKey(stack.Token+"-other"))
		var fault *openai.Error
		if !errors.As(err, &fault) || fault.StatusCode != http.StatusNotFound {
			t.Errorf("another token's task: %v, want 404", err)
		}
		g.AwaitCompleted(video.ID, stack.TaskTimeout)
	})
	t.Run("status without a worker", func(t *testing.T) {
		front := s.StartGateway(stack.GatewayOptions{Args: []string{"serve", "--worker=false"}})
		video := g.Create(t.Context(), "sora-2-manual", "seen by both")
		s.Control.Await("video.get", "sora-2-manual", "", 2)
		job := s.Control.Job("seen by both")
		s.Control.Drive(job.ID, "in_progress", 40)
		testwait.Eventually(t, "the front without a worker shows progress", stack.TaskTimeout, func() bool {
			sdk := front.SDK()
			got, err := sdk.Videos.Get(t.Context(), video.ID)
			return err == nil && got.Status == openai.VideoStatusInProgress && got.Progress >= 40
		})
		s.Control.Drive(job.ID, "completed", 100)
		front.AwaitCompleted(video.ID, stack.TaskTimeout)
	})
	g.WantNoSecrets(t)
}

// wantRanges reads the content at the edges of a range.
func wantRanges(t *testing.T, g *stack.Gateway, id string) {
	t.Helper()
	whole := g.Content(t, id, "")
	header, all := whole.Header, whole.Body
	if header.Get("Content-Type") != "video/mp4" || header.Get("Etag") == "" || header.Get("Last-Modified") == "" ||
		!strings.Contains(header.Get("Cache-Control"), "private") || header.Get("Content-Length") != strconv.Itoa(len(all)) {
		t.Errorf("headers of the content = %v", header)
	}
	head := g.Call(t, stack.Request{Method: http.MethodHead, Path: "/v1/videos/" + id + "/content"})
	if length := head.Header.Get("Content-Length"); head.Status != http.StatusOK || length != strconv.Itoa(len(all)) || len(head.Body) != 0 {
		t.Errorf("HEAD: %d, length %s, want 200 and %d", head.Status, length, len(all))
	}
	for want, part := range map[string][]byte{"bytes=0-0": all[:1], "bytes=-1": all[len(all)-1:], "bytes=5-9": all[5:10]} {
		if got := g.Content(t, id, want); got.Status != http.StatusPartialContent || !bytes.Equal(got.Body, part) {
			t.Errorf("%s: %d with %d bytes, want 206 with %d", want, got.Status, len(got.Body), len(part))
		}
	}
	if got := g.Content(t, id, "bytes=999999999-"); got.Status != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("a range beyond the end: %d, want 416", got.Status)
	}
}
