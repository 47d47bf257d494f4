package e2e_test

import (
	"bytes"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"net/http"
	"testing"

	"github.com/openai/openai-go/v3"

	"modelrelay/dev/e2e/stack"
	"modelrelay/providers"
	"modelrelay/providers/generic"
	"modelrelay/providers/upstream"
	"modelrelay/storage/testwait"
)

// TestChain has a gateway for its own upstream: a task of the one is a task of the other.
func TestChain(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.Shared(t)
	g := s.StartGateway(stack.GatewayOptions{Channels: s.EveryVendor() + `  - name: itself
    vendor: generic
    base_url: http://{self}/v1
    keys: [` + stack.Token + `]
    models: {chain: sora-2-fast, chain-several: generic-video-fast, chain-manual: sora-2-manual}
    groups: [default]
`})
	sdk := g.SDK()

	t.Run("create, pictures, remix", func(t *testing.T) {
		image := bytes.Repeat([]byte("\x89PNG\r\n\x1a\n"), 1000)
		video, err := sdk.Videos.New(t.Context(), openai.VideoNewParams{
			Prompt: "through two gateways", Model: "chain", Seconds: "8", Size: "1280x720",
			InputReference: openai.VideoNewParamsInputReferenceUnion{OfFile: openai.File(bytes.NewReader(image), "a.png", "image/png")},
		})
		if err != nil {
			t.Fatal(err)
		}
		g.AwaitCompleted(video.ID, stack.TaskTimeout)
		if sum := sha256.Sum256(image); s.Control.Input("through two gateways") != hex.EncodeToString(sum[:]) {
			t.Error("the input image did not reach the upstream intact")
		}
		picturesAndRemix(t, g, video.ID, true)
	})
	t.Run("several videos", func(t *testing.T) {
		var created, ended struct {
			ID     string   `json:"id"`
			Status string   `json:"status"`
			URLs   []string `json:"urls"`
		}
		body := map[string]any{"model": "chain-several", "prompt": "two of a kind", "n": 2, "metadata": map[string]string{"style": "noir"}}
		if err := sdk.Post(t.Context(), "video/generations", body, &created); err != nil {
			t.Fatal(err)
		}
		g.AwaitEnd(created.ID, stack.TaskTimeout)
		if err := sdk.Get(t.Context(), "video/generations/"+created.ID, nil, &ended); err != nil || ended.Status != "completed" ||
			len(ended.URLs) != 2 {
			t.Fatalf("ended = %+v, %v", ended, err)
		}
		sums := make(map[string]bool)
		for _, path := range ended.URLs {
			clip := g.Call(t, stack.Request{Path: path})
			if clip.Status != http.StatusOK {
				t.Fatalf("%s: %d", path, clip.Status)
			}
			sum := sha256.Sum256(clip.Body)
			sums[hex.EncodeToString(sum[:])] = true
		}
		if j := s.Control.Job("two of a kind"); len(sums) != 2 || j == nil || !sums[j.SHA256] {
			t.Errorf("got outputs %v of job %+v", sums, j)
		}
	})
	t.Run("cancel goes through", func(t *testing.T) {
		video := g.Create(t.Context(), "chain-manual", "called off in a row")
		s.Control.Await("video.get", "sora-2-manual", "", 1)
		if err := sdk.Post(t.Context(), "videos/"+video.ID+"/cancel", nil, nil); err != nil {
			t.Fatal(err)
		}
		ended := g.AwaitEnd(video.ID, stack.TaskTimeout)
		if ended.Error.Code != "cancelled" {
			t.Errorf("ended = %s", ended.RawJSON())
		}
		testwait.Eventually(t, "the second gateway's task is cancelled", stack.TaskTimeout, func() bool {
			list, err := sdk.Videos.List(t.Context(), openai.VideoListParams{})
			if err != nil {
				return false
			}
			for _, inner := range list.Data {
				if inner.Model == "sora-2-manual" {
					return inner.Status == openai.VideoStatusFailed && inner.Error.Code == "cancelled"
				}
			}
			return false
		})
	})
	t.Run("a lost create is found", func(t *testing.T) {
		client := upstream.NewClient(nil)
		t.Cleanup(client.CloseIdleConnections)
		adapter := generic.NewVideos(client)
		to := providers.Target{Channel: providers.Channel{Name: "itself", BaseURL: g.URL() + "/v1"}, Key: stack.Token, Model: "sora-2-fast"}
		req := providers.VideoRequest{Prompt: "asked for twice", IdempotencyKey: "attempt-1", Extra: json.RawMessage(`{"style":"noir"}`)}
		first, err := adapter.Submit(t.Context(), to, req)
		if err != nil {
			t.Fatal(err)
		}
		again, err := adapter.Find(t.Context(), to, req)
		if err != nil || again.Job != first.Job {
			t.Errorf("got %+v, %v, want %s", again, err, first.Job)
		}
		g.AwaitCompleted(first.Job, stack.TaskTimeout)
		req.Source, req.IdempotencyKey, req.Extra = &first, "attempt-2", nil
		remix, err := adapter.Remix(t.Context(), to, first, req)
		if err != nil {
			t.Fatal(err)
		}
		if found, err := adapter.Find(t.Context(), to, req); err != nil || found.Job != remix.Job {
			t.Errorf("got %+v, %v, want %s", found, err, remix.Job)
		}
		g.AwaitCompleted(remix.Job, stack.TaskTimeout)
	})
	g.WantNoSecrets(t)
}
