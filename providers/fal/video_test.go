package fal_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/fal"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
)

const job = "764cabcf-b745-4b3e-ae38-1200304cf45b"

func adapter(client *http.Client) providers.VideoAdapter { return fal.NewVideos(client) }

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     adapter,
		Channel: providers.Channel{Vendor: "fal"},
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST /up":
				return providertest.VideoSubmit
			case "GET /up/requests/" + job + "/status":
				return providertest.VideoPoll
			case "GET /up/requests/" + job:
				return providertest.VideoLink
			case "PUT /up/requests/" + job + "/cancel":
				return providertest.VideoCancel
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			if strings.HasPrefix(req.URL.Path, "/result") {
				return req.Header.Get("Authorization") == "" // links need no key
			}
			return req.Header.Get("Authorization") == "Key "+key.Reveal()
		},
		Job:     job,
		Failure: providers.VideoFailure{Code: providers.FailedTimeout, Message: "request_timeout: Request timed out", Retryable: true},
		Upload: func(req *http.Request) (providertest.Upload, error) {
			var body struct {
				Image string `json:"image_url"`
			}
			if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
				return providertest.Upload{}, err
			}
			encoded, found := strings.CutPrefix(body.Image, "data:image/png;base64,")
			if !found {
				return providertest.Upload{}, errors.New("no data URL of a PNG")
			}
			data, err := base64.StdEncoding.DecodeString(encoded)
			return providertest.Upload{Data: data}, err
		},
		VideoTraits: providertest.VideoTraits{BareUploads: true},
	})
}

func link(role providers.InputRole) providers.Media {
	return providers.Media{Role: role, URL: "https://h/" + string(role)}
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	on, seed := true, int64(7)
	for _, tc := range []struct {
		model string
		req   providers.VideoRequest
		want  string
	}{
		{
			"fal-ai/veo3.1/fast",
			providers.VideoRequest{
				Prompt: "p", NegativePrompt: "n", Seconds: "8.0", Width: 1920, Height: 1080, GenerateAudio: &on, Seed: &seed,
				Extra: json.RawMessage(`{"auto_fix":true,"duration":"4s"}`),
			},
			`{"aspect_ratio":"16:9","auto_fix":true,"duration":"8s","generate_audio":true,"negative_prompt":"n","prompt":"p","resolution":"1080p","seed":7}`,
		},
		{
			"fal-ai/veo3.1/first-last-frame-to-video",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)}},
			`{"first_frame_url":"https://h/","last_frame_url":"https://h/last_frame","prompt":"p"}`,
		},
		{
			"fal-ai/kling-video/v3/pro/image-to-video",
			providers.VideoRequest{Seconds: "5", Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)}},
			`{"duration":"5","end_image_url":"https://h/last_frame","start_image_url":"https://h/"}`,
		},
		{
			"bytedance/seedance-2.0/reference-to-video",
			providers.VideoRequest{Prompt: "p", Resolution: "4k", Inputs: []providers.Media{link(providers.Reference), link(providers.Reference)}},
			`{"image_urls":["https://h/reference","https://h/reference"],"prompt":"p","resolution":"4k"}`,
		},
		{"alibaba/happy-horse/v1.1/text-to-video", providers.VideoRequest{Prompt: "p", Seconds: "5"}, `{"duration":5,"prompt":"p"}`},
		{
			"blackforestlabs/flux-3-max/text-to-video",
			providers.VideoRequest{Prompt: "p", Seconds: "20", Width: 1920, Height: 1080, GenerateAudio: &on, Seed: &seed},
			`{"aspect_ratio":"16:9","duration":20,"generate_audio":true,"prompt":"p","resolution":"1080p","seed":7}`,
		},
		{
			"fal-ai/ltx-2.5/text-to-video/fast",
			providers.VideoRequest{Prompt: "p", Seconds: "20", Resolution: "720p", FPS: 25},
			`{"duration":20,"fps":25,"prompt":"p","resolution":"720p"}`,
		},
		{"some-one/app/v9", providers.VideoRequest{
			Prompt: "p", Seconds: "5", AspectRatio: "16:9",
			Inputs: []providers.Media{link(providers.FirstFrame)},
		}, `{"aspect_ratio":"16:9","duration":"5","image_url":"https://h/","prompt":"p"}`},
	} {
		seen, err := providertest.VideoExchange{New: adapter, Model: tc.model, Answer: `{"request_id":"1"}`}.Submit(t, tc.req)
		if err != nil || len(seen) != 1 || seen[0].URI != "/"+tc.model || seen[0].Body != tc.want {
			t.Errorf("%s: got %+v, %v, want %s", tc.model, seen, err, tc.want)
		}
	}
}

func TestVideoRefuses(t *testing.T) {
	t.Parallel()
	seed := int64(7)
	many := make([]providers.Media, 10)
	for i := range many {
		many[i] = link(providers.Reference)
	}
	for _, tc := range []struct {
		model, field string
		req          providers.VideoRequest
	}{
		{"fal-ai/veo3.1", "prompt", providers.VideoRequest{}},
		{"fal-ai/veo3.1", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5"}},
		{"fal-ai/veo3.1", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "1:1"}},
		{"fal-ai/veo3.1", "width", providers.VideoRequest{Prompt: "p", Width: 640, Height: 480}},
		{"fal-ai/veo3.1", "image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.FirstFrame)}}},
		{"fal-ai/veo3.1/image-to-video", "image", providers.VideoRequest{Prompt: "p"}},
		{
			"fal-ai/veo3.1/first-last-frame-to-video", "last_image",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.FirstFrame)}},
		},
		{
			"fal-ai/veo3.1/reference-to-video", "seed",
			providers.VideoRequest{Prompt: "p", Seed: &seed, Inputs: []providers.Media{link(providers.Reference)}},
		},
		{"fal-ai/veo3.1/lite", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "4k"}},
		{
			"fal-ai/kling-video/v3/pro/image-to-video", "last_image",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.LastFrame)}},
		},
		{"fal-ai/minimax/hailuo-2.3/pro/text-to-video", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "6"}},
		{"bytedance/seedance-2.0/reference-to-video", "reference_images", providers.VideoRequest{Prompt: "p", Inputs: many}},
		{
			"bytedance/seedance-2.0/reference-to-video", "image",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.Reference), link(providers.FirstFrame)}},
		},
		{"some-one/app", "reference_images", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.Reference)}}},
		{"some-one/app", "n", providers.VideoRequest{Prompt: "p", N: 2}},
		{"some-one/app", "fps", providers.VideoRequest{Prompt: "p", FPS: 24}},
		{"some-one/app", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5.5"}},
		{"some-one/app", "image", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{{Object: "o", ContentType: "image/heic", Size: 1}},
		}},
	} {
		providertest.VideoExchange{New: adapter, Model: tc.model}.Refuses(t, tc.field, tc.req)
	}
}

// TestVideoResults: the state COMPLETED means success or failure. The result, or the error in the state, decides.
func TestVideoResults(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, state string
		status      int
		result      string
		want        providers.VideoState
		code        string
		retryable   bool
		outputs     int
	}{
		{
			name: "several videos", status: 200, result: `{"videos":[{"url":"https://h/1"},{"url":"https://h/2"}],"seed":1}`,
			want: providers.JobDone, outputs: 2,
		},
		{name: "a link alone", status: 200, result: `{"video":"https://h/1"}`, want: providers.JobDone, outputs: 1},
		{
			name: "content", status: 422, result: `{"detail":[{"msg":"no","type":"content_policy_violation"}]}`, want: providers.JobFailed,
			code: providers.FailedContent,
		},
		{
			name: "input", status: 422, result: `{"detail":[{"msg":"no","type":"missing"}]}`, want: providers.JobFailed,
			code: providers.FailedInput,
		},
		{
			name: "the model fails", status: 500, result: `{"detail":[{"msg":"no","type":"internal_server_error"}]}`, want: providers.JobFailed,
			code: providers.FailedVendor, retryable: true,
		},
		{
			name: "the platform fails", status: 503, result: `{"detail":"no","error_type":"runner_disconnected"}`, want: providers.JobFailed,
			code: providers.FailedVendor, retryable: true,
		},
		{name: "not ready after all", status: 400, result: `{"detail":"Request is still in progress"}`, want: providers.JobRunning},
		{name: "gone", status: 404, result: `{"detail":"Not found"}`, want: providers.JobForgotten, code: providers.FailedForgotten},
		{
			name: "an error in the state", state: `{"status":"COMPLETED","error":"no","error_type":"generation_timeout"}`, want: providers.JobFailed,
			code: providers.FailedTimeout, retryable: true,
		},
	} {
		got, err := poll(t, tc.state, tc.status, tc.result)
		if err != nil || got.State != tc.want || got.Outputs != tc.outputs {
			t.Errorf("%s: got %+v, %v", tc.name, got, err)
			continue
		}
		if tc.code != "" && (got.Failure == nil || got.Failure.Code != tc.code || got.Failure.Retryable != tc.retryable) {
			t.Errorf("%s: got failure %+v", tc.name, got.Failure)
		}
	}
	// An answer that is not the model's is no report about the job.
	for _, status := range []int{401, 429, 500, 502} {
		if got, err := poll(t, "", status, `<html>`); err == nil {
			t.Errorf("%d: got %+v", status, got)
		}
	}
	if got, err := poll(t, "", 200, `{"seed":1}`); err == nil {
		t.Errorf("no video: got %+v", got)
	}
}

func poll(t *testing.T, state string, status int, result string) (providers.VideoStatus, error) {
	t.Helper()
	if state == "" {
		state = `{"status":"COMPLETED"}`
	}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		if strings.HasSuffix(r.URL.Path, "/status") {
			_, _ = io.WriteString(w, state)
			return
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, result)
	}))
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	return fal.NewVideos(client).Poll(t.Context(), providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k", Model: "a/b/c"},
		providers.Ticket{Job: "1"})
}

// TestVideoApp: Poll asks at the channel's own address, below the owner and the app. It ignores the host that the vendor returns.
func TestVideoApp(t *testing.T) {
	t.Parallel()
	for named, want := range map[string]string{
		"": "/a/b/requests/1/status",
		"https://queue.fal.run/a/other/requests/1": "/a/other/requests/1/status",
		"https://evil.invalid/../x/requests/1":     "/a/b/requests/1/status",
		"::":                                       "/a/b/requests/1/status",
	} {
		var asked string
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				_ = json.NewEncoder(w).Encode(map[string]string{"request_id": "1", "response_url": named})
				return
			}
			asked = r.URL.Path
			_, _ = io.WriteString(w, `{"status":"IN_QUEUE"}`)
		}))
		t.Cleanup(server.Close)
		client := upstream.NewClient(nil)
		t.Cleanup(client.CloseIdleConnections)
		videos, to := fal.NewVideos(client), providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k", Model: "a/b/c"}
		ticket, err := videos.Submit(t.Context(), to, providers.VideoRequest{Prompt: "p"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := videos.Poll(t.Context(), to, ticket); err != nil || asked != want {
			t.Errorf("%q: asked %s, %v, want %s", named, asked, err, want)
		}
	}
}

func TestVideoBalance(t *testing.T) {
	t.Parallel()
	table := providertest.VideoExchange{
		New: adapter, Model: "fal-ai/veo3.1", Status: http.StatusForbidden,
		Answer: `{"detail":"User is locked. Reason: Exhausted balance."}`,
	}
	_, err := table.Submit(t, providers.VideoRequest{Prompt: "p"})
	if fault := providers.AsFault(err); fault == nil || fault.Key != providers.KeyExhausted || fault.Accepted != providers.NotAccepted {
		t.Errorf("got %v", err)
	}
}

// TestVideoModelName: a model name that would lead to another path is refused.
func TestVideoModelName(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"a/../b", "/a", "a//b", "a/./b"} {
		providertest.VideoExchange{New: adapter}.RefusesModel(t, model)
	}
}

// TestVideoFields: the channel's configuration names the fields of a model that the table lacks.
func TestVideoFields(t *testing.T) {
	t.Parallel()
	exchange := providertest.VideoExchange{New: adapter, Model: "some-one/app", Answer: `{"request_id":"1"}`, Facts: providers.ModelFacts{
		Fields: map[string]providers.VideoFields{"some-one/": {"last_image": {Name: "end"}, "seconds": {As: providers.AsText}}},
	}}
	req := providers.VideoRequest{Prompt: "p", Seconds: "5", Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)}}
	seen, err := exchange.Submit(t, req)
	if want := `{"duration":"5","end":"https://h/last_frame","image_url":"https://h/","prompt":"p"}`; err != nil || len(seen) != 1 ||
		seen[0].Body != want {
		t.Errorf("got %+v, %v, want %s", seen, err, want)
	}
	exchange.Facts = providers.ModelFacts{}
	exchange.Refuses(t, "last_image", req)
}

// TestVideoLife: a result is stored for an hour, and a large one for six minutes.
func TestVideoLife(t *testing.T) {
	t.Parallel()
	for padding, life := range map[int]time.Duration{0: time.Hour, 10_000: 6 * time.Minute} {
		began := time.Now()
		got, err := poll(t, "", 200, `{"video":{"url":"https://h/1"},"note":"`+strings.Repeat("x", padding)+`"}`)
		if err != nil || got.ExpiresAt.Before(began.Add(life)) || got.ExpiresAt.After(time.Now().Add(life)) {
			t.Errorf("%d more bytes: dies at %s, %v, want %s after %s", padding, got.ExpiresAt, err, life, began)
		}
	}
}

// TestVideoOutlivesResult: the files of a result are read after the vendor has let the result go.
func TestVideoOutlivesResult(t *testing.T) {
	t.Parallel()
	const clip = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"
	gone := false
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		switch {
		case strings.HasSuffix(r.URL.Path, "/status"):
			_, _ = io.WriteString(w, `{"status":"COMPLETED"}`)
		case strings.HasPrefix(r.URL.Path, "/files/"):
			_, _ = io.WriteString(w, clip+r.URL.Path)
		case gone || r.URL.Path != "/a/named/requests/1":
			http.NotFound(w, r)
		default:
			_, _ = io.WriteString(w, `{"videos":[{"url":"http://`+r.Host+`/files/1"},{"url":"http://`+r.Host+`/files/2"}]}`)
		}
	}))
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	videos, to := fal.NewVideos(client), providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k", Model: "a/b/c"}
	ticket := providers.Ticket{Job: "1", Data: json.RawMessage(`{"app":"/a/named"}`)}
	status, err := videos.Poll(t.Context(), to, ticket)
	if err != nil || status.Outputs != 2 {
		t.Fatalf("got %+v, %v", status, err)
	}
	found := ticket
	found.Data = status.OpenData
	for _, gone = range []bool{false, true} {
		for output, want := range []string{"/files/1", "/files/2"} {
			video, err := videos.Open(t.Context(), to, found, output)
			if err != nil {
				t.Fatalf("the result gone: %t: %v", gone, err)
			}
			got, err := io.ReadAll(video.Body)
			_ = video.Body.Close()
			if err != nil || string(got) != clip+want {
				t.Errorf("the result gone: %t: got %q, %v, want %s", gone, got, err, want)
			}
		}
	}
	if _, err := videos.Open(t.Context(), to, ticket, 0); providers.AsFault(err) == nil || providers.AsFault(err).Kind != providers.NotFound {
		t.Errorf("without what was found: got %v", err)
	}
}

// TestVideoKeepsNoSignedLink: the history of a task contains what Poll finds, so Poll omits a link with a signature or password.
func TestVideoKeepsNoSignedLink(t *testing.T) {
	t.Parallel()
	for link, kept := range map[string]bool{
		"https://v3.fal.media/files/a/b.mp4": true, "https://bucket.example/b.mp4?X-Amz-Signature=hush": false,
		"https://user:hush@host.example/b.mp4": false,
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
			if strings.HasSuffix(r.URL.Path, "/status") {
				_, _ = io.WriteString(w, `{"status":"COMPLETED"}`)
				return
			}
			_, _ = io.WriteString(w, `{"video":{"url":"`+link+`"}}`)
		}))
		t.Cleanup(server.Close)
		client := upstream.NewClient(nil)
		t.Cleanup(client.CloseIdleConnections)
		to := providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k", Model: "a/b/c"}
		status, err := fal.NewVideos(client).Poll(t.Context(), to, providers.Ticket{Job: "1"})
		if err != nil || status.Outputs != 1 || strings.Contains(string(status.OpenData), link) != kept {
			t.Errorf("%s: got %+v, %v with %s", link, status, err, status.OpenData)
		}
	}
}
