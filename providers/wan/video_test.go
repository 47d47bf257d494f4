package wan_test

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

	"modelrelay/providers"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
	"modelrelay/providers/wan"
)

const (
	createPath = "/api/v1/services/aigc/video-generation/video-synthesis"
	jobPath    = "/api/v1/tasks/0385dc79-5ff8-4d82-bcb6-aaaaaaaaaaaa"
)

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     func(client *http.Client) providers.VideoAdapter { return wan.NewVideos(client) },
		Channel: providers.Channel{Vendor: "wan"},
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST " + createPath:
				if req.Header.Get("X-DashScope-Async") == "enable" {
					return providertest.VideoSubmit
				}
			case "GET " + jobPath:
				return providertest.VideoPoll
			case "POST " + jobPath + "/cancel":
				return providertest.VideoCancel
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			if strings.HasPrefix(req.URL.Path, "/api/v1/") {
				return req.Header.Get("Authorization") == "Bearer "+key.Reveal()
			}
			return req.Header.Get("Authorization") == "" // links need no key
		},
		Job: "0385dc79-5ff8-4d82-bcb6-aaaaaaaaaaaa",
		Failure: providers.VideoFailure{
			Code: providers.FailedContent, Message: "DataInspectionFailed: Output data may contain inappropriate content.",
		},
		Upload:      upload,
		VideoTraits: providertest.VideoTraits{BareUploads: true},
	})
}

func upload(req *http.Request) (providertest.Upload, error) {
	var body struct {
		Input struct {
			Media []struct {
				Type string `json:"type"`
				URL  string `json:"url"`
			} `json:"media"`
		} `json:"input"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return providertest.Upload{}, err
	}
	if len(body.Input.Media) != 1 || body.Input.Media[0].Type != "first_frame" {
		return providertest.Upload{}, errors.New("no first frame")
	}
	encoded, found := strings.CutPrefix(body.Input.Media[0].URL, "data:image/png;base64,")
	if !found {
		return providertest.Upload{}, errors.New("no data URL of a PNG")
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return providertest.Upload{Data: data}, err
}

// at is an adapter and a target at a server that answers so.
func at(t *testing.T, answer http.HandlerFunc) (*wan.Videos, providers.Target) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	return wan.NewVideos(client), providers.Target{Channel: providers.Channel{BaseURL: server.URL + "/api/v1"}, Key: "secret", Model: "wan9"}
}

// create submits to a server that accepts it, and returns what that saw.
func create(t *testing.T, model string, req providers.VideoRequest) (path, body string, err error) {
	t.Helper()
	adapter, to := at(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		path, body = strings.TrimPrefix(r.URL.Path, "/api/v1/services/aigc"), string(raw)
		_, _ = io.WriteString(w, `{"output":{"task_id":"1"}}`)
	})
	to.Model = model
	_, err = adapter.Submit(t.Context(), to, req)
	return path, body, err
}

func link(role providers.InputRole) providers.Media {
	return providers.Media{Role: role, URL: "https://h/" + string(role)}
}

func links(roles ...providers.InputRole) (media []providers.Media) {
	for _, role := range roles {
		media = append(media, link(role))
	}
	return media
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	const (
		first, last, reference = providers.FirstFrame, providers.LastFrame, providers.Reference
		source, extend, sound  = providers.SourceVideo, providers.ExtendVideo, providers.SourceAudio
		path                   = "/video-generation/video-synthesis"
	)
	off, seed := false, int64(7)
	for _, tc := range []struct {
		name, model string
		req         providers.VideoRequest
		path, want  string
	}{
		{"a model that is not known", "wan9-video", providers.VideoRequest{Prompt: "p"}, path, `{"input":{"prompt":"p"},"model":"wan9-video"}`},
		{
			"frames of 3.0", "wan3.0-video",
			providers.VideoRequest{
				Prompt: "p", Width: 1280, Height: 720, FPS: 30, Seconds: "30", GenerateAudio: &off, Seed: &seed,
				Inputs: links(first, last), Extra: json.RawMessage(`{"prompt_extend":true,"seed":1}`),
			},
			path,
			`{"input":{"media":[{"type":"first_frame","url":"https://h/"},{"type":"last_frame","url":"https://h/last_frame"}],"prompt":"p"},` +
				`"model":"wan3.0-video","parameters":{"audio":false,"duration":30,"prompt_extend":true,"ratio":"16:9","resolution":"720P","seed":7}}`,
		},
		{
			"references of 3.0", "wan3.0-video-prime",
			providers.VideoRequest{Prompt: "p", Inputs: links(reference, source, sound)},
			path,
			`{"input":{"media":[{"type":"reference_image","url":"https://h/reference"},{"type":"reference_video","url":"https://h/video"},` +
				`{"type":"reference_audio","url":"https://h/audio"}],"prompt":"p"},"model":"wan3.0-video-prime","parameters":{"duration":5,"resolution":"1080P"}}`,
		},
		{
			"2.7 from text", "wan2.7-t2v-2026-04-25",
			providers.VideoRequest{
				Prompt: "p", NegativePrompt: "n", Inputs: links(sound),
				Extra: json.RawMessage(`{"duration":6,"resolution":"720P"}`),
			},
			path,
			`{"input":{"audio_url":"https://h/audio","negative_prompt":"n","prompt":"p"},"model":"wan2.7-t2v-2026-04-25","parameters":{"duration":6,"resolution":"720P"}}`,
		},
		{
			"2.7 goes on", "wan2.7-i2v",
			providers.VideoRequest{Inputs: links(extend, last)},
			path,
			`{"input":{"media":[{"type":"first_clip","url":"https://h/extend"},{"type":"last_frame","url":"https://h/last_frame"}]},"model":"wan2.7-i2v","parameters":{"duration":5,"resolution":"1080P"}}`,
		},
		{
			"2.7 from an image and sound", "wan2.7-i2v",
			providers.VideoRequest{Inputs: links(first, sound)},
			path,
			`{"input":{"media":[{"type":"first_frame","url":"https://h/"},{"type":"driving_audio","url":"https://h/audio"}]},"model":"wan2.7-i2v","parameters":{"duration":5,"resolution":"1080P"}}`,
		},
		{
			"2.7 edits", "wan2.7-videoedit",
			providers.VideoRequest{Prompt: "p", Resolution: "720p", Inputs: links(source, reference)},
			path,
			`{"input":{"media":[{"type":"video","url":"https://h/video"},{"type":"reference_image","url":"https://h/reference"}],"prompt":"p"},"model":"wan2.7-videoedit","parameters":{"resolution":"720P"}}`,
		},
		{
			"2.6 has sizes", "wan2.6-t2v",
			providers.VideoRequest{Prompt: "p", AspectRatio: "9:16", Resolution: "720p", Extra: json.RawMessage(`{"shot_type":"multi"}`)},
			path,
			`{"input":{"prompt":"p"},"model":"wan2.6-t2v","parameters":{"duration":5,"shot_type":"multi","size":"720*1280"}}`,
		},
		{
			"2.6 from an image", "wan2.6-i2v-flash",
			providers.VideoRequest{Prompt: "p", GenerateAudio: &off, Inputs: links(first)},
			path,
			`{"input":{"img_url":"https://h/","prompt":"p"},"model":"wan2.6-i2v-flash","parameters":{"audio":false,"duration":5,"resolution":"1080P"}}`,
		},
		{
			"2.6 from references", "wan2.6-r2v",
			providers.VideoRequest{Prompt: "p", Inputs: links(reference, source)},
			path,
			`{"input":{"prompt":"p","reference_urls":["https://h/reference","https://h/video"]},"model":"wan2.6-r2v","parameters":{"duration":5}}`,
		},
		{
			"2.2 between frames", "wan2.2-kf2v-flash",
			providers.VideoRequest{Prompt: "p", Inputs: links(first, last)},
			"/image2video/video-synthesis",
			`{"input":{"first_frame_url":"https://h/","last_frame_url":"https://h/last_frame","prompt":"p"},"model":"wan2.2-kf2v-flash"}`,
		},
		{
			"a horse", "happyhorse-1.1-i2v",
			providers.VideoRequest{Inputs: links(first)},
			path,
			`{"input":{"media":[{"type":"first_frame","url":"https://h/"}]},"model":"happyhorse-1.1-i2v","parameters":{"duration":5,"watermark":false}}`,
		},
	} {
		path, body, err := create(t, tc.model, tc.req)
		if err != nil || path != tc.path || body != tc.want {
			t.Errorf("%s: got %s %s, %v, want %s %s", tc.name, path, body, err, tc.path, tc.want)
		}
	}
}

func TestVideoCreateRefused(t *testing.T) {
	t.Parallel()
	const (
		first, last, reference = providers.FirstFrame, providers.LastFrame, providers.Reference
		source, extend, sound  = providers.SourceVideo, providers.ExtendVideo, providers.SourceAudio
	)
	off, minus := false, int64(-1)
	for _, tc := range []struct {
		name, model, field string
		req                providers.VideoRequest
	}{
		{"seconds", "wan2.5-t2v-preview", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "7"}},
		{"seconds of 3.0", "wan3.0-video", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "31"}},
		{"the length of an edit", "wan2.7-videoedit", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5", Inputs: links(source)}},
		{"long from a video", "wan2.7-r2v", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "12", Inputs: links(source)}},
		{"a size", "wan2.6-t2v", "width", providers.VideoRequest{Prompt: "p", Width: 1000, Height: 1000}},
		{"a size of words", "wan2.7-t2v", "width", providers.VideoRequest{Prompt: "p", Width: 640, Height: 480}},
		{"a resolution", "wan2.7-t2v", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "480p"}},
		{"a ratio", "wan2.7-t2v", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "21:9"}},
		{"the ratio of an image", "happyhorse-1.0-i2v", "aspect_ratio", providers.VideoRequest{AspectRatio: "16:9", Inputs: links(first)}},
		{
			"the ratio of a first frame", "wan2.7-r2v", "aspect_ratio",
			providers.VideoRequest{AspectRatio: "16:9", Inputs: links(first, reference)},
		},
		{"a last frame alone", "wan3.0-video", "last_image", providers.VideoRequest{Prompt: "p", Inputs: links(last)}},
		{"a last frame alone of 2.7", "wan2.7-i2v", "image", providers.VideoRequest{Prompt: "p", Inputs: links(last)}},
		{"a first frame alone of 2.2", "wan2.2-kf2v-flash", "last_image", providers.VideoRequest{Prompt: "p", Inputs: links(first)}},
		{"references with frames", "wan3.0-video", "reference_images", providers.VideoRequest{Prompt: "p", Inputs: links(first, reference)}},
		{"a video with frames", "wan3.0-video", "video", providers.VideoRequest{Prompt: "p", Inputs: links(first, source)}},
		{"sound with frames", "wan3.0-video", "audio", providers.VideoRequest{Prompt: "p", Inputs: links(first, sound)}},
		{"a frame and a clip", "wan2.7-i2v", "video", providers.VideoRequest{Prompt: "p", Inputs: links(first, extend)}},
		{"a clip and sound", "wan2.7-i2v", "audio", providers.VideoRequest{Prompt: "p", Inputs: links(extend, sound)}},
		{"an image for text", "wan2.7-t2v", "image", providers.VideoRequest{Prompt: "p", Inputs: links(first)}},
		{"no image", "wan2.6-i2v", "image", providers.VideoRequest{Prompt: "p"}},
		{"no image but sound", "wan2.6-i2v", "image", providers.VideoRequest{Prompt: "p", Inputs: links(sound)}},
		{
			"too many references", "wan2.7-r2v", "reference_images",
			providers.VideoRequest{Inputs: links(reference, reference, reference, source, source, source)},
		},
		{
			"a reference as bytes", "wan2.6-r2v", "reference_images",
			providers.VideoRequest{Inputs: []providers.Media{{Role: reference, Object: "o", ContentType: "image/png"}}},
		},
		{"a large image", "wan2.6-i2v", "image", providers.VideoRequest{Inputs: []providers.Media{{
			Object: "o", ContentType: "image/png",
			Size: 11 << 20,
		}}}},
		{
			"an image of another kind", "wan3.0-video", "image",
			providers.VideoRequest{Inputs: []providers.Media{{Object: "o", ContentType: "image/gif"}}},
		},
		{"an empty prompt", "wan2.7-t2v", "prompt", providers.VideoRequest{}},
		{"nothing", "wan3.0-video", "prompt", providers.VideoRequest{}},
		{"a long prompt", "wan2.6-t2v", "prompt", providers.VideoRequest{Prompt: strings.Repeat("p", 1501)}},
		{
			"a long negative prompt", "wan2.6-t2v", "negative_prompt",
			providers.VideoRequest{Prompt: "p", NegativePrompt: strings.Repeat("p", 501)},
		},
		{"several", "wan3.0-video", "n", providers.VideoRequest{Prompt: "p", N: 2}},
		{"another rate", "wan3.0-video", "fps", providers.VideoRequest{Prompt: "p", FPS: 24}},
		{"silence of 2.7", "wan2.7-t2v", "generate_audio", providers.VideoRequest{Prompt: "p", GenerateAudio: &off}},
		{
			"silence with sound", "wan2.5-t2v-preview", "generate_audio",
			providers.VideoRequest{Prompt: "p", GenerateAudio: &off, Inputs: links(sound)},
		},
		{"a random seed of 2.7", "wan2.7-t2v", "seed", providers.VideoRequest{Prompt: "p", Seed: &minus}},
		{"an input that is none", "wan3.0-video", "input", providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"input":7}`)}},
		{"media twice", "wan3.0-video", "media", providers.VideoRequest{
			Prompt: "p", Inputs: links(first),
			Extra: json.RawMessage(`{"media":[]}`),
		}},
	} {
		_, body, err := create(t, tc.model, tc.req)
		if fault := providers.AsFault(err); fault == nil || fault.Param != tc.field || fault.Kind != providers.Invalid ||
			fault.Accepted != providers.NotAccepted || body != "" {
			t.Errorf("%s: got %v, sent %q, want %s refused", tc.name, err, body, tc.field)
		}
	}
}

// TestVideoRefusals: the vendor's codes that say more than the status.
func TestVideoRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status        int
		code, message string
		kind          providers.Kind
		key           providers.KeyFault
		accepted      providers.Accepted
	}{
		{400, "Arrearage", "x", providers.Upstream, providers.KeyExhausted, providers.NotAccepted},
		{400, "DataInspectionFailed", "x", providers.Invalid, 0, providers.NotAccepted},
		{403, "AccessDenied.Unpurchased", "x", providers.Upstream, providers.KeyForbidden, providers.NotAccepted},
		{403, "AllocationQuota.FreeTierOnly", "x", providers.Upstream, providers.KeyExhausted, providers.NotAccepted},
		{404, "ModelNotFound", "x", providers.ModelNotFound, 0, providers.NotAccepted},
		{429, "Throttling.AllocationQuota", "Free allocated quota exceeded.", providers.Upstream, providers.KeyExhausted, providers.NotAccepted},
		{429, "Throttling.AllocationQuota", "Too many requests a minute.", providers.RateLimited, providers.KeyBusy, providers.NotAccepted},
		{429, "PostpaidBillOverdue", "x", providers.Upstream, providers.KeyExhausted, providers.NotAccepted},
		{503, "ModelServingError", "x", providers.Overloaded, 0, providers.AcceptedUnknown},
		{500, "InternalError.Algo", "x", providers.Upstream, 0, providers.AcceptedUnknown},
	} {
		adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_ = json.NewEncoder(w).Encode(map[string]string{"code": tc.code, "message": tc.message})
		})
		_, err := adapter.Submit(t.Context(), to, providers.VideoRequest{Prompt: "p"})
		fault := providers.AsFault(err)
		if fault == nil || fault.Kind != tc.kind || fault.Key != tc.key || fault.Accepted != tc.accepted || fault.Code != tc.code {
			t.Errorf("%d %s: got %+v", tc.status, tc.code, fault)
		}
	}
}

// TestVideoFailures: which failures of a job may be tried elsewhere.
func TestVideoFailures(t *testing.T) {
	t.Parallel()
	for code, want := range map[string]providers.VideoFailure{
		"InternalError.Timeout": {Code: providers.FailedTimeout, Retryable: true},
		"InternalError.Algo":    {Code: providers.FailedVendor, Retryable: true},
		"InvalidParameter.Size": {Code: providers.FailedInput},
		"IPInfringementSuspect": {Code: providers.FailedContent},
		"Throttling":            {Code: providers.FailedQuota},
		"":                      {Code: providers.FailedVendor},
	} {
		adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) {
			_ = json.NewEncoder(w).Encode(map[string]any{"output": map[string]string{"task_status": "FAILED", "code": code}})
		})
		got, err := adapter.Poll(t.Context(), to, providers.Ticket{Job: "1"})
		if err != nil || got.Failure == nil || got.Failure.Code != want.Code || got.Failure.Retryable != want.Retryable ||
			got.Failure.Message == "" {
			t.Errorf("%s: got %+v, %v", code, got.Failure, err)
		}
	}
}

// TestVideoCancelLate: a job that runs is not stopped, and one that has ended need not be.
func TestVideoCancelLate(t *testing.T) {
	t.Parallel()
	for word, conflict := range map[string]bool{"RUNNING": true, "SUCCEEDED": false, "UNKNOWN": false} {
		adapter, to := at(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"code":"UnsupportedOperation","message":"Failed to cancel the task"}`)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]any{"output": map[string]string{"task_status": word}})
		})
		err := adapter.Cancel(t.Context(), to, providers.Ticket{Job: "1"})
		if fault := providers.AsFault(err); (fault != nil) != conflict || conflict && fault.Kind != providers.Conflict {
			t.Errorf("%s: got %v", word, err)
		}
	}
}

// TestVideoHost: a job is read at the host that made it.
func TestVideoHost(t *testing.T) {
	t.Parallel()
	adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"output":{"task_id":"1","task_status":"RUNNING"}}`)
	})
	ticket, err := adapter.Submit(t.Context(), to, providers.VideoRequest{Prompt: "p"})
	if err != nil {
		t.Fatal(err)
	}
	to.Channel.BaseURL = "http://127.0.0.1:1"
	if status, err := adapter.Poll(t.Context(), to, ticket); err != nil || status.State != providers.JobRunning {
		t.Errorf("got %+v, %v", status, err)
	}
}

// TestVideoSource: if the vendor counts the seconds of a reference video, they are billed in addition to those of the video.
func TestVideoSource(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string][2]string{
		`{"duration":9,"output_video_duration":5,"input_video_duration":4,"SR":720}`: {"5", "4"},
		`{"duration":9,"SR":720}`: {"9", ""},
	} {
		answer := `{"output":{"task_id":"1","task_status":"SUCCEEDED","video_url":"https://h/v"},"usage":` + usage + `}`
		got, err := providertest.VideoExchange{
			New:    func(client *http.Client) providers.VideoAdapter { return wan.NewVideos(client) },
			Answer: answer,
		}.Poll(t, providers.Ticket{Job: "1"})
		if err != nil || got.Seconds != want[0] || got.Source != want[1] {
			t.Errorf("%s: got %+v, %v", usage, got, err)
		}
	}
}
