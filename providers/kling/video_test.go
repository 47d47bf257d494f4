package kling_test

import (
	"encoding/base64"
	"encoding/json"
	"net/http"
	"os"
	"path"
	"strings"
	"testing"
	"time"

	"github.com/golang-jwt/jwt/v5"

	"modelrelay/providers"
	"modelrelay/providers/kling"
	"modelrelay/providers/providertest"
)

const job = "893605946402811985"

func adapter(client *http.Client) providers.VideoAdapter { return kling.NewVideos(client) }

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:         adapter,
		Channel:     providers.Channel{Vendor: "kling"},
		Answers:     os.DirFS("testdata/video"),
		VideoTraits: providertest.VideoTraits{Lists: true, LooksUp: true, BareUploads: true},
		Step: func(req *http.Request) providertest.VideoStep {
			switch {
			case req.Method == http.MethodPost && (req.URL.Path == "/text-to-video/up" || req.URL.Path == "/image-to-video/up"):
				return providertest.VideoSubmit
			case req.Method == http.MethodGet && req.URL.RequestURI() == "/tasks?task_ids="+job:
				return providertest.VideoPoll
			case req.Method == http.MethodGet && req.URL.Path == "/tasks" && req.URL.Query().Has("external_task_ids"):
				return providertest.VideoFind
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
		Failure: providers.VideoFailure{Code: providers.FailedContent, Message: "Failure to pass the risk control system"},
		IdempotencyKey: func(req *http.Request) string {
			if req.Method == http.MethodGet {
				return req.URL.Query().Get("external_task_ids")
			}
			var body struct {
				Options struct {
					Key string `json:"external_task_id"`
				} `json:"options"`
			}
			_ = json.NewDecoder(req.Body).Decode(&body)
			return body.Options.Key
		},
		Upload: func(req *http.Request) (providertest.Upload, error) {
			var body struct {
				Contents []struct {
					URL string `json:"url"`
				} `json:"contents"`
			}
			if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
				return providertest.Upload{}, err
			}
			data, err := base64.StdEncoding.DecodeString(body.Contents[1].URL)
			return providertest.Upload{Data: data}, err
		},
	})
}

// TestLegacy: the older API, with an access key and its secret.
func TestLegacy(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     adapter,
		Channel: providers.Channel{Vendor: "kling"},
		Key:     "access-1:%s",
		Answers: os.DirFS("testdata/legacy"),
		Step: func(req *http.Request) providertest.VideoStep {
			dir, name := path.Split(req.URL.Path)
			switch {
			case req.Method == http.MethodPost && dir == "/v1/videos/" && (name == "text2video" || name == "image2video"):
				return providertest.VideoSubmit
			case req.Method == http.MethodGet && dir == "/v1/videos/text2video/" && name == job:
				return providertest.VideoPoll
			case req.Method == http.MethodGet && dir == "/v1/videos/text2video/":
				return providertest.VideoFind
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			if strings.HasPrefix(req.URL.Path, "/result") {
				return req.Header.Get("Authorization") == ""
			}
			return signed(req, key)
		},
		Job:     job,
		Failure: providers.VideoFailure{Code: providers.FailedContent, Message: "Failure to pass the risk control system"},
		IdempotencyKey: func(req *http.Request) string {
			if req.Method == http.MethodGet {
				return path.Base(req.URL.Path)
			}
			var body struct {
				Key string `json:"external_task_id"`
			}
			_ = json.NewDecoder(req.Body).Decode(&body)
			return body.Key
		},
		VideoTraits: providertest.VideoTraits{LooksUp: true, BareUploads: true},
		Upload: func(req *http.Request) (providertest.Upload, error) {
			var body struct {
				Image []byte `json:"image"`
			}
			err := json.NewDecoder(req.Body).Decode(&body)
			return providertest.Upload{Data: body.Image}, err
		},
	})
}

// signed reports whether the request has a token that the key pair signed. The token is valid now and for at most half an hour.
func signed(req *http.Request, key providers.Secret) bool {
	access, secret, _ := strings.Cut(key.Reveal(), ":")
	raw, found := strings.CutPrefix(req.Header.Get("Authorization"), "Bearer ")
	var claims jwt.RegisteredClaims
	_, err := jwt.ParseWithClaims(raw, &claims, func(*jwt.Token) (any, error) { return []byte(secret), nil },
		jwt.WithValidMethods([]string{"HS256"}),
		jwt.WithIssuer(access), jwt.WithExpirationRequired())
	return found && err == nil && claims.NotBefore != nil && claims.ExpiresAt.Sub(claims.NotBefore.Time) < 31*time.Minute
}

func link(role providers.InputRole) providers.Media {
	return providers.Media{Role: role, URL: "https://h/" + string(role)}
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	on, off := true, false
	for _, tc := range []struct {
		name, model, key string
		req              providers.VideoRequest
		path, want       string
	}{
		{
			"a prompt", "kling-3.0", "",
			providers.VideoRequest{Prompt: "p"},
			"/text-to-video/kling-3.0",
			`{"options":{},"prompt":"p","settings":{}}`,
		},
		{
			"everything of a text", "kling-3.0", "",
			providers.VideoRequest{
				Prompt: "p", Seconds: "8.0", Width: 1920, Height: 1080, GenerateAudio: &on, IdempotencyKey: "a-1",
				Extra: json.RawMessage(`{"multi_shot":false,"watermark_info":{"enabled":true},"duration":3,"external_task_id":"x","other":12345678901234567890}`),
			},
			"/text-to-video/kling-3.0",
			`{"options":{"external_task_id":"a-1","watermark_info":{"enabled":true}},"other":12345678901234567890,"prompt":"p",` +
				`"settings":{"aspect_ratio":"16:9","audio":"native","duration":8,"multi_shot":false,"resolution":"1080p"}}`,
		},
		{
			"frames", "kling-3.0", "",
			providers.VideoRequest{
				Prompt: "p", Resolution: "4k", GenerateAudio: &off,
				Inputs: []providers.Media{link(providers.LastFrame), link(providers.FirstFrame)},
			},
			"/image-to-video/kling-3.0",
			`{"contents":[{"type":"prompt","text":"p"},{"type":"first_frame","url":"https://h/"},{"type":"last_frame","url":"https://h/last_frame"}],"options":{},` +
				`"settings":{"audio":"off","resolution":"4k"}}`,
		},
		{
			"references", "kling-3.0-omni", "",
			providers.VideoRequest{
				Prompt: "p", Inputs: []providers.Media{link(providers.Reference), link(providers.Reference)},
				Extra: json.RawMessage(`{"contents":[{"type":"element","element_id":"1","id":"e"}]}`),
			},
			"/omni-video/kling-3.0-omni",
			`{"contents":[{"type":"prompt","text":"p"},{"type":"refer_image","url":"https://h/reference"},{"type":"refer_image","url":"https://h/reference"},` +
				`{"type":"element","element_id":"1","id":"e"}],"options":{},"settings":{"aspect_ratio":"16:9"}}`,
		},
		{
			"an edit", "kling-o1", "",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.SourceVideo)}},
			"/omni-video/kling-o1", `{"contents":[{"type":"prompt","text":"p"},{"type":"base_video","url":"https://h/video"}],"options":{},"settings":{}}`,
		},
		{
			"sound that comes anyway", "kling-3.0-turbo", "",
			providers.VideoRequest{Prompt: "p", GenerateAudio: &on},
			"/text-to-video/kling-3.0-turbo", `{"options":{},"prompt":"p","settings":{}}`,
		},
		{
			"an older text", "kling-v3", "",
			providers.VideoRequest{
				Prompt: "p", NegativePrompt: "n", Seconds: "7", AspectRatio: "9:16", Resolution: "720p", GenerateAudio: &on,
				IdempotencyKey: "a-1",
			},
			"/v1/videos/text2video",
			`{"aspect_ratio":"9:16","duration":"7","external_task_id":"a-1","mode":"std","model_name":"kling-v3","negative_prompt":"n","prompt":"p","sound":"on"}`,
		},
		{
			"older frames", "kling-v2-6", "access:secret",
			providers.VideoRequest{
				Prompt: "p", Resolution: "1080p",
				Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)}, Extra: json.RawMessage(`{"cfg_scale":0.5}`),
			},
			"/v1/videos/image2video", `{"cfg_scale":0.5,"image":"https://h/","image_tail":"https://h/last_frame","mode":"pro","model_name":"kling-v2-6","prompt":"p"}`,
		},
		{
			"older references", "kling-video-o1", "",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.FirstFrame), link(providers.Reference)}},
			"/v1/videos/omni-video",
			`{"image_list":[{"image_url":"https://h/","type":"first_frame"},{"image_url":"https://h/reference"}],"model_name":"kling-video-o1","prompt":"p"}`,
		},
		{
			"an older edit", "kling-v3-omni", "",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.SourceVideo)}},
			"/v1/videos/omni-video",
			`{"model_name":"kling-v3-omni","prompt":"p","video_list":[{"keep_original_sound":"yes","refer_type":"base","video_url":"https://h/video"}]}`,
		},
	} {
		table := providertest.VideoExchange{
			New: adapter, Model: tc.model, Key: providers.Secret(tc.key),
			Answer: `{"code":0,"data":{"id":"1","task_id":"1"}}`,
		}
		seen, err := table.Submit(t, tc.req)
		if err != nil || len(seen) != 1 || seen[0].URI != tc.path || seen[0].Body != tc.want {
			t.Errorf("%s: got %+v, %v, want %s %s", tc.name, seen, err, tc.path, tc.want)
		}
	}
}

func TestVideoRefuses(t *testing.T) {
	t.Parallel()
	on, seed := true, int64(7)
	upload := func(kind string, size int64) []providers.Media {
		return []providers.Media{{Object: "o", ContentType: kind, Size: size}}
	}
	for _, tc := range []struct {
		model, field string
		req          providers.VideoRequest
	}{
		{"kling-3.0", "prompt", providers.VideoRequest{}},
		{"kling-3.0", "prompt", providers.VideoRequest{Prompt: strings.Repeat("é", 3073)}},
		{"kling-3.0", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "2"}},
		{"kling-3.0", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5.5"}},
		{"kling-2.6", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "7"}},
		{"kling-3.0", "seed", providers.VideoRequest{Prompt: "p", Seed: &seed}},
		{"kling-3.0", "fps", providers.VideoRequest{Prompt: "p", FPS: 24}},
		{"kling-3.0", "n", providers.VideoRequest{Prompt: "p", N: 2}},
		{"kling-3.0", "negative_prompt", providers.VideoRequest{Prompt: "p", NegativePrompt: "n"}},
		{"kling-3.0", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "21:9"}},
		{"kling-3.0", "aspect_ratio", providers.VideoRequest{
			Prompt: "p", AspectRatio: "16:9",
			Inputs: []providers.Media{link(providers.FirstFrame)},
		}},
		{"kling-3.0", "width", providers.VideoRequest{Prompt: "p", Width: 640, Height: 480}},
		{"kling-3.0", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "480p"}},
		{"kling-3.0", "image", providers.VideoRequest{Prompt: "p", Inputs: upload("image/webp", 1)}},
		{"kling-3.0", "image", providers.VideoRequest{Prompt: "p", Inputs: upload("image/png", 51<<20)}},
		{"kling-3.0", "last_image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.LastFrame)}}},
		{"kling-3.0", "reference_images", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.Reference)}}},
		{"kling-3.0-turbo", "last_image", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)},
		}},
		{"kling-3.0-omni", "video", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{{Role: providers.SourceVideo, Object: "o", ContentType: "video/mp4"}},
		}},
		{"kling-3.0-omni", "video", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{link(providers.SourceVideo), link(providers.FirstFrame)},
		}},
		{"kling-3.0-omni", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5", Inputs: []providers.Media{link(providers.SourceVideo)}}},
		{"kling-o1", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "7"}},
		{"kling-2.6", "resolution", providers.VideoRequest{Prompt: "p", GenerateAudio: &on}},
		{"kling-2.5-turbo", "resolution", providers.VideoRequest{
			Prompt: "p", Resolution: "720p",
			Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)},
		}},
		{"kling-2.5-turbo", "generate_audio", providers.VideoRequest{Prompt: "p", GenerateAudio: &on}},
		{"kling-3.0", "callback_url", providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"callback_url":"https://h"}`)}},
		{"kling-3.0", "options", providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"options":{"callback_url":"https://h"}}`)}},
		{"kling-3.0", "settings", providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"settings":7}`)}},
		{"kling-v3", "reference_images", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.Reference)}}},
	} {
		providertest.VideoExchange{New: adapter, Model: tc.model}.Refuses(t, tc.field, tc.req)
	}
	many := make([]providers.Media, 8)
	for i := range many {
		many[i] = link(providers.Reference)
	}
	providertest.VideoExchange{New: adapter, Model: "kling-3.0-omni"}.Refuses(t, "reference_images",
		providers.VideoRequest{Prompt: "p", Inputs: many})
	pair := providertest.VideoExchange{New: adapter, Model: "kling-3.0", Key: "a:s"}
	if seen, err := pair.Submit(t, providers.VideoRequest{Prompt: "p"}); providers.AsFault(err) == nil ||
		providers.AsFault(err).Kind != providers.ModelNotFound || len(seen) > 0 {
		t.Errorf("a model of API keys with a pair: got %v, sent %+v", err, seen)
	}
}

// TestVideoCodes: the vendor's code decides, whatever the status.
func TestVideoCodes(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status   int
		code     string
		kind     providers.Kind
		accepted providers.Accepted
		key      providers.KeyFault
	}{
		{429, "1102", providers.Upstream, providers.NotAccepted, providers.KeyExhausted},
		{429, "1304", providers.Upstream, providers.NotAccepted, providers.KeyRefused},
		{403, "1103", providers.Upstream, providers.NotAccepted, providers.KeyForbidden},
		{200, "1301", providers.Invalid, providers.NotAccepted, 0},
		{200, "1302", providers.RateLimited, providers.NotAccepted, 0},
		{200, "9999", providers.Upstream, providers.AcceptedUnknown, 0},
		{404, "1203", providers.NotFound, providers.NotAccepted, 0},
		{503, "5001", providers.Overloaded, providers.AcceptedUnknown, 0},
		{504, "5002", providers.Upstream, providers.AcceptedUnknown, 0},
	} {
		table := providertest.VideoExchange{New: adapter, Model: "kling-3.0", Status: tc.status, Answer: `{"code":` + tc.code + `,"message":"m"}`}
		_, err := table.Submit(t, providers.VideoRequest{Prompt: "p"})
		if fault := providers.AsFault(err); fault == nil || fault.Kind != tc.kind || fault.Accepted != tc.accepted || fault.Key != tc.key ||
			fault.Code != tc.code {
			t.Errorf("%d, %s: got %+v", tc.status, tc.code, fault)
		}
	}
}

// TestVideoFind: a job that is not listed may still be there, and none of another key is taken.
func TestVideoFind(t *testing.T) {
	t.Parallel()
	for _, data := range []string{`[]`, `[{"id":"1","external_id":"b"}]`, `{"task_id":"1"}`} {
		table := providertest.VideoExchange{New: adapter, Model: "kling-3.0", Answer: `{"code":0,"data":` + data + `}`}
		ticket, err := table.Find(t, providers.VideoRequest{Prompt: "p", IdempotencyKey: "a"})
		if fault := providers.AsFault(err); fault == nil || fault.Kind != providers.NotFound || fault.Accepted != providers.AcceptedUnknown {
			t.Errorf("%s: got %+v, %v", data, ticket, err)
		}
	}
}

func TestCheckKey(t *testing.T) {
	t.Parallel()
	for key, good := range map[providers.Secret]bool{"api-key-kling-1": true, "a:s": true, "a:": false, ":s": false} {
		if err := kling.CheckKey(key); (err == nil) != good {
			t.Errorf("%s: got %v", key.Reveal(), err)
		}
	}
}
