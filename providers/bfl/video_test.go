package bfl_test

import (
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"os"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/bfl"
	"modelrelay/providers/providertest"
)

const job = "8f1f4f7e-2c55-4a3a-9d2e-3f5c0f6f1c11"

func adapter(client *http.Client) providers.VideoAdapter { return bfl.NewVideos(client) }

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     adapter,
		Channel: providers.Channel{Vendor: "bfl"},
		Model:   "flux-3-video",
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.RequestURI() {
			case "POST /v1/flux-3-video":
				return providertest.VideoSubmit
			case "GET /v1/get_result?id=" + job:
				return providertest.VideoPoll
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			if strings.HasPrefix(req.URL.Path, "/result") {
				return req.Header.Get("X-Key") == "" // links need no key
			}
			return req.Header.Get("X-Key") == key.Reveal()
		},
		Job:     job,
		Failure: providers.VideoFailure{Code: providers.FailedContent, Message: "Content Moderated: Derivative Works Filter"},
		Upload: func(req *http.Request) (providertest.Upload, error) {
			var body struct {
				Keyframes string `json:"keyframes"`
			}
			if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
				return providertest.Upload{}, err
			}
			data, err := base64.StdEncoding.DecodeString(body.Keyframes)
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
		name string
		req  providers.VideoRequest
		want string
	}{
		{
			"a prompt",
			providers.VideoRequest{Prompt: "p", Seconds: "5", Resolution: "720p"},
			`{"duration":5,"mode":"t2v","prompt":"p","resolution":"hd"}`,
		},
		{
			"in pixels, silent",
			providers.VideoRequest{
				Prompt: "p", Seconds: "20.0", Width: 1080, Height: 1920, GenerateAudio: &off,
				Extra: json.RawMessage(`{"safety_tolerance":3}`),
			},
			`{"aspect_ratio":"9:16","duration":20,"generate_audio":false,"mode":"t2v","prompt":"p","resolution":"fhd","safety_tolerance":3}`,
		},
		{
			"a frame",
			providers.VideoRequest{Prompt: "p", Seconds: "6", Inputs: []providers.Media{link(providers.FirstFrame)}},
			`{"duration":6,"keyframes":"https://h/","mode":"i2v","prompt":"p"}`,
		},
		{
			"two frames",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.LastFrame), link(providers.FirstFrame)}},
			`{"keyframes":["https://h/","https://h/last_frame"],"mode":"i2v","prompt":"p"}`,
		},
		{
			"a video",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.ExtendVideo)}},
			`{"mode":"v2v","prompt":"p","start_video":"https://h/extend"}`,
		},
	} {
		seen, err := providertest.VideoExchange{New: adapter, Model: "flux-3-video", Answer: `{"id":"1"}`}.Submit(t, tc.req)
		if err != nil || len(seen) != 1 || seen[0].URI != "/v1/flux-3-video" || seen[0].Body != tc.want {
			t.Errorf("%s: got %+v, %v, want %s", tc.name, seen, err, tc.want)
		}
	}
}

func TestVideoRefuses(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		field string
		req   providers.VideoRequest
	}{
		{"prompt", providers.VideoRequest{}},
		{"seconds", providers.VideoRequest{Prompt: "p", Seconds: "4"}},
		{"seconds", providers.VideoRequest{Prompt: "p", Seconds: "21"}},
		{"aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "5:4"}},
		{"resolution", providers.VideoRequest{Prompt: "p", Resolution: "4k"}},
		{"last_image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.LastFrame)}}},
		{"image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.FirstFrame), link(providers.ExtendVideo)}}},
		{"webhook_url", providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"webhook_url":"https://h"}`)}},
	} {
		providertest.VideoExchange{New: adapter, Model: "flux-3-video"}.Refuses(t, tc.field, tc.req)
	}
}

// transport answers every request as given and records where the requests went, and with which key.
type transport struct {
	answer string
	seen   []string
}

func (r *transport) RoundTrip(req *http.Request) (*http.Response, error) {
	r.seen = append(r.seen, req.URL.String()+" "+req.Header.Get("X-Key"))
	return &http.Response{
		StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {"application/json"}}, Body: io.NopCloser(strings.NewReader(r.answer)),
		Request: req,
	}, nil
}

// TestPollingURL: the key goes to the vendor's hosts, and of a channel at another address to that alone.
func TestPollingURL(t *testing.T) {
	t.Parallel()
	const own = "/v1/get_result?id=1"
	for _, tc := range []struct{ base, polling, want string }{
		{"https://api.bfl.ai", "https://api.us1.bfl.ai/v1/get_result?id=1&r=2", "https://api.us1.bfl.ai/v1/get_result?id=1&r=2"},
		{"https://api.bfl.ai", "", "https://api.bfl.ai" + own},
		{"https://api.bfl.ai", "https://bfl.ai.evil.example" + own, "https://api.bfl.ai" + own},
		{"https://api.bfl.ai", "https://evilbfl.ai" + own, "https://api.bfl.ai" + own},
		{"https://api.bfl.ai", "http://api.us1.bfl.ai" + own, "https://api.bfl.ai" + own},
		{"https://api.bfl.ai", "https://api.us1.bfl.ai:8443" + own, "https://api.bfl.ai" + own},
		{"https://api.bfl.ai", "https://user@api.us1.bfl.ai" + own, "https://api.bfl.ai" + own},
		{"https://proxy.example/bfl", "https://api.us1.bfl.ai" + own, "https://proxy.example/bfl" + own},
		{"https://proxy.example/bfl", "https://proxy.example/other?id=1", "https://proxy.example/other?id=1"},
	} {
		answers := &transport{answer: `{"id":"1","polling_url":"` + tc.polling + `","cost":85}`}
		videos, to := adapter(&http.Client{Transport: answers}),
			providers.Target{Channel: providers.Channel{BaseURL: tc.base}, Key: "k", Model: "flux-3-video"}
		ticket, err := videos.Submit(t.Context(), to, providers.VideoRequest{Prompt: "p"})
		if err != nil {
			t.Fatal(err)
		}
		answers.answer, answers.seen = `{"id":"1","status":"Ready","result":{"sample":"https://h/v.mp4"}}`, nil
		status, err := videos.Poll(t.Context(), to, ticket)
		if err != nil || len(answers.seen) != 1 || answers.seen[0] != tc.want+" k" {
			t.Errorf("%s, %s: asked %v, %v, want %s", tc.base, tc.polling, answers.seen, err, tc.want)
		}
		if status.Price != "85 credits" {
			t.Errorf("%s: the price is %q", tc.polling, status.Price)
		}
	}
}
