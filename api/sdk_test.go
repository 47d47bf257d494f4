package api_test

import (
	"context"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/openai/openai-go/v3"
	"github.com/openai/openai-go/v3/option"

	"modelrelay/api"
	"modelrelay/providers"
	"modelrelay/workflows/tasks"
)

// sdk is the unmodified OpenAI SDK against a gateway. It needs a base URL and a key and nothing else.
func sdk(t *testing.T, g *gateway, options ...option.RequestOption) openai.Client {
	t.Helper()
	server := httptest.NewServer(g.Handler())
	t.Cleanup(server.Close)
	return openai.NewClient(append([]option.RequestOption{
		option.WithBaseURL(server.URL + "/v1"), option.WithAPIKey(goodKey), option.WithHTTPClient(server.Client()),
	}, options...)...)
}

func question() openai.ChatCompletionNewParams {
	return openai.ChatCompletionNewParams{
		Model: "fast", Messages: []openai.ChatCompletionMessageParamUnion{openai.UserMessage("hi")},
		ReasoningEffort: "minimal", Stop: openai.ChatCompletionNewParamsStopUnion{OfStringArray: []string{"x"}},
	}
}

func TestSDKChat(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(_ context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
		if payload := sent(t, to, call); !strings.Contains(payload, `"model":"gpt-4o-mini"`) {
			t.Errorf("sent %s", payload)
		}
		if call.Stream {
			return upstreamAnswer("text/event-stream", chunk+chunk+usageChunk+done), nil
		}
		return upstreamAnswer("application/json", `{"id":"c","object":"chat.completion","choices":[{"index":0,"finish_reason":"stop",
			"message":{"role":"assistant","content":"hello"}}],"usage":{"prompt_tokens":1,"completion_tokens":2,"total_tokens":3}}`), nil
	}, nil)
	client := sdk(t, g)
	answer, err := client.Chat.Completions.New(t.Context(), question())
	if err != nil || answer.Choices[0].Message.Content != "hello" || answer.Usage.TotalTokens != 3 {
		t.Fatalf("got %+v, %v", answer, err)
	}

	for _, asks := range []bool{false, true} {
		params := question()
		if asks {
			params.StreamOptions = openai.ChatCompletionStreamOptionsParam{IncludeUsage: openai.Bool(true)}
		}
		stream := client.Chat.Completions.NewStreaming(t.Context(), params)
		text, usage := "", int64(0)
		for stream.Next() {
			event := stream.Current()
			for _, choice := range event.Choices {
				text += choice.Delta.Content
			}
			usage += event.Usage.PromptTokens
		}
		if err := stream.Err(); err != nil || text != "aa" || (usage == 5) != asks {
			t.Errorf("asks %v: got %q, usage %d, %v", asks, text, usage, err)
		}
		_ = stream.Close()
	}
}

func TestSDKStreamError(t *testing.T) {
	t.Parallel()
	g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		resp := upstreamAnswer("text/event-stream", "")
		resp.Body = io.NopCloser(io.MultiReader(strings.NewReader(chunk), failingReader{}))
		return resp, nil
	}, nil)
	client := sdk(t, g)
	stream := client.Chat.Completions.NewStreaming(t.Context(), question())
	n := 0
	for stream.Next() {
		n++
	}
	if err := stream.Err(); n != 1 || err == nil || !strings.Contains(err.Error(), "error") {
		t.Errorf("got %d events and %v, want one and an error", n, err)
	}
	_ = stream.Close()
}

func TestSDKErrors(t *testing.T) {
	t.Parallel()
	var tries atomic.Int32
	g := newGateway(t, func(context.Context, providers.Target, *providers.Call) (*http.Response, error) {
		if tries.Add(1) == 1 {
			return nil, &providers.Fault{Kind: providers.RateLimited, Message: "The upstream is busy."}
		}
		return upstreamAnswer("application/json", `{"id":"c","choices":[]}`), nil
	}, nil)
	ask := func(options ...option.RequestOption) *openai.Error {
		client := sdk(t, g, options...)
		_, err := client.Chat.Completions.New(t.Context(), question())
		var failed *openai.Error
		if err != nil && !errors.As(err, &failed) {
			t.Fatalf("got %v, want an error of the SDK", err)
		}
		return failed
	}
	if got := ask(option.WithAPIKey("sk-wrong")); got == nil || got.StatusCode != 401 || got.Code != "invalid_api_key" ||
		got.Type != "authentication_error" {
		t.Errorf("wrong key: got %+v", got)
	}
	if got := ask(option.WithAPIKey("sk-few")); got == nil || got.StatusCode != 404 || got.Code != "model_not_found" || got.Param != "model" {
		t.Errorf("model out of sight: got %+v", got)
	}
	if got := ask(option.WithJSONSet("temperature", "hot")); got == nil || got.StatusCode != 400 || got.Param != "temperature" {
		t.Errorf("bad field: got %+v", got)
	}
	if got := ask(); got != nil || tries.Load() != 2 {
		t.Errorf("a 429 the SDK retries: got %+v after %d tries", got, tries.Load())
	}
}

func TestSDKModels(t *testing.T) {
	t.Parallel()
	client := sdk(t, newGateway(t, nil, nil))
	pages := client.Models.ListAutoPaging(t.Context())
	var ids []string
	for pages.Next() {
		ids = append(ids, pages.Current().ID)
	}
	if got := strings.Join(ids, " "); pages.Err() != nil || got != "fast gpt-4o open org/llama:70b sora-2" {
		t.Errorf("got %s, %v", got, pages.Err())
	}
	model, err := client.Models.Get(t.Context(), "org/llama:70b")
	if err != nil || model.ID != "org/llama:70b" || model.OwnedBy != "openai" {
		t.Errorf("got %+v, %v", model, err)
	}
}

func TestSDKVideos(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, nil)
	client := sdk(t, g)
	video, err := client.Videos.New(t.Context(), openai.VideoNewParams{
		Model: "sora-2", Prompt: "a cat", Seconds: "8", Size: "1280x720",
		InputReference: openai.VideoNewParamsInputReferenceUnion{OfFile: openai.File(strings.NewReader(png), "cät.png", "image/png")},
	})
	if err != nil || video.ID != "video_1" || video.Status != "queued" || video.Seconds != "8" || video.Size != "1280x720" ||
		video.Prompt != "a cat" {
		t.Fatalf("got %+v, %v", video, err)
	}
	request := g.tasks.creates[0].Request
	if len(request.Inputs) != 1 || request.Inputs[0].Name != "cät.png" || string(request.Inputs[0].Data) != png || request.Extra != nil {
		t.Errorf("got request %+v", request)
	}
	_, err = client.Videos.New(t.Context(), openai.VideoNewParams{
		Model: "sora-2", Prompt: "a cat",
		InputReference: openai.VideoNewParamsInputReferenceUnion{OfImageInputReference: &openai.ImageInputReferenceParam{
			ImageURL: openai.String("https://example.com/cat.png"),
		}},
	})
	if err != nil || g.tasks.creates[1].Request.Inputs[0].URL != "https://example.com/cat.png" {
		t.Errorf("reference by URL: got %+v, %v", g.tasks.creates, err)
	}

	if video, err = client.Videos.Get(t.Context(), "video_1"); err != nil || video.Progress != 0 || video.CreatedAt != day.Unix() {
		t.Errorf("got %+v, %v", video, err)
	}
	var missing *openai.Error
	if _, err := client.Videos.Get(t.Context(), "video_0"); !errors.As(err, &missing) || missing.StatusCode != 404 ||
		missing.Code != "not_found" {
		t.Errorf("unknown task: got %v", err)
	}
	early, err := client.Videos.DownloadContent(t.Context(), "video_1", openai.VideoDownloadContentParams{})
	if !errors.As(err, &missing) || missing.StatusCode != 404 {
		t.Errorf("unfinished: got %v", err)
	}
	if early != nil {
		_ = early.Body.Close()
	}

	finished(g)
	content, err := client.Videos.DownloadContent(t.Context(), "video_1", openai.VideoDownloadContentParams{Variant: "video"})
	if err != nil {
		t.Fatal(err)
	}
	defer content.Body.Close()
	raw, err := io.ReadAll(content.Body)
	if err != nil || string(raw) != clip || content.ContentLength != int64(len(clip)) {
		t.Errorf("got %q of %d bytes, %v", raw, content.ContentLength, err)
	}
}

// TestSDKRetriesACreate: what an SDK sends again after a 503 is marked as a retry, by which the task engine recognises it.
func TestSDKRetriesACreate(t *testing.T) {
	t.Parallel()
	g := newGateway(t, nil, func(g *gateway, o *api.Options) { o.Tasks = &failOnce{fakeTasks: g.tasks} })
	client := sdk(t, g)
	_, err := client.Videos.New(t.Context(), openai.VideoNewParams{Model: "sora-2", Prompt: "p"})
	if err != nil {
		t.Fatal(err)
	}
	if len(g.tasks.creates) != 1 || !g.tasks.creates[0].Repeat {
		t.Errorf("got creates %+v, want one marked as a repeat", g.tasks.creates)
	}
}

type failOnce struct {
	*fakeTasks
	failed atomic.Bool
}

func (f *failOnce) Create(ctx context.Context, create tasks.Create) (tasks.Task, error) {
	if !f.failed.Swap(true) {
		return tasks.Task{}, providers.Faultf(providers.Overloaded, "The task engine is not available at the moment.")
	}
	return f.fakeTasks.Create(ctx, create)
}
