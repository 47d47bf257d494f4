package ltx_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/ltx"
	"modelrelay/providers/providertest"
)

const job = "c0ffee0123456789abcdef01"

func adapter(client *http.Client) providers.VideoAdapter { return ltx.NewVideos(client) }

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     adapter,
		Channel: providers.Channel{Vendor: "ltx"},
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST /v2/text-to-video", "POST /v2/image-to-video":
				return providertest.VideoSubmit
			case "GET /v2/text-to-video/" + job, "GET /v2/image-to-video/" + job:
				return providertest.VideoPoll
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			if strings.HasPrefix(req.URL.Path, "/result") {
				return req.Header.Get("Authorization") == "" // links need no key
			}
			return req.Header.Get("Authorization") == "Bearer "+key.Reveal()
		},
		Job:     job,
		Failure: providers.VideoFailure{Code: providers.FailedContent, Message: "content_filtered_error: The content may be unsafe."},
		Upload: func(req *http.Request) (providertest.Upload, error) {
			var body struct {
				Image string `json:"image_uri"`
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
	off := false
	for _, tc := range []struct {
		name, model, uri string
		req              providers.VideoRequest
		want             string
	}{
		{
			"a prompt", "ltx-2-5-pro", "/v2/text-to-video",
			providers.VideoRequest{Prompt: "p", Seconds: "6", AspectRatio: "16:9", Resolution: "1080p"},
			`{"duration":6,"model":"ltx-2-5-pro","prompt":"p","resolution":"1920x1080"}`,
		},
		{
			"everything", "ltx-2-5-fast", "/v2/image-to-video",
			providers.VideoRequest{
				Prompt: "p", Seconds: "20.0", Width: 1080, Height: 1920, FPS: 25, GenerateAudio: &off, IdempotencyKey: "video_1-1",
				Extra: json.RawMessage(`{"camera_motion":"static"}`), Inputs: []providers.Media{link(providers.LastFrame), link(providers.FirstFrame)},
			},
			`{"camera_motion":"static","duration":20,"fps":25,"generate_audio":false,"image_uri":"https://h/","last_frame_uri":"https://h/last_frame","model":"ltx-2-5-fast","prompt":"p","resolution":"1080x1920"}`,
		},
		{
			"a size in the vendor's words", "ltx-2-5-fast", "/v2/text-to-video",
			providers.VideoRequest{Prompt: "p", Seconds: "6", Extra: json.RawMessage(`{"resolution":"3840x2160"}`)},
			`{"duration":6,"model":"ltx-2-5-fast","prompt":"p","resolution":"3840x2160"}`,
		},
		{
			"a sound", "ltx-2-5-pro", "/v2/audio-to-video",
			providers.VideoRequest{Prompt: "p", Seconds: "6", Inputs: []providers.Media{link(providers.SourceAudio)}},
			`{"audio_uri":"https://h/audio","model":"ltx-2-5-pro","prompt":"p","resolution":"1920x1080"}`,
		},
	} {
		seen, err := providertest.VideoExchange{New: adapter, Model: tc.model, Answer: `{"id":"1"}`}.Submit(t, tc.req)
		if err != nil || len(seen) != 1 || seen[0].URI != tc.uri || seen[0].Body != tc.want {
			t.Errorf("%s: got %+v, %v, want %s", tc.name, seen, err, tc.want)
		}
	}
}

func TestVideoRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		model, field string
		req          providers.VideoRequest
	}{
		{"ltx-2-5-pro", "prompt", providers.VideoRequest{}},
		{"ltx-2-5-pro", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "12"}},
		{"ltx-2-5-fast", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "12", FPS: 50}},
		{"ltx-2-5-fast", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "20", Width: 3840, Height: 2160}},
		{"ltx-2-5-fast", "fps", providers.VideoRequest{Prompt: "p", FPS: 30}},
		{"ltx-2-5-pro", "width", providers.VideoRequest{Prompt: "p", Width: 3840, Height: 2160}},
		{"ltx-2-5-fast", "audio", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.SourceAudio)}}},
		{"ltx-2-5-pro", "last_image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.LastFrame)}}},
		{"ltx-2-5-pro", "image", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{{Object: "o", ContentType: "image/png", Size: 6 << 20}},
		}},
	} {
		providertest.VideoExchange{New: adapter, Model: tc.model}.Refuses(t, tc.field, tc.req)
	}
}

// TestVideoCodes: the type of an error is more exact than the status.
func TestVideoCodes(t *testing.T) {
	t.Parallel()
	table := providertest.VideoExchange{
		New: adapter, Model: "ltx-2-5-pro", Status: 402,
		Answer: `{"type":"error","error":{"type":"insufficient_funds_error","message":"m"}}`,
	}
	_, err := table.Submit(t, providers.VideoRequest{Prompt: "p"})
	if fault := providers.AsFault(err); fault == nil || fault.Key != providers.KeyExhausted || fault.Code != "insufficient_funds_error" {
		t.Errorf("got %+v", fault)
	}
}
