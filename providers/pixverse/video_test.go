package pixverse_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"regexp"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/pixverse"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
)

const job = "343252978602905"

var uuid = regexp.MustCompile(`^[0-9a-f]{8}-[0-9a-f]{4}-4[0-9a-f]{3}-[89ab][0-9a-f]{3}-[0-9a-f]{12}$`)

func newVideos(client *http.Client) providers.VideoAdapter { return pixverse.NewVideos(client) }

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     newVideos,
		Channel: providers.Channel{Vendor: "pixverse"},
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST /openapi/v2/video/text/generate", "POST /openapi/v2/video/img/generate":
				return providertest.VideoSubmit
			case "POST /openapi/v2/image/upload":
				return providertest.VideoUpload
			case "GET /openapi/v2/video/result/" + job:
				return providertest.VideoPoll
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			if strings.HasPrefix(req.URL.Path, "/openapi/v2/") {
				return req.Header.Get("API-KEY") == key.Reveal() && uuid.MatchString(req.Header.Get("Ai-trace-id"))
			}
			return req.Header.Get("API-KEY") == "" // links need no key
		},
		Job: job,
		Failure: providers.VideoFailure{
			Code:    providers.FailedContent,
			Message: "status 7: The upstream's moderation did not let the video pass.",
		},
		Upload: func(req *http.Request) (providertest.Upload, error) {
			file, header, err := req.FormFile("image")
			if err != nil {
				return providertest.Upload{}, err
			}
			defer file.Close()
			data, err := io.ReadAll(file)
			return providertest.Upload{Name: header.Filename, ContentType: header.Header.Get("Content-Type"), Data: data}, err
		},
		VideoTraits: providertest.VideoTraits{NoQueue: true},
	})
}

func link(role providers.InputRole) providers.Media {
	return providers.Media{Role: role, URL: "https://h/" + string(role)}
}

// vendor accepts everything, with an id for each upload.
type vendor struct {
	traces  map[string]bool
	uploads []string
	path    string
	body    string
}

func (v *vendor) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	v.traces[r.Header.Get("Ai-Trace-Id")] = true
	if field := map[string]string{"/openapi/v2/image/upload": "image_url", "/openapi/v2/media/upload": "file_url"}[r.URL.Path]; field != "" {
		v.uploads = append(v.uploads, r.FormValue(field))
		_, _ = fmt.Fprintf(w, `{"ErrCode":0,"ErrMsg":"Success","Resp":{%q:%d}}`,
			map[string]string{"image_url": "img_id", "file_url": "media_id"}[field], len(v.uploads))
		return
	}
	raw, _ := io.ReadAll(r.Body)
	v.path, v.body = strings.TrimPrefix(r.URL.Path, "/openapi/v2/video/"), string(raw)
	_, _ = io.WriteString(w, `{"ErrCode":0,"ErrMsg":"Success","Resp":{"video_id":343252978602905}}`)
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	on, seed := true, int64(7)
	first, last, reference := link(providers.FirstFrame), link(providers.LastFrame), link(providers.Reference)
	for _, tc := range []struct {
		name, model string
		req         providers.VideoRequest
		path, want  string
		uploads     int
	}{
		{
			"what is required", "v6",
			providers.VideoRequest{Prompt: "p"},
			"text/generate",
			`{"aspect_ratio":"16:9","duration":5,"model":"v6","prompt":"p","quality":"540p"}`, 0,
		},
		{
			"everything", "v6",
			providers.VideoRequest{
				Prompt: "p", Seconds: "15", Width: 1080, Height: 1920, Seed: &seed, GenerateAudio: &on,
				Extra: json.RawMessage(`{"generate_multi_clip_switch":true,"duration":1}`),
			},
			"text/generate",
			`{"aspect_ratio":"9:16","duration":15,"generate_audio_switch":true,"generate_multi_clip_switch":true,"model":"v6","prompt":"p","quality":"1080p","seed":7}`, 0,
		},
		{
			"an image", "v5",
			providers.VideoRequest{Prompt: "p", Seconds: "8", Width: 1280, Height: 720, Inputs: []providers.Media{first}},
			"img/generate",
			`{"duration":8,"img_id":1,"model":"v5","prompt":"p","quality":"720p"}`, 1,
		},
		{
			"two frames", "v5.5",
			providers.VideoRequest{Prompt: "p", Seconds: "10", Inputs: []providers.Media{last, first}},
			"transition/generate",
			`{"duration":10,"first_frame_img":2,"last_frame_img":1,"model":"v5.5","prompt":"p","quality":"540p"}`, 2,
		},
		{
			"references", "v6",
			providers.VideoRequest{Prompt: "@cat meets @dog and @cat runs", AspectRatio: "21:9", Inputs: []providers.Media{reference, reference}},
			"fusion/generate",
			`{"aspect_ratio":"21:9","duration":5,"image_references":[{"img_id":1,"ref_name":"cat","type":"subject"},{"img_id":2,"ref_name":"dog","type":"subject"}],` +
				`"model":"v6","prompt":"@cat meets @dog and @cat runs","quality":"540p"}`, 2,
		},
		{
			"an extension", "v6",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.ExtendVideo)}},
			"extend/generate",
			`{"duration":5,"model":"v6","prompt":"p","quality":"540p","video_media_id":1}`, 1,
		},
		{
			"a model that is not known", "v9",
			providers.VideoRequest{Prompt: "p", Seconds: "40", Resolution: "4k"},
			"text/generate",
			`{"aspect_ratio":"16:9","duration":40,"model":"v9","prompt":"p","quality":"4k"}`, 0,
		},
	} {
		v := &vendor{traces: make(map[string]bool)}
		adapter, to := serve(t, v)
		to.Model = tc.model
		ticket, err := adapter.Submit(t.Context(), to, tc.req)
		if err != nil || ticket.Job != job || v.path != tc.path || v.body != tc.want || len(v.uploads) != tc.uploads {
			t.Errorf("%s: got %+v, %v, %s %s after %v, want %s %s", tc.name, ticket, err, v.path, v.body, v.uploads, tc.path, tc.want)
		}
		for i, uploaded := range v.uploads {
			if uploaded != tc.req.Inputs[i].URL {
				t.Errorf("%s: got %q as upload %d", tc.name, uploaded, i)
			}
		}
		if len(v.traces) != len(v.uploads)+1 || v.traces[""] {
			t.Errorf("%s: got traces %v, want another for each request", tc.name, v.traces)
		}
	}
}

// serve starts a vendor and returns the adapter and its target there.
func serve(t *testing.T, vendor http.Handler) (*pixverse.Videos, providers.Target) {
	t.Helper()
	server := httptest.NewServer(vendor)
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	// Both ways of writing the address lead to the same paths.
	return pixverse.NewVideos(client), providers.Target{Channel: providers.Channel{BaseURL: server.URL + "/openapi/v2"}, Key: "k", Model: "v6"}
}

func TestVideoRefusals(t *testing.T) {
	t.Parallel()
	on := true
	first, last, reference := link(providers.FirstFrame), link(providers.LastFrame), link(providers.Reference)
	with := func(prompt string, inputs ...providers.Media) providers.VideoRequest {
		return providers.VideoRequest{Prompt: prompt, Inputs: inputs}
	}
	for _, tc := range []struct {
		model, field string
		req          providers.VideoRequest
	}{
		{"v6", "prompt", with("", first)},
		{"v6", "prompt", with(strings.Repeat("p", 5001))},
		{"v6", "prompt", with(strings.Repeat("p", 2049), first, last)},
		{"v5", "prompt", with(strings.Repeat("p", 2049))},
		{"v6", "prompt", with("p", reference)},
		{"v6", "prompt", with("@a @b ", reference)},
		{"v6", "prompt", with("@"+strings.Repeat("n", 31)+" ", reference)},
		{"v6", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "16"}},
		{"v6", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5.5"}},
		{"v5", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "10"}},
		{"v5.5", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "10", Resolution: "1080p"}},
		{"v3.5", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "8", Width: 1920, Height: 1080}},
		{"v6", "width", providers.VideoRequest{Prompt: "p", Width: 854, Height: 480}},
		{"v6", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "480p"}},
		{"v5", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "21:9"}},
		{"v6", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "16:9", Inputs: []providers.Media{first}}},
		{"v6", "n", providers.VideoRequest{Prompt: "p", N: 2}},
		{"v6", "fps", providers.VideoRequest{Prompt: "p", FPS: 24}},
		{"v6", "negative_prompt", providers.VideoRequest{Prompt: "p", NegativePrompt: "n"}},
		{"v5", "generate_audio", providers.VideoRequest{Prompt: "p", GenerateAudio: &on}},
		{"v6", "last_image", with("p", last)},
		{"v6", "reference_images", with("@a ", first, reference)},
		{"v4", "reference_images", with("@a ", reference)},
		{"v5", "reference_images", with("@a @b @c @d ", reference, reference, reference, reference)},
		{"v6", "image", with("p", providers.Media{Object: "o", ContentType: "image/png", Size: 21 << 20})},
		{"v6", "image", with("p", providers.Media{Object: "o", ContentType: "image/gif", Size: 1})},
		{"v6", "video", with("p", first, link(providers.ExtendVideo))},
		{"v6", "video", with("p", providers.Media{Role: providers.ExtendVideo, Object: "o", ContentType: "video/mp4", Size: 1})},
	} {
		providertest.VideoExchange{New: newVideos, Model: tc.model, Answer: `{}`}.Refuses(t, tc.field, tc.req)
	}
}

// TestVideoCodes: the vendor's code in the body decides the outcome of a request. The status is mostly 200.
func TestVideoCodes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status   int
		body     string
		kind     providers.Kind
		blame    providers.Blame
		key      providers.KeyFault
		accepted providers.Accepted
	}{
		{200, `{"ErrCode":500063,"ErrMsg":"moderated"}`, providers.Invalid, providers.BlameNone, 0, providers.NotAccepted},
		{200, `{"ErrCode":500020}`, providers.Upstream, providers.BlameKey, providers.KeyRefused, providers.NotAccepted},
		{200, `{"ErrCode":500090}`, providers.Upstream, providers.BlameKey, providers.KeyExhausted, providers.NotAccepted},
		{200, `{"ErrCode":500060}`, providers.Upstream, providers.BlameKey, providers.KeyExhausted, providers.NotAccepted},
		{200, `{"ErrCode":500069}`, providers.RateLimited, providers.BlameKey, 0, providers.NotAccepted},
		{200, `{"ErrCode":500100}`, providers.Upstream, providers.BlameChannel, 0, providers.AcceptedUnknown},
		{200, `{"ErrCode":99999}`, providers.Upstream, providers.BlameChannel, 0, providers.AcceptedUnknown},
		{200, `{"ErrCode":1234}`, providers.Upstream, providers.BlameChannel, 0, providers.AcceptedUnknown},
		{200, `{"ErrCode":0,"Resp":null}`, providers.Upstream, providers.BlameChannel, 0, providers.AcceptedUnknown},
		{200, `{"ErrCode":0,"Resp":[]}`, providers.Upstream, providers.BlameChannel, 0, providers.AcceptedUnknown},
		{
			400, `{"err_code":500090,"err_msg":"no balance"}`, providers.Upstream, providers.BlameKey, providers.KeyExhausted,
			providers.NotAccepted,
		},
		{500, `{"ErrCode":400017}`, providers.Invalid, providers.BlameNone, 0, providers.NotAccepted},
		{500, `{"ErrCode":500069}`, providers.Upstream, providers.BlameChannel, 0, providers.AcceptedUnknown},
	} {
		_, err := providertest.VideoExchange{New: newVideos, Model: "v6", Status: tc.status, Answer: tc.body}.Submit(t,
			providers.VideoRequest{Prompt: "p"})
		fault := providers.AsFault(err)
		if fault == nil || fault.Kind != tc.kind || fault.Blame != tc.blame || fault.Key != tc.key || fault.Accepted != tc.accepted {
			t.Errorf("%d %s: got %+v", tc.status, tc.body, fault)
		}
	}
}

// TestVideoUploadFails: a video whose image did not arrive was not paid, whatever happened to the image.
func TestVideoUploadFails(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		body   string
		kind   providers.Kind
		words  string
	}{
		{200, `{"ErrCode":500054,"ErrMsg":"the image is not allowed"}`, providers.Invalid, "the image is not allowed"},
		{200, `{"ErrCode":0,"Resp":{}}`, providers.Upstream, ""},
		{200, `{"ErrCode":0,"Resp":{"img_id":"x"}}`, providers.Upstream, ""},
		{502, `<html>`, providers.Upstream, ""},
	} {
		seen, err := providertest.VideoExchange{New: newVideos, Model: "v6", Status: tc.status, Answer: tc.body}.Submit(
			t, providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.FirstFrame)}})
		fault := providers.AsFault(err)
		if fault == nil || fault.Kind != tc.kind || fault.Accepted != providers.NotAccepted || !strings.Contains(fault.Message, tc.words) ||
			len(seen) != 1 {
			t.Errorf("%s: got %+v after %v", tc.body, fault, seen)
		}
	}
}

// TestVideoAnswers: the vendor's numbers beyond the fixtures.
func TestVideoAnswers(t *testing.T) {
	t.Parallel()
	for number, state := range map[string]providers.VideoState{
		"0": providers.JobRunning, "2": providers.JobRunning, "3": providers.JobRunning, "6": providers.JobForgotten, "8": providers.JobFailed,
		"9": providers.JobFailed, "10": providers.JobFailed, `"1"`: providers.JobDone,
	} {
		got, err := providertest.VideoExchange{
			New:    newVideos,
			Answer: `{"ErrCode":0,"Resp":{"url":"https://h/v","status":` + number + `}}`,
		}.Poll(t, providers.Ticket{Job: "1"})
		if err != nil || got.State != state || (got.Failure != nil) != (state == providers.JobFailed || state == providers.JobForgotten) {
			t.Errorf("%s: got %+v, %v", number, got, err)
		}
	}
	for _, body := range []string{`{"ErrCode":0,"Resp":{"status":1,"url":""}}`, `{"ErrCode":500020}`} {
		if got, err := (providertest.VideoExchange{New: newVideos, Answer: body}).Poll(t, providers.Ticket{Job: "1"}); err == nil {
			t.Errorf("%s: got %+v", body, got)
		}
	}
}

// TestVideoBusyLook: an answer of high load is no report about the job, whatever its status. The job does not count as forgotten.
func TestVideoBusyLook(t *testing.T) {
	t.Parallel()
	for _, status := range []int{200, 404, 410, 500} {
		got, err := providertest.VideoExchange{New: newVideos, Status: status, Answer: `{"ErrCode":500069,"ErrMsg":"busy"}`}.Poll(t,
			providers.Ticket{Job: "1"})
		if err == nil {
			t.Errorf("%d: got %+v, want the look to have failed", status, got)
		}
	}
	for _, code := range []string{"500008", "500064"} {
		got, err := providertest.VideoExchange{New: newVideos, Answer: `{"ErrCode":` + code + `}`}.Poll(t, providers.Ticket{Job: "1"})
		if err != nil || got.State != providers.JobForgotten {
			t.Errorf("%s: got %+v, %v, want a forgotten job", code, got, err)
		}
	}
}
