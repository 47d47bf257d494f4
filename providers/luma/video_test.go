package luma_test

import (
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
	"modelrelay/providers/luma"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
)

const jobPath = "/generations/5b8f1f6e-2c1f-4d55-9a51-0d0f4d9f2a11"

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     func(client *http.Client) providers.VideoAdapter { return luma.NewVideos(client) },
		Channel: providers.Channel{Vendor: "luma"},
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST /generations":
				return providertest.VideoSubmit
			case "GET " + jobPath:
				return providertest.VideoPoll
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			if strings.HasPrefix(req.URL.Path, "/generations") {
				return req.Header.Get("Authorization") == "Bearer "+key.Reveal()
			}
			return req.Header.Get("Authorization") == "" // links need no key
		},
		Job:         "5b8f1f6e-2c1f-4d55-9a51-0d0f4d9f2a11",
		Failure:     providers.VideoFailure{Code: providers.FailedContent, Message: "content_moderated: The prompt was moderated."},
		Upload:      upload,
		VideoTraits: providertest.VideoTraits{BareUploads: true},
	})
}

func upload(req *http.Request) (providertest.Upload, error) {
	var body struct {
		Video struct {
			StartFrame struct {
				Data      []byte `json:"data"`
				MediaType string `json:"media_type"`
			} `json:"start_frame"`
		} `json:"video"`
	}
	err := json.NewDecoder(req.Body).Decode(&body)
	if err == nil && body.Video.StartFrame.MediaType != "image/png" {
		err = errors.New("no media type")
	}
	return providertest.Upload{Data: body.Video.StartFrame.Data}, err
}

// create submits to a server that accepts it, and returns what that saw.
func create(t *testing.T, model string, req providers.VideoRequest) (path, body string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		path, body = r.URL.Path, string(raw)
		_, _ = io.WriteString(w, `{"id":"1"}`)
	}))
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	_, err = luma.NewVideos(client).Submit(t.Context(),
		providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k", Model: model}, req)
	return path, body, err
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	on, off, seed := true, false, int64(7)
	link := func(role providers.InputRole) providers.Media {
		return providers.Media{Role: role, URL: "https://h/" + string(role)}
	}
	for _, tc := range []struct {
		name string
		req  providers.VideoRequest
		want string
	}{
		{"a prompt", providers.VideoRequest{Prompt: "p", GenerateAudio: &off}, `{"model":"ray-3.2","prompt":"p","type":"video"}`},
		{
			"everything",
			providers.VideoRequest{
				Prompt: "p", Seconds: "5.0", Width: 1920, Height: 1080,
				Extra:  json.RawMessage(`{"user_id":"u","video":{"loop":true,"resolution":"x"}}`),
				Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)},
			},
			`{"aspect_ratio":"16:9","model":"ray-3.2","prompt":"p","type":"video","user_id":"u","video":{"duration":"5s",` +
				`"end_frame":{"url":"https://h/last_frame"},"loop":true,"resolution":"1080p","start_frame":{"url":"https://h/"}}}`,
		},
		{
			"an edit",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.SourceVideo)}},
			`{"model":"ray-3.2","prompt":"p","source":{"url":"https://h/video"},"type":"video_edit"}`,
		},
	} {
		_, body, err := create(t, "ray-3.2", tc.req)
		if err != nil || body != tc.want {
			t.Errorf("%s: got %s, %v, want %s", tc.name, body, err, tc.want)
		}
	}
	for field, req := range map[string]providers.VideoRequest{
		"seconds":          {Prompt: "p", Seconds: "10", Inputs: []providers.Media{link(providers.FirstFrame)}},
		"seed":             {Prompt: "p", Seed: &seed},
		"fps":              {Prompt: "p", FPS: 24},
		"n":                {Prompt: "p", N: 2},
		"aspect_ratio":     {Prompt: "p", AspectRatio: "3:2"},
		"width":            {Prompt: "p", Width: 640, Height: 480},
		"negative_prompt":  {Prompt: "p", NegativePrompt: "x"},
		"generate_audio":   {Prompt: "p", GenerateAudio: &on},
		"reference_images": {Prompt: "p", Inputs: []providers.Media{link(providers.Reference)}},
		"video":            {Prompt: "p", Extra: json.RawMessage(`{"video":7}`)},
	} {
		_, body, err := create(t, "ray-3.2", req)
		if fault := providers.AsFault(err); fault == nil || fault.Param != field || fault.Accepted != providers.NotAccepted || body != "" {
			t.Errorf("%s: got %v, sent %q", field, err, body)
		}
	}
}

// TestVideoLife: a link is good for an hour.
func TestVideoLife(t *testing.T) {
	t.Parallel()
	began := time.Now()
	table := providertest.VideoExchange{
		New:    func(client *http.Client) providers.VideoAdapter { return luma.NewVideos(client) },
		Answer: `{"id":"1","state":"completed","output":[{"type":"video","url":"https://h/1"}]}`,
	}
	got, err := table.Poll(t, providers.Ticket{Job: "1"})
	if err != nil || got.State != providers.JobDone || got.ExpiresAt.Before(began.Add(time.Hour)) ||
		got.ExpiresAt.After(time.Now().Add(time.Hour)) {
		t.Errorf("got %+v, %v, want it to die an hour after %s", got, err, began)
	}
}
