package zhipu_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"net/http"
	"os"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/providertest"
	"modelrelay/providers/zhipu"
)

const job = "8868902201637896192"

func adapter(client *http.Client) providers.VideoAdapter { return zhipu.NewVideos(client) }

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     adapter,
		Channel: providers.Channel{Vendor: "zhipu"},
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST /videos/generations":
				return providertest.VideoSubmit
			case "GET /async-result/" + job:
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
		Failure: providers.VideoFailure{Code: providers.FailedContent, Message: "1301: The content may be unsafe."},
		IdempotencyKey: func(req *http.Request) string {
			var body struct {
				Key string `json:"request_id"`
			}
			_ = json.NewDecoder(req.Body).Decode(&body)
			return body.Key
		},
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
		VideoTraits: providertest.VideoTraits{BareUploads: true, NoQueue: true},
	})
}

func link(role providers.InputRole) providers.Media {
	return providers.Media{Role: role, URL: "https://h/" + string(role)}
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	off := false
	for _, tc := range []struct {
		name, model string
		req         providers.VideoRequest
		want        string
	}{
		{"a prompt", "cogvideox-3", providers.VideoRequest{Prompt: "p"}, `{"model":"cogvideox-3","prompt":"p"}`},
		{
			"everything", "cogvideox-3",
			providers.VideoRequest{
				Prompt: "p", Seconds: "10.0", Width: 1920, Height: 1080, FPS: 60, GenerateAudio: &off, IdempotencyKey: "video_1-1",
				Extra:  json.RawMessage(`{"quality":"speed","request_id":"x"}`),
				Inputs: []providers.Media{link(providers.LastFrame), link(providers.FirstFrame)},
			},
			`{"duration":10,"fps":60,"image_url":["https://h/","https://h/last_frame"],"model":"cogvideox-3","prompt":"p","quality":"speed",` +
				`"request_id":"video_1-1","size":"1920x1080","with_audio":false}`,
		},
		{
			"an image alone", "cogvideox-2",
			providers.VideoRequest{Inputs: []providers.Media{link(providers.FirstFrame)}},
			`{"image_url":"https://h/","model":"cogvideox-2"}`,
		},
		{
			"words of a size", "cogvideox-3",
			providers.VideoRequest{Prompt: "p", AspectRatio: "9:16", Resolution: "1080p"},
			`{"model":"cogvideox-3","prompt":"p","size":"1080x1920"}`,
		},
		{
			"a reference", "vidu2-reference",
			providers.VideoRequest{Prompt: "p", AspectRatio: "1:1", Inputs: []providers.Media{link(providers.Reference)}},
			`{"aspect_ratio":"1:1","image_url":["https://h/reference"],"model":"vidu2-reference","prompt":"p"}`,
		},
	} {
		seen, err := providertest.VideoExchange{New: adapter, Model: tc.model, Answer: `{"id":"1"}`}.Submit(t, tc.req)
		if err != nil || len(seen) != 1 || seen[0].URI != "/videos/generations" || seen[0].Body != tc.want {
			t.Errorf("%s: got %+v, %v, want %s", tc.name, seen, err, tc.want)
		}
	}
}

func TestVideoRefuses(t *testing.T) {
	t.Parallel()
	seed := int64(7)
	references := make([]providers.Media, 4)
	for i := range references {
		references[i] = link(providers.Reference)
	}
	for _, tc := range []struct {
		model, field string
		req          providers.VideoRequest
	}{
		{"cogvideox-3", "prompt", providers.VideoRequest{}},
		{"cogvideox-3", "prompt", providers.VideoRequest{Prompt: strings.Repeat("é", 513)}},
		{"cogvideox-3", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "6"}},
		{"cogvideox-flash", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5"}},
		{"cogvideox-3", "fps", providers.VideoRequest{Prompt: "p", FPS: 24}},
		{"cogvideox-3", "seed", providers.VideoRequest{Prompt: "p", Seed: &seed}},
		{"cogvideox-3", "n", providers.VideoRequest{Prompt: "p", N: 2}},
		{"cogvideox-3", "negative_prompt", providers.VideoRequest{Prompt: "p", NegativePrompt: "n"}},
		{"cogvideox-3", "width", providers.VideoRequest{Prompt: "p", Width: 640, Height: 480}},
		{"cogvideox-3", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "4:3"}},
		{"cogvideox-3", "last_image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.LastFrame)}}},
		{"cogvideox-3", "reference_images", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.Reference)}}},
		{"cogvideox-3", "image", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{{Object: "o", ContentType: "image/webp", Size: 1}},
		}},
		{"cogvideox-3", "image", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{{Object: "o", ContentType: "image/png", Size: 6 << 20}},
		}},
		{"vidu2-start-end", "last_image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.FirstFrame)}}},
		{"vidu2-image", "image", providers.VideoRequest{Prompt: "p"}},
		{"vidu2-reference", "reference_images", providers.VideoRequest{Prompt: "p", Inputs: references}},
		{"viduq1-text", "prompt", providers.VideoRequest{}},
	} {
		providertest.VideoExchange{New: adapter, Model: tc.model}.Refuses(t, tc.field, tc.req)
	}
}

// TestVideoCodes: the vendor's code decides if it is more exact than the status.
func TestVideoCodes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status   int
		code     string
		kind     providers.Kind
		accepted providers.Accepted
		key      providers.KeyFault
	}{
		{429, "1113", providers.Upstream, providers.NotAccepted, providers.KeyExhausted},
		{429, "1305", providers.RateLimited, providers.NotAccepted, 0},
		{429, "1308", providers.Upstream, providers.NotAccepted, providers.KeyExhausted},
		{400, "1231", providers.Conflict, providers.AcceptedUnknown, 0},
		{400, "1211", providers.ModelNotFound, providers.NotAccepted, 0},
		{200, "1301", providers.Invalid, providers.NotAccepted, 0},
		{200, "1", providers.Upstream, providers.AcceptedUnknown, 0},
		{400, "1230", providers.Upstream, providers.AcceptedUnknown, 0},
	} {
		table := providertest.VideoExchange{
			New: adapter, Model: "cogvideox-3", Status: tc.status,
			Answer: `{"error":{"code":"` + tc.code + `","message":"m"}}`,
		}
		_, err := table.Submit(t, providers.VideoRequest{Prompt: "p"})
		if fault := providers.AsFault(err); fault == nil || fault.Kind != tc.kind || fault.Accepted != tc.accepted || fault.Key != tc.key ||
			fault.Code != tc.code {
			t.Errorf("%d, %s: got %+v", tc.status, tc.code, fault)
		}
	}
}
