package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"
)

const (
	// taskTimeout is how long a task of a sub-second upstream job may take on a machine that does everything else as well. Only
	// what fails waits so long.
	taskTimeout = 3 * time.Minute
)

// TestVideo is the way of a client: create, poll, download, with the unmodified SDK.
func TestVideo(t *testing.T) {
	t.Parallel()
	s := newStack(t)
	g := s.gateway(gatewayOptions{})
	sdk := g.sdk()

	t.Run("create, wait, download", func(t *testing.T) {
		image := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("the start of a png is enough "), 1000)...)
		video, err := sdk.Videos.New(t.Context(), openai.VideoNewParams{
			Prompt: "a harbour at dawn", Model: "sora-2-fast", Seconds: "8", Size: "1280x720",
			InputReference: openai.VideoNewParamsInputReferenceUnion{OfFile: openai.File(bytes.NewReader(image), "hafen-früh.png", "image/png")},
		})
		if err != nil {
			t.Fatal(err)
		}
		if video.Status != openai.VideoStatusQueued || video.Progress != 0 || video.Seconds != "8" || video.Size != "1280x720" || video.Object != "video" {
			t.Errorf("created = %s", video.RawJSON())
		}
		g.completed(video.ID, taskTimeout)
		if sum := sha256.Sum256(image); s.control.input("a harbour at dawn") != hex.EncodeToString(sum[:]) {
			t.Error("the input image did not reach the upstream intact")
		}
		ended, err := sdk.Videos.Get(t.Context(), video.ID)
		if err != nil {
			t.Fatal(err)
		}
		if ended.CompletedAt == 0 || ended.ExpiresAt <= ended.CompletedAt {
			t.Errorf("ended = %s", ended.RawJSON())
		}
		g.ranges(t, video.ID)
	})
	t.Run("upstream failed", func(t *testing.T) {
		video := g.create(t.Context(), "sora-2-fast-fail", "doomed")
		ended := g.end(video.ID, taskTimeout)
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
		first := g.create(t.Context(), "sora-2-fast", "once only", key)
		second := g.create(t.Context(), "sora-2-fast", "once only", key)
		if first.ID != second.ID {
			t.Errorf("the same key made %s and %s", first.ID, second.ID)
		}
		_, err := sdk.Videos.New(t.Context(), openai.VideoNewParams{Prompt: "something else", Model: "sora-2-fast"}, key)
		var fault *openai.Error
		if !errors.As(err, &fault) || fault.StatusCode != http.StatusUnprocessableEntity {
			t.Errorf("the key with another request: %v, want 422", err)
		}
		g.completed(first.ID, taskTimeout)
		s.control.job("once only")
	})
	t.Run("cancel", func(t *testing.T) {
		video := g.create(t.Context(), "sora-2-manual", "never mind")
		s.control.wait("video.get", "sora-2-manual", "", 1)
		var cancelled openai.Video
		if err := sdk.Post(t.Context(), "videos/"+video.ID+"/cancel", nil, &cancelled); err != nil {
			t.Fatal(err)
		}
		ended := g.end(video.ID, taskTimeout)
		if ended.Status != openai.VideoStatusFailed || ended.Error.Code != "cancelled" {
			t.Errorf("ended = %s", ended.RawJSON())
		}
	})
	t.Run("another token", func(t *testing.T) {
		video := g.create(t.Context(), "sora-2-fast", "mine")
		_, err := sdk.Videos.Get(t.Context(), video.ID, option.WithAPIKey(token+"-other"))
		var fault *openai.Error
		if !errors.As(err, &fault) || fault.StatusCode != http.StatusNotFound {
			t.Errorf("another token's task: %v, want 404", err)
		}
		g.completed(video.ID, taskTimeout)
	})
	t.Run("status without a worker", func(t *testing.T) {
		front := s.gateway(gatewayOptions{args: []string{"serve", "--worker=false"}})
		video := g.create(t.Context(), "sora-2-manual", "seen by both")
		s.control.wait("video.get", "sora-2-manual", "", 2)
		job := s.control.job("seen by both")
		s.control.drive(job.ID, "in_progress", 40)
		eventually(t, "the front without a worker shows progress", taskTimeout, func() bool {
			sdk := front.sdk()
			got, err := sdk.Videos.Get(t.Context(), video.ID)
			return err == nil && got.Status == openai.VideoStatusInProgress && got.Progress >= 40
		})
		s.control.drive(job.ID, "completed", 100)
		front.completed(video.ID, taskTimeout)
	})
	g.secretsNowhere(t)
}

// ranges reads the content at the edges of a range.
func (g *gateway) ranges(t *testing.T, id string) {
	t.Helper()
	get := func(method, want string) (http.Header, int, []byte) {
		req, err := http.NewRequestWithContext(t.Context(), method, g.url()+"/v1/videos/"+id+"/content", nil)
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token)
		if want != "" {
			req.Header.Set("Range", want)
		}
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return resp.Header, resp.StatusCode, body
	}
	header, _, all := get(http.MethodGet, "")
	if header.Get("Content-Type") != "video/mp4" || header.Get("Etag") == "" || header.Get("Last-Modified") == "" ||
		!strings.Contains(header.Get("Cache-Control"), "private") || header.Get("Content-Length") != strconv.Itoa(len(all)) {
		t.Errorf("headers of the content = %v", header)
	}
	header, status, none := get(http.MethodHead, "")
	if status != http.StatusOK || header.Get("Content-Length") != strconv.Itoa(len(all)) || len(none) != 0 {
		t.Errorf("HEAD: %d, length %s, want 200 and %d", status, header.Get("Content-Length"), len(all))
	}
	for want, part := range map[string][]byte{"bytes=0-0": all[:1], "bytes=-1": all[len(all)-1:], "bytes=5-9": all[5:10]} {
		_, status, body := get(http.MethodGet, want)
		if status != http.StatusPartialContent || !bytes.Equal(body, part) {
			t.Errorf("%s: %d with %d bytes, want 206 with %d", want, status, len(body), len(part))
		}
	}
	if _, status, _ := get(http.MethodGet, "bytes=999999999-"); status != http.StatusRequestedRangeNotSatisfiable {
		t.Errorf("a range beyond the end: %d, want 416", status)
	}
}

// secretsNowhere looks for credentials in the gateway's log and in every history.
func (g *gateway) secretsNowhere(t *testing.T) {
	t.Helper()
	secrets := []string{token, "sk-upstream", secretKey}
	for _, secret := range secrets {
		if strings.Contains(g.out.text(), secret) {
			t.Errorf("%q stands in the gateway's log", secret)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), readyTimeout)
	defer cancel()
	for id, events := range histories(ctx, t, g.s.temporalClient()) {
		for _, secret := range secrets {
			if strings.Contains(events.String(), secret) {
				t.Errorf("%q stands in the history of %s", secret, id)
			}
		}
	}
}
