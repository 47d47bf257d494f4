package api_test

import (
	"encoding/base64"
	"errors"
	"reflect"
	"strings"
	"testing"

	"google.golang.org/genai"

	"modelrelay/activities"
	"modelrelay/providers"
	"modelrelay/workflows"
	"modelrelay/workflows/tasks"
)

const (
	predictPath   = "/v1beta/models/cut:predictLongRunning"
	operationPath = "/v1beta/models/cut/operations/" + sourceID
)

// TestGeminiVideosSDK: generateVideos, getVideosOperation and download of an unmodified SDK.
func TestGeminiVideosSDK(t *testing.T) {
	t.Parallel()
	g := newCutter(t)
	client := geminiSDK(t, g, "", goodKey)
	operation, err := client.Models.GenerateVideos(t.Context(), "cut", "a cat", nil,
		&genai.GenerateVideosConfig{DurationSeconds: new(int32(4)), NumberOfVideos: 1})
	if err != nil || operation.Name != "models/cut/operations/video_1" || operation.Done {
		t.Fatalf("got %+v, %v", operation, err)
	}
	if operation, err = client.Operations.GetVideosOperation(t.Context(), operation, nil); err != nil || operation.Done ||
		operation.Metadata["state"] != "queued" {
		t.Fatalf("got %+v, %v", operation, err)
	}
	g.archive["out"] = []byte("the second video")
	g.tasks.put(tasks.Task{
		ID: sourceID, Token: "good", State: workflows.Completed, Progress: 100, CreatedAt: day, Request: providers.VideoRequest{Model: "cut"},
		Ending: workflows.Ending{Outputs: []activities.Output{{Object: "none"}, {Object: "out", ContentType: "video/mp4", Size: 16, SHA256: "abc"}}},
	})
	operation.Name = "models/cut/operations/" + sourceID
	if operation, err = client.Operations.GetVideosOperation(t.Context(), operation, nil); err != nil || !operation.Done ||
		len(operation.Response.GeneratedVideos) != 2 {
		t.Fatalf("got %+v, %v", operation, err)
	}
	video := operation.Response.GeneratedVideos[1]
	if content, err := client.Files.Download(t.Context(), genai.NewDownloadURIFromGeneratedVideo(video), nil); err != nil ||
		string(content) != "the second video" {
		t.Errorf("got %q, %v", content, err)
	}
	if _, err := client.Models.GenerateVideosFromSource(t.Context(), "cut", &genai.GenerateVideosSource{
		Prompt: "and then", Video: &genai.Video{URI: video.Video.URI, MIMEType: "video/mp4"},
	}, nil); err != nil {
		t.Error(err)
	}
	if got := g.tasks.creates[1].Request.Inputs; len(got) != 1 || got[0].Role != providers.ExtendVideo || got[0].Object != "out" ||
		g.tasks.creates[1].Format != providers.Gemini {
		t.Errorf("an extension: got %+v", got)
	}
	var refused genai.APIError
	if _, err := client.Models.GenerateVideos(t.Context(), "cut", "a cat", nil,
		&genai.GenerateVideosConfig{DurationSeconds: new(int32(5))}); !errors.As(err, &refused) ||
		refused.Code != 400 || refused.Status != "INVALID_ARGUMENT" ||
		!strings.Contains(refused.Message, "'durationSeconds' is not possible with this model, which takes 4") {
		t.Errorf("5 s: got %v", err)
	}
	if model, err := client.Models.Get(t.Context(), "cut", nil); err != nil ||
		!reflect.DeepEqual(model.SupportedActions, []string{"predictLongRunning"}) {
		t.Errorf("got model %+v, %v", model, err)
	}
}

// TestGeminiVideoBodies: what the fields of a body become.
func TestGeminiVideoBodies(t *testing.T) {
	t.Parallel()
	image := base64.StdEncoding.EncodeToString([]byte(png))
	upload := func(role providers.InputRole) providers.Media {
		return providers.Media{Role: role, ContentType: "image/png", Size: int64(len(png)), Data: []byte(png)}
	}
	seed, on := int64(7), true
	for name, tc := range map[string]struct {
		body string
		want providers.VideoRequest
	}{
		"all": {`{"instances":[{"prompt":"p","image":{"bytesBase64Encoded":"` + image +
			`","mimeType":"image/png"},"lastFrame":{"inlineData":{"mimeType":"image/png","data":"` + image + `"}},` +
			`"referenceImages":[{"image":{"uri":"https://h/a.png"},"referenceType":"asset"}],"mask":{"a":1}}],"parameters":{"durationSeconds":"4","aspectRatio":"16:9","resolution":"720P",` +
			`"negativePrompt":"n","generateAudio":true,"seed":7,"sampleCount":1,"fps":24,"personGeneration":"allow_all"},"webhookConfig":{"uris":["https://h/hook"]}}`, providers.VideoRequest{
			NegativePrompt: "n", Seconds: "4", AspectRatio: "16:9", Resolution: "720p", FPS: 24, N: 1, Seed: &seed, GenerateAudio: &on,
			WebhookURL: "https://h/hook",
			Inputs: []providers.Media{
				upload(providers.FirstFrame), upload(providers.LastFrame),
				{Role: providers.Reference, URL: "https://h/a.png"},
			},
			Extra: []byte(`{"mask":{"a":1},"personGeneration":"allow_all"}`),
		}},
		"snake case": {`{"instances":[{"prompt":"p","last_frame":{"bytes_base64_encoded":"` + image +
			`"}}],"parameters":{"duration_seconds":4,"aspect_ratio":null}}`, providers.VideoRequest{
			Seconds: "4", Inputs: []providers.Media{upload(providers.LastFrame)},
		}},
		"a video's address": {
			`{"instances":[{"prompt":"p","image":null,"video":{"uri":"https://h/v1beta/files/abc:download"}}]}`,
			providers.VideoRequest{
				Inputs: []providers.Media{{Role: providers.ExtendVideo, URL: "https://h/v1beta/files/abc:download"}},
			},
		},
	} {
		g := newGateway(t, nil, nil)
		rec := g.do(t, request("POST", "/v1beta/models/sora-2:predictLongRunning", tc.body, "Idempotency-Key", "k"))
		if rec.Code != 200 || strings.TrimSpace(rec.Body.String()) != `{"name":"models/sora-2/operations/video_1"}` {
			t.Errorf("%s: got %d %s", name, rec.Code, rec.Body)
			continue
		}
		tc.want.Model, tc.want.Prompt = "sora-2", "p"
		if got := g.tasks.creates[0]; !reflect.DeepEqual(got.Request, tc.want) || got.IdempotencyKey != "k" || got.Format != providers.Gemini {
			t.Errorf("%s: got %+v, want %+v", name, got.Request, tc.want)
		}
	}
}

func TestGeminiVideoFaults(t *testing.T) {
	t.Parallel()
	g := newCutter(t)
	for _, tc := range []struct {
		name, path, body string
		status           int
		words            string
	}{
		{"no instance", predictPath, `{"instances":[]}`, 400, "instances"},
		{"two", predictPath, `{"instances":[{"prompt":"a"},{"prompt":"b"}]}`, 400, "instances"},
		{"nothing to make", predictPath, `{"instances":[{}]}`, 400, "'prompt'"},
		{"an image without bytes", predictPath, `{"instances":[{"prompt":"p","image":{}}]}`, 400, "'image'"},
		{"a video of another store", predictPath, `{"instances":[{"prompt":"p","video":{"uri":"gs://b/o"}}]}`, 400, "'video'"},
		{"a length", predictPath, `{"instances":[{"prompt":"p"}],"parameters":{"durationSeconds":"long"}}`, 400, "'durationSeconds'"},
		{"many", predictPath, `{"instances":[{"prompt":"p"}],"parameters":{"sampleCount":2}}`, 400, "'sampleCount'"},
		{"two hooks", predictPath, `{"instances":[{"prompt":"p"}],"webhookConfig":{"uris":["https://h/a","https://h/b"]}}`, 400, "webhookConfig"},
		{"no model", "/v1beta/models/none:predictLongRunning", `{"instances":[{"prompt":"p"}]}`, 404, "none"},
		{"under /v1", "/v1/models/cut:predictLongRunning", `{"instances":[{"prompt":"p"}]}`, 404, ""},
		{"no task", "/v1beta/models/cut/operations/video_9", "", 404, ""},
		{"another token's", "/v1beta/models/cut/operations/video_theirs", "", 404, ""},
		{"no file", "/v1beta/files/abc:download", "", 404, ""},
		{"no output", "/v1beta/files/video0123456789abcdefghijklmnop1:download", "", 404, ""},
	} {
		method := "POST"
		if tc.body == "" {
			method = "GET"
		}
		rec := g.do(t, request(method, tc.path, tc.body))
		if body := rec.Body.String(); rec.Code != tc.status || !strings.Contains(body, `"status":"`) || !strings.Contains(body, tc.words) {
			t.Errorf("%s: got %d %s", tc.name, rec.Code, body)
		}
	}
	if len(g.tasks.creates) > 0 {
		t.Errorf("made %+v", g.tasks.creates)
	}
}

// TestGeminiOperationStates: what a task looks like as an operation.
func TestGeminiOperationStates(t *testing.T) {
	t.Parallel()
	const name = `{"name":"models/cut/operations/` + sourceID + `","metadata":`
	task := func(state workflows.State, failure *providers.VideoFailure) tasks.Task {
		return tasks.Task{
			ID: sourceID, Token: "good", State: state, Progress: 40, QueuePosition: 2, Ending: workflows.Ending{Failure: failure},
			Request: providers.VideoRequest{Model: "cut"},
		}
	}
	done := task(workflows.Completed, nil)
	done.Outputs = []activities.Output{{Object: "o"}}
	gone := done
	gone.ExpiresAt = day
	for _, tc := range []struct {
		task tasks.Task
		want string
	}{
		{task(workflows.Queued, nil), name + `{"state":"queued","progress":40,"queuePosition":2}}`},
		{
			task(workflows.Failed, &providers.VideoFailure{Code: "content_policy", Message: "No."}),
			name + `{"state":"failed","progress":40,"queuePosition":2},"done":true,"error":{"code":3,"message":"content_policy: No."}}`,
		},
		{done, name + `{"state":"completed","progress":40,"queuePosition":2},"done":true,"response":{"generateVideoResponse":{"generatedSamples":[` +
			`{"video":{"uri":"http://example.com/v1beta/files/video0123456789abcdefghijklmnop:download?alt=media"}}]}}}`},
		{gone, name + `{"state":"completed","progress":40,"queuePosition":2},"done":true,"response":{"generateVideoResponse":{"generatedSamples":[]}}}`},
	} {
		g := newCutter(t)
		g.tasks.put(tc.task)
		rec := g.do(t, request("GET", operationPath, "", "Authorization", "", "x-goog-api-key", goodKey))
		if got := strings.TrimSpace(rec.Body.String()); rec.Code != 200 || got != tc.want {
			t.Errorf("%s: got %d %s, want %s", tc.task.State, rec.Code, got, tc.want)
		}
	}
	g := newCutter(t)
	g.archive["tasks/"+sourceID+"/0"] = []byte(strings.Repeat("v", 500))
	for _, path := range []string{
		"/v1beta/files/video0123456789abcdefghijklmnop:download?alt=media&key=" + goodKey,
		"/v1beta/files/http://example.com/v1beta/files/video0123456789abcdefghijklmnop:download?alt=media:download?alt=media&key=" + goodKey,
	} {
		if rec := g.do(t, request("GET", path, "", "Authorization", "")); rec.Code != 200 || rec.Body.Len() != 500 ||
			rec.Header().Get("Content-Type") != "video/mp4" {
			t.Errorf("%s: got %d %v", path, rec.Code, rec.Header())
		}
	}
}
