package hailuo_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/hailuo"
	"modelrelay/providers/providertest"
)

const (
	firstJob  = "106916112212032"
	secondJob = "424010985738629"
)

func newVideos(client *http.Client) providers.VideoAdapter { return hailuo.NewVideos(client) }

func authorized(req *http.Request, key providers.Secret) bool {
	if strings.HasPrefix(req.URL.Path, "/v") {
		return req.Header.Get("Authorization") == "Bearer "+key.Reveal()
	}
	return req.Header.Get("Authorization") == "" // links need no key
}

func TestVideoFirst(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		// The first API stops no job.
		New: func(client *http.Client) providers.VideoAdapter {
			return struct{ providers.VideoAdapter }{newVideos(client)}
		},
		Channel: providers.Channel{Vendor: "hailuo"},
		Answers: os.DirFS("testdata/first"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.RequestURI() {
			case "POST /v1/video_generation":
				return providertest.VideoSubmit
			case "GET /v1/query/video_generation?task_id=" + firstJob:
				return providertest.VideoPoll
			case "GET /v1/files/retrieve?file_id=205258526306433":
				return providertest.VideoLink
			}
			return ""
		},
		Authorized: authorized,
		Job:        firstJob,
		Failure:    providers.VideoFailure{Code: providers.FailedContent, Message: "1027: output new_sensitive"},
		Upload: func(req *http.Request) (providertest.Upload, error) {
			var body struct {
				Image string `json:"first_frame_image"`
			}
			err := json.NewDecoder(req.Body).Decode(&body)
			return upload(body.Image, err)
		},
		VideoTraits: providertest.VideoTraits{BareUploads: true},
	})
}

func TestVideoSecond(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     newVideos,
		Model:   "MiniMax-H3",
		Channel: providers.Channel{Vendor: "hailuo"},
		Answers: os.DirFS("testdata/second"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.RequestURI() {
			case "POST /v2/video_generation":
				return providertest.VideoSubmit
			case "GET /v2/query/video_generation/" + secondJob:
				return providertest.VideoPoll
			case "DELETE /v2/video_generation/" + secondJob:
				return providertest.VideoCancel
			}
			return ""
		},
		Authorized: authorized,
		Job:        secondJob,
		Failure:    providers.VideoFailure{Code: providers.FailedContent, Message: "1027: the video is not allowed"},
		Upload: func(req *http.Request) (providertest.Upload, error) {
			var body struct {
				Content []struct {
					Role  string `json:"role"`
					Image struct {
						URL string `json:"url"`
					} `json:"image_url"`
				} `json:"content"`
			}
			if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
				return providertest.Upload{}, err
			}
			if len(body.Content) != 2 || body.Content[1].Role != "first_frame" {
				return providertest.Upload{}, errors.New("no first frame")
			}
			return upload(body.Content[1].Image.URL, nil)
		},
		VideoTraits: providertest.VideoTraits{
			BareUploads: true,
			CancelReads: "queued",
		},
	})
}

func upload(text string, err error) (providertest.Upload, error) {
	if err != nil {
		return providertest.Upload{}, err
	}
	encoded, found := strings.CutPrefix(text, "data:image/png;base64,")
	if !found {
		return providertest.Upload{}, errors.New("no data URL of a PNG")
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return providertest.Upload{Data: data}, err
}

func link(role providers.InputRole) providers.Media {
	return providers.Media{Role: role, URL: "https://h/" + string(role)}
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	first, last, reference := link(providers.FirstFrame), link(providers.LastFrame), link(providers.Reference)
	for _, tc := range []struct {
		name, model string
		req         providers.VideoRequest
		path, want  string
	}{
		{
			"a prompt", "MiniMax-Hailuo-2.3",
			providers.VideoRequest{Prompt: "p", Width: 1366, Height: 768, Seconds: "10.0"},
			"/v1",
			`{"duration":10,"model":"MiniMax-Hailuo-2.3","prompt":"p","resolution":"768P"}`,
		},
		{
			"two frames", "MiniMax-Hailuo-02",
			providers.VideoRequest{
				Resolution: "1080p", Extra: json.RawMessage(`{"prompt_optimizer":false}`),
				Inputs: []providers.Media{first, last},
			},
			"/v1",
			`{"first_frame_image":"https://h/","last_frame_image":"https://h/last_frame","model":"MiniMax-Hailuo-02","prompt_optimizer":false,"resolution":"1080P"}`,
		},
		{
			"a portrait from an image", "MiniMax-Hailuo-2.3-Fast",
			providers.VideoRequest{Width: 1080, Height: 1920, Seconds: "6", Inputs: []providers.Media{first}},
			"/v1",
			`{"duration":6,"first_frame_image":"https://h/","model":"MiniMax-Hailuo-2.3-Fast","resolution":"1080P"}`,
		},
		{
			"a subject", "S2V-01",
			providers.VideoRequest{Prompt: "p", Seconds: "6", Resolution: "720p", Inputs: []providers.Media{reference}},
			"/v1",
			`{"model":"S2V-01","prompt":"p","subject_reference":[{"image":["https://h/reference"],"type":"character"}]}`,
		},
		{
			"what is required", "MiniMax-H3",
			providers.VideoRequest{Prompt: "p"},
			"/v2",
			`{"content":[{"text":"p","type":"text"}],"duration":5,"model":"MiniMax-H3","ratio":"16:9","resolution":"768P"}`,
		},
		{
			"frames", "MiniMax-H3",
			providers.VideoRequest{Prompt: "p", Resolution: "2k", Seconds: "15", Inputs: []providers.Media{first, last}},
			"/v2",
			`{"content":[{"text":"p","type":"text"},{"image_url":{"url":"https://h/"},"role":"first_frame","type":"image_url"},` +
				`{"image_url":{"url":"https://h/last_frame"},"role":"last_frame","type":"image_url"}],"duration":15,"model":"MiniMax-H3","resolution":"2K"}`,
		},
		{
			"reference videos", "MiniMax-H3",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.SourceVideo), link(providers.SourceVideo)}},
			"/v2",
			`{"content":[{"text":"p","type":"text"},{"role":"reference_video","type":"video_url","video_url":{"url":"https://h/video"}},` +
				`{"role":"reference_video","type":"video_url","video_url":{"url":"https://h/video"}}],"duration":5,"model":"MiniMax-H3","resolution":"768P"}`,
		},
		{
			"references", "MiniMax-H3-Max",
			providers.VideoRequest{
				Prompt: "p", AspectRatio: "adaptive", Resolution: "480p", Inputs: []providers.Media{reference, link(providers.SourceAudio)},
				Extra: json.RawMessage(`{"content":[{"type":"video_url","video_url":{"url":"https://h/v"},"role":"reference_video"}],"duration":7}`),
			},
			"/v2",
			`{"content":[{"text":"p","type":"text"},{"image_url":{"url":"https://h/reference"},"role":"reference_image","type":"image_url"},` +
				`{"audio_url":{"url":"https://h/audio"},"role":"reference_audio","type":"audio_url"},` +
				`{"type":"video_url","video_url":{"url":"https://h/v"},"role":"reference_video"}],"duration":7,"model":"MiniMax-H3-Max","ratio":"adaptive","resolution":"480P"}`,
		},
	} {
		seen, err := providertest.VideoExchange{New: newVideos, Model: tc.model, Answer: `{"task_id":"1"}`}.Submit(t, tc.req)
		if err != nil || len(seen) != 1 || seen[0].URI != tc.path+"/video_generation" || seen[0].Body != tc.want {
			t.Errorf("%s: got %v, %v, want %s %s", tc.name, seen, err, tc.path, tc.want)
		}
	}
}

func TestVideoRefusals(t *testing.T) {
	t.Parallel()
	off, seed := false, int64(7)
	first, last, reference := link(providers.FirstFrame), link(providers.LastFrame), link(providers.Reference)
	with := func(inputs ...providers.Media) providers.VideoRequest {
		return providers.VideoRequest{Prompt: "p", Inputs: inputs}
	}
	for _, tc := range []struct {
		model, field string
		req          providers.VideoRequest
	}{
		{"MiniMax-Hailuo-2.3", "prompt", providers.VideoRequest{}},
		{"MiniMax-Hailuo-2.3", "prompt", providers.VideoRequest{Prompt: strings.Repeat("p", 2001)}},
		{"MiniMax-Hailuo-2.3", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "8"}},
		{"MiniMax-Hailuo-2.3", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "10", Resolution: "1080p"}},
		{"MiniMax-Hailuo-2.3", "width", providers.VideoRequest{Prompt: "p", Width: 1080, Height: 1920}}, // from text the video is wide
		{"MiniMax-Hailuo-2.3", "width", providers.VideoRequest{Prompt: "p", Width: 1280, Height: 720}},
		{"MiniMax-Hailuo-2.3", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "512p"}},
		{"MiniMax-Hailuo-2.3", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "9:16"}},
		{"MiniMax-Hailuo-2.3", "seed", providers.VideoRequest{Prompt: "p", Seed: &seed}},
		{"MiniMax-Hailuo-2.3", "fps", providers.VideoRequest{Prompt: "p", FPS: 24}},
		{"MiniMax-Hailuo-2.3", "n", providers.VideoRequest{Prompt: "p", N: 2}},
		{"MiniMax-Hailuo-2.3", "callback_url", providers.VideoRequest{Prompt: "p", Metadata: json.RawMessage(`{"callback_url":"https://h"}`)}},
		{"MiniMax-Hailuo-2.3", "last_image", with(first, last)},
		{"MiniMax-Hailuo-2.3-Fast", "image", providers.VideoRequest{Prompt: "p"}},
		{"MiniMax-Hailuo-2.3", "reference_images", with(reference)},
		{"MiniMax-Hailuo-2.3", "image", with(providers.Media{Object: "o", ContentType: "image/png", Size: 21 << 20})},
		{"MiniMax-Hailuo-02", "last_image", with(last)},
		{"MiniMax-Hailuo-02", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "512p"}},
		{"MiniMax-Hailuo-02", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "512p", Inputs: []providers.Media{first, last}}},
		{"S2V-01", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "10", Inputs: []providers.Media{reference}}},
		{"S2V-01", "reference_images", with(reference, reference)},
		{"T2V-01", "image", with(first)},
		{"MiniMax-H3", "prompt", providers.VideoRequest{Inputs: []providers.Media{first}}},
		{"MiniMax-H3", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "3"}},
		{"MiniMax-H3-Max", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "4"}},
		{"MiniMax-H3", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "2:3"}},
		{"MiniMax-H3", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "adaptive"}},
		{"MiniMax-H3", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "16:9", Inputs: []providers.Media{first}}},
		{"MiniMax-H3", "generate_audio", providers.VideoRequest{Prompt: "p", GenerateAudio: &off}},
		{"MiniMax-H3", "reference_images", with(first, reference)},
		{"MiniMax-H3", "audio", with(link(providers.SourceAudio))},
		{"MiniMax-H3", "video", with(first, link(providers.SourceVideo))},
		{"MiniMax-H3", "video", with(link(providers.SourceVideo), link(providers.SourceVideo), link(providers.SourceVideo),
			link(providers.SourceVideo))},
		{"MiniMax-H3", "reference_images", with(append(slices.Repeat([]providers.Media{reference}, 9), link(providers.SourceAudio),
			link(providers.SourceVideo), link(providers.SourceVideo), link(providers.SourceVideo))...)},
		{"MiniMax-H3", "last_image", with(last)},
		{"MiniMax-H3", "content", providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"content":"x"}`)}},
	} {
		providertest.VideoExchange{New: newVideos, Model: tc.model, Answer: `{"task_id":"1"}`}.Refuses(t, tc.field, tc.req)
	}
}

// TestVideoCodes: the vendor's own code decides the outcome of a create, for every status below 500.
func TestVideoCodes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		model    string
		status   int
		body     string
		kind     providers.Kind
		blame    providers.Blame
		key      providers.KeyFault
		accepted providers.Accepted
	}{
		{"MiniMax-Hailuo-02", 200, `{"base_resp":{"status_code":1026}}`, providers.Invalid, providers.BlameNone, 0, providers.NotAccepted},
		{
			"MiniMax-Hailuo-02", 200, `{"base_resp":{"status_code":2049}}`, providers.Upstream, providers.BlameKey, providers.KeyRefused,
			providers.NotAccepted,
		},
		{
			"MiniMax-Hailuo-02", 200, `{"base_resp":{"status_code":1008}}`, providers.Upstream, providers.BlameKey, providers.KeyExhausted,
			providers.NotAccepted,
		},
		{
			"MiniMax-Hailuo-02", 200, `{"base_resp":{"status_code":"2056"}}`, providers.Upstream, providers.BlameKey, providers.KeyExhausted,
			providers.NotAccepted,
		},
		{
			"MiniMax-Hailuo-02", 200, `{"base_resp":{"status_code":2061}}`, providers.Upstream, providers.BlameKey, providers.KeyForbidden,
			providers.NotAccepted,
		},
		{"MiniMax-Hailuo-02", 200, `{"base_resp":{"status_code":1039}}`, providers.RateLimited, providers.BlameKey, 0, providers.NotAccepted},
		{
			"MiniMax-Hailuo-02", 200, `{"base_resp":{"status_code":1013}}`, providers.Upstream, providers.BlameChannel, 0,
			providers.AcceptedUnknown,
		},
		{
			"MiniMax-Hailuo-02", 200, `{"base_resp":{"status_code":1001}}`, providers.Upstream, providers.BlameChannel, 0,
			providers.AcceptedUnknown,
		},
		{
			"MiniMax-Hailuo-02", 200, `{"base_resp":{"status_code":4711}}`, providers.Upstream, providers.BlameChannel, 0,
			providers.AcceptedUnknown,
		},
		{
			"MiniMax-Hailuo-02", 200, `{"base_resp":{"status_code":0},"task_id":""}`, providers.Upstream, providers.BlameChannel, 0,
			providers.AcceptedUnknown,
		},
		{
			"MiniMax-Hailuo-02", 500, `{"base_resp":{"status_code":1002}}`, providers.Upstream, providers.BlameChannel, 0,
			providers.AcceptedUnknown,
		},
		{
			"MiniMax-H3", 400, `{"error":{"message":"no plan (2061)"}}`, providers.Upstream, providers.BlameKey, providers.KeyForbidden,
			providers.NotAccepted,
		},
		{
			"MiniMax-H3", 402, `{"error":{"message":"no money (1008)"}}`, providers.Upstream, providers.BlameKey, providers.KeyExhausted,
			providers.NotAccepted,
		},
		{
			"MiniMax-H3", 429, `{"error":{"message":"used up (2056)"}}`, providers.Upstream, providers.BlameKey, providers.KeyExhausted,
			providers.NotAccepted,
		},
		{"MiniMax-H3", 400, `{"error":{"message":"something (1000)"}}`, providers.Upstream, providers.BlameChannel, 0, providers.AcceptedUnknown},
		{"MiniMax-H3", 400, `{"error":{"message":"something (4711)"}}`, providers.Invalid, providers.BlameNone, 0, providers.NotAccepted},
	} {
		_, err := providertest.VideoExchange{New: newVideos, Model: tc.model, Status: tc.status, Answer: tc.body}.Submit(t,
			providers.VideoRequest{Prompt: "p"})
		fault := providers.AsFault(err)
		if fault == nil || fault.Kind != tc.kind || fault.Blame != tc.blame || fault.Key != tc.key || fault.Accepted != tc.accepted {
			t.Errorf("%d %s: got %+v", tc.status, tc.body, fault)
		}
	}
}

// TestVideoAnswers: answers about a job in addition to the fixtures.
func TestVideoAnswers(t *testing.T) {
	t.Parallel()
	second := providers.Ticket{Job: "1", Data: json.RawMessage(`{"second":true}`)}
	for _, tc := range []struct {
		name, body string
		ticket     providers.Ticket
		want       providers.VideoFailure
	}{
		{
			"no reason", `{"status":"Fail","base_resp":{"status_code":0,"status_msg":"success"}}`,
			providers.Ticket{Job: "1"},
			providers.VideoFailure{Code: providers.FailedVendor, Message: `The upstream's job ended as "Fail".`},
		},
		{
			"its own", `{"task":{"status":"failed","error":{"code":1024,"message":"m"}}}`, second,
			providers.VideoFailure{Code: providers.FailedVendor, Message: "1024: m", Retryable: true},
		},
		{
			"cancelled", `{"task":{"status":"cancelled"}}`, second,
			providers.VideoFailure{Code: providers.FailedVendor, Message: `The upstream's job ended as "cancelled".`},
		},
		{
			"expired", `{"task":{"status":"expired"}}`, second,
			providers.VideoFailure{Code: providers.FailedTimeout, Message: `The upstream's job ended as "expired".`},
		},
	} {
		got, err := providertest.VideoExchange{New: newVideos, Answer: tc.body}.Poll(t, tc.ticket)
		if err != nil || got.State != providers.JobFailed || got.Failure == nil || *got.Failure != tc.want {
			t.Errorf("%s: got %+v, %v, %v", tc.name, got, got.Failure, err)
		}
	}
	done, err := providertest.VideoExchange{
		New:    newVideos,
		Answer: `{"task":{"status":"succeeded","content":{"url":"https://h/v"},"duration":5,"created_at":10,"updated_at":70,"usage":{"total_seconds":9,"input_seconds":4,"output_seconds":5}}}`,
	}.Poll(t, second)
	if err != nil || done.State != providers.JobDone || done.Seconds != "5" || done.Source != "4" || done.Price != "9 seconds" ||
		done.Took != time.Minute {
		t.Errorf("got %+v, %v", done, err)
	}
	// A refused poll is no report about the job, and a result that comes late is polled again.
	for body, ticket := range map[string]providers.Ticket{
		`{"status":"","base_resp":{"status_code":1002,"status_msg":"slow"}}`:       {Job: "1"},
		`{"status":"Success","file_id":"","base_resp":{"status_code":0}}`:          {Job: "1"},
		`{"task":{"status":"succeeded","content":{"url":""},"resolution":"768P"}}`: second,
	} {
		if got, err := (providertest.VideoExchange{New: newVideos, Answer: body}).Poll(t, ticket); err == nil {
			t.Errorf("%s: got %+v", body, got)
		}
	}
}

// TestVideoNotStopped: what the vendor does not stop is said to be so.
func TestVideoNotStopped(t *testing.T) {
	t.Parallel()
	for _, ticket := range []providers.Ticket{{Job: "1"}, {Job: "1", Data: json.RawMessage(`{"second":true}`)}} {
		seen, err := providertest.VideoExchange{New: newVideos, Answer: `{"task":{"status":"running"}}`}.Cancel(t, ticket)
		fault := providers.AsFault(err)
		if fault == nil || fault.Kind != providers.Conflict || fault.Accepted != providers.NotAccepted || fault.Retryable() {
			t.Errorf("got %v", err)
		}
		for _, request := range seen {
			if request.Method != http.MethodGet {
				t.Errorf("got %v", request)
			}
		}
	}
}
