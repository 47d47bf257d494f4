package stack

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"io"
	"net/http"
	"time"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/storage/testwait"
)

// ErrorStatus is the HTTP status of an SDK's error, 0 for any other.
func ErrorStatus(err error) int {
	if fault, ok := errors.AsType[*openai.Error](err); ok {
		return fault.StatusCode
	}
	return 0
}

// StatusOf is the HTTP status of a read of the task.
func (g *Gateway) StatusOf(id string) int {
	g.Stack.T.Helper()
	sdk := g.SDK()
	_, err := sdk.Videos.Get(g.Stack.T.Context(), id)
	if err == nil {
		return http.StatusOK
	}
	return ErrorStatus(err)
}

// SDK is the unmodified OpenAI SDK against the gateway.
func (g *Gateway) SDK(options ...option.RequestOption) openai.Client {
	return openai.NewClient(append([]option.RequestOption{option.WithBaseURL(g.URL() + "/v1"), option.WithAPIKey(Token)}, options...)...)
}

// Create makes a task through the SDK.
func (g *Gateway) Create(ctx context.Context, model, prompt string, options ...option.RequestOption) *openai.Video {
	g.Stack.T.Helper()
	sdk := g.SDK()
	video, err := sdk.Videos.New(ctx, openai.VideoNewParams{Prompt: prompt, Model: openai.VideoModel(model)}, options...)
	if err != nil {
		g.Stack.T.Fatalf("create: %v", err)
	}
	return video
}

// AwaitEnd waits for the task's end through the SDK, checking on the way that the progress of a task that lives never falls.
func (g *Gateway) AwaitEnd(id string, within time.Duration) *openai.Video {
	g.Stack.T.Helper()
	sdk := g.SDK()
	var last *openai.Video
	testwait.Eventually(g.Stack.T, "task "+id+" ends", within, func() bool {
		video, err := sdk.Videos.Get(g.Stack.T.Context(), id)
		if err != nil {
			return false // a part may just be away
		}
		if last != nil && video.Progress < last.Progress && video.Status != openai.VideoStatusFailed {
			g.Stack.T.Fatalf("progress fell from %d to %d", last.Progress, video.Progress)
		}
		last = video
		return video.Status == openai.VideoStatusCompleted || video.Status == openai.VideoStatusFailed
	})
	return last
}

// AwaitCompleted waits for the task's good end and compares the archived bytes with the upstream's.
func (g *Gateway) AwaitCompleted(id string, within time.Duration) {
	g.Stack.T.Helper()
	video := g.AwaitEnd(id, within)
	if video.Status != openai.VideoStatusCompleted || video.Progress != 100 {
		g.Stack.T.Fatalf("task %s ended as %s: %s %s", id, video.Status, video.Error.Code, video.Error.Message)
	}
	sdk := g.SDK()
	resp, err := sdk.Videos.DownloadContent(g.Stack.T.Context(), id, openai.VideoDownloadContentParams{})
	if err != nil {
		g.Stack.T.Fatalf("download %s: %v", id, err)
	}
	defer resp.Body.Close()
	sum := sha256.New()
	if _, err := io.Copy(sum, resp.Body); err != nil {
		g.Stack.T.Fatalf("download %s: %v", id, err)
	}
	got := hex.EncodeToString(sum.Sum(nil))
	for _, job := range g.Stack.Control.Jobs() {
		if job.SHA256 == got {
			return
		}
	}
	g.Stack.T.Errorf("task %s: no upstream job has the downloaded bytes (SHA-256 %s)", id, got)
}
