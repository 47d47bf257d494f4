package xai_test

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
	"modelrelay/providers/xai"
)

const jobPath = "/videos/d97415a1-5796-b7ec-379f-4e6819e08fdf"

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     func(client *http.Client) providers.VideoAdapter { return xai.NewVideos(client) },
		Channel: providers.Channel{Vendor: "xai"},
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST /videos/generations":
				return providertest.VideoSubmit
			case "GET " + jobPath:
				return providertest.VideoPoll
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			if strings.HasPrefix(req.URL.Path, "/videos/") {
				return req.Header.Get("Authorization") == "Bearer "+key.Reveal()
			}
			return req.Header.Get("Authorization") == "" // links need no key
		},
		Job:         "d97415a1-5796-b7ec-379f-4e6819e08fdf",
		Failure:     providers.VideoFailure{Code: providers.FailedInput, Message: "invalid_argument: The image could not be read."},
		Upload:      upload,
		VideoTraits: providertest.VideoTraits{BareUploads: true, NoQueue: true},
	})
}

func upload(req *http.Request) (providertest.Upload, error) {
	var body struct {
		Image struct {
			URL string `json:"url"`
		} `json:"image"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return providertest.Upload{}, err
	}
	encoded, found := strings.CutPrefix(body.Image.URL, "data:image/png;base64,")
	if !found {
		return providertest.Upload{}, errors.New("no data URL of a PNG")
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return providertest.Upload{Data: data}, err
}

// create submits to a server that accepts it, and returns what that saw.
func create(t *testing.T, model string, req providers.VideoRequest) (path, body string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		path, body = r.URL.Path, string(raw)
		_, _ = io.WriteString(w, `{"request_id":"1"}`)
	}))
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	_, err = xai.NewVideos(client).Submit(t.Context(),
		providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k", Model: model}, req)
	return path, body, err
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	on := true
	link := func(role providers.InputRole) providers.Media {
		return providers.Media{Role: role, URL: "https://h/" + string(role)}
	}
	for _, tc := range []struct {
		name, model string
		req         providers.VideoRequest
		path, want  string
	}{
		{
			"a prompt", "grok-imagine-video",
			providers.VideoRequest{Prompt: "p"},
			"/videos/generations",
			`{"model":"grok-imagine-video","prompt":"p"}`,
		},
		{
			"everything", "grok-imagine-video-1.5",
			providers.VideoRequest{
				Prompt: "p", Seconds: "8.0", Width: 1920, Height: 1080, GenerateAudio: &on, Extra: json.RawMessage(`{"user":"u","prompt":"x"}`),
				Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)},
			},
			"/videos/generations",
			`{"aspect_ratio":"16:9","duration":8,"generate_audio":true,"image":{"url":"https://h/"},"last_frame":{"url":"https://h/last_frame"},` +
				`"model":"grok-imagine-video-1.5","prompt":"p","resolution":"1080p","user":"u"}`,
		},
		{
			"references", "grok-imagine-video",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.Reference), link(providers.Reference)}},
			"/videos/generations", `{"model":"grok-imagine-video","prompt":"p","reference_images":[{"url":"https://h/reference"},{"url":"https://h/reference"}]}`,
		},
		{
			"an edit", "grok-imagine-video",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.SourceVideo)}},
			"/videos/edits", `{"model":"grok-imagine-video","prompt":"p","video":{"url":"https://h/video"}}`,
		},
		{
			"an extension", "grok-imagine-video",
			providers.VideoRequest{Prompt: "p", Seconds: "6", Inputs: []providers.Media{link(providers.ExtendVideo)}},
			"/videos/extensions", `{"duration":6,"model":"grok-imagine-video","prompt":"p","video":{"url":"https://h/extend"}}`,
		},
	} {
		path, body, err := create(t, tc.model, tc.req)
		if err != nil || path != tc.path || body != tc.want {
			t.Errorf("%s: got %s %s, %v, want %s %s", tc.name, path, body, err, tc.path, tc.want)
		}
	}
	seed := int64(7)
	for field, req := range map[string]providers.VideoRequest{
		"seconds":      {Prompt: "p", Seconds: "5.5"},
		"seed":         {Prompt: "p", Seed: &seed},
		"aspect_ratio": {Prompt: "p", AspectRatio: "21:9"},
		"width":        {Prompt: "p", Width: 1366, Height: 768},
		"seconds ":     {Prompt: "p", Seconds: "5", Inputs: []providers.Media{link(providers.SourceVideo)}},
		"resolution":   {Prompt: "p", Resolution: "720p", Inputs: []providers.Media{link(providers.ExtendVideo)}},
		"audio":        {Prompt: "p", Inputs: []providers.Media{link(providers.SourceAudio)}},
	} {
		_, body, err := create(t, "grok-imagine-video", req)
		if fault := providers.AsFault(err); fault == nil || fault.Param != strings.TrimSpace(field) || fault.Accepted != providers.NotAccepted ||
			body != "" {
			t.Errorf("%s: got %v, sent %q", field, err, body)
		}
	}
}

// TestVideoAnswers: the status for the vendor's rarer answers about a job.
func TestVideoAnswers(t *testing.T) {
	t.Parallel()
	withheld := failed("done", providers.FailedContent, "respect_moderation: The video did not pass the upstream's moderation.", false)
	withheld.Failure.Billed, withheld.Price = true, "4000000000 ticks"
	for _, tc := range []struct {
		name   string
		status int
		body   string
		want   providers.VideoStatus
	}{
		{"pending without a body", 202, ``, providers.VideoStatus{State: providers.JobRunning, Progress: -1, VendorState: "pending"}},
		{
			"withheld", 200, `{"status":"done","video":{"url":"https://h/v","respect_moderation":false},"usage":{"cost_in_usd_ticks":4000000000}}`,
			withheld,
		},
		{"expired", 200, `{"status":"expired"}`, failed("expired", providers.FailedTimeout, "expired: The upstream gave the job up.", false)},
		{
			"the vendor's own failure", 200, `{"status":"failed","error":{"code":"internal_error","message":"sorry"}}`,
			failed("failed", providers.FailedVendor, "internal_error: sorry", true),
		},
		{
			"a link without a word", 200, `{"video":{"url":"https://h/v"}}`,
			providers.VideoStatus{State: providers.JobDone, Progress: -1, Outputs: 1},
		},
	} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.body)
		}))
		t.Cleanup(server.Close)
		client := upstream.NewClient(nil)
		t.Cleanup(client.CloseIdleConnections)
		got, err := xai.NewVideos(client).Poll(t.Context(), providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k"},
			providers.Ticket{Job: "1"})
		if err != nil || !equal(got, tc.want) {
			t.Errorf("%s: got %+v, %v, want %+v", tc.name, got, err, tc.want)
		}
	}
}

func failed(word, code, message string, retryable bool) providers.VideoStatus {
	return providers.VideoStatus{
		State: providers.JobFailed, Progress: -1, VendorState: word,
		Failure: &providers.VideoFailure{Code: code, Message: message, Retryable: retryable},
	}
}

func equal(a, b providers.VideoStatus) bool {
	left, _ := json.Marshal(a) // a status always marshals
	right, _ := json.Marshal(b)
	return string(left) == string(right)
}

// TestVideoEdit: an edit is billed by the seconds of its source too, which are those of the video.
func TestVideoEdit(t *testing.T) {
	t.Parallel()
	for path, want := range map[providers.InputRole]string{providers.SourceVideo: "8.5", providers.ExtendVideo: ""} {
		server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"request_id":"1","status":"done","video":{"url":"https://h/v","duration":8.5}}`)
		}))
		t.Cleanup(server.Close)
		videos := xai.NewVideos(server.Client())
		to := providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k", Model: "grok-imagine-video"}
		ticket, err := videos.Submit(t.Context(), to,
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{{Role: path, URL: "https://h/v"}}})
		if err != nil {
			t.Fatal(err)
		}
		if got, err := videos.Poll(t.Context(), to, ticket); err != nil || got.Seconds != "8.5" || got.Source != want {
			t.Errorf("%s: got %+v, %v", path, got, err)
		}
	}
}
