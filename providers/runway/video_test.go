package runway_test

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
	"modelrelay/providers/runway"
)

const job = "17f20503-6c24-4c16-946b-35dbbce2af2f"

func newVideos(client *http.Client) providers.VideoAdapter { return runway.NewVideos(client) }

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     newVideos,
		Channel: providers.Channel{Vendor: "runway"},
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST /v1/text_to_video", "POST /v1/image_to_video":
				return providertest.VideoSubmit
			case "GET /v1/tasks/" + job:
				return providertest.VideoPoll
			case "DELETE /v1/tasks/" + job:
				return providertest.VideoCancel
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			if strings.HasPrefix(req.URL.Path, "/v1/") {
				return req.Header.Get("Authorization") == "Bearer "+key.Reveal() && req.Header.Get("X-Runway-Version") == "2024-11-06"
			}
			return req.Header.Get("Authorization") == "" // links need no key
		},
		Job: job,
		Failure: providers.VideoFailure{
			Code: providers.FailedContent, Message: "SAFETY.INPUT.TEXT: The text prompt did not pass our moderation.",
			Billed: true,
		},
		Upload: upload,
		VideoTraits: providertest.VideoTraits{
			BareUploads: true,
			CancelReads: "running",
		},
	})
}

func upload(req *http.Request) (providertest.Upload, error) {
	var body struct {
		PromptImage []struct {
			URI      string `json:"uri"`
			Position string `json:"position"`
		} `json:"promptImage"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return providertest.Upload{}, err
	}
	if len(body.PromptImage) != 1 || body.PromptImage[0].Position != "first" {
		return providertest.Upload{}, errors.New("not one first frame")
	}
	encoded, found := strings.CutPrefix(body.PromptImage[0].URI, "data:image/png;base64,")
	if !found {
		return providertest.Upload{}, errors.New("no data URI of a PNG")
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return providertest.Upload{Data: data}, err
}

func link(role providers.InputRole) providers.Media {
	return providers.Media{Role: role, URL: "https://h/" + string(role)}
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	on, seed := true, int64(7)
	for _, tc := range []struct {
		name, model string
		req         providers.VideoRequest
		path, want  string
	}{
		{
			"what is required", "gen4.5",
			providers.VideoRequest{Prompt: "p"},
			"/v1/text_to_video",
			`{"duration":5,"model":"gen4.5","promptText":"p","ratio":"1280:720"}`,
		},
		{
			"the caller's own parameters", "gen4.5",
			providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"ratio":"1:1","duration":"auto","contentModeration":{"publicFigureThreshold":"low"},"model":"x"}`)},
			"/v1/text_to_video",
			`{"contentModeration":{"publicFigureThreshold":"low"},"duration":"auto","model":"gen4.5","promptText":"p","ratio":"1:1"}`,
		},
		{
			"an image", "gen4_turbo",
			providers.VideoRequest{Seconds: "10", AspectRatio: "1:1", Seed: &seed, Inputs: []providers.Media{link(providers.FirstFrame)}},
			"/v1/image_to_video",
			`{"duration":10,"model":"gen4_turbo","promptImage":[{"position":"first","uri":"https://h/"}],"ratio":"960:960","seed":7}`,
		},
		{
			"two frames", "veo3.1",
			providers.VideoRequest{
				Prompt: "p", NegativePrompt: "n", Width: 1080, Height: 1920, GenerateAudio: &on,
				Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)},
			},
			"/v1/image_to_video",
			`{"audio":true,"model":"veo3.1","negativePrompt":"n","promptImage":[{"position":"first","uri":"https://h/"},` +
				`{"position":"last","uri":"https://h/last_frame"}],"promptText":"p","ratio":"1080:1920"}`,
		},
		{
			"references and a sound", "seedance2",
			providers.VideoRequest{
				Prompt: "p", Width: 3840, Height: 2160,
				Inputs: []providers.Media{link(providers.Reference), link(providers.Reference), link(providers.SourceAudio)},
			},
			"/v1/text_to_video",
			`{"model":"seedance2","promptText":"p","ratio":"3840:2160","referenceAudio":[{"type":"audio","uri":"https://h/audio"}],` +
				`"references":[{"uri":"https://h/reference"},{"uri":"https://h/reference"}]}`,
		},
		{
			"words", "grok_imagine_1_5",
			providers.VideoRequest{Prompt: "p", Width: 720, Height: 1280, GenerateAudio: &on},
			"/v1/text_to_video",
			`{"model":"grok_imagine_1_5","promptText":"p","ratio":"9:16","resolution":"720p"}`,
		},
		{
			"a resolution in the ratio", "wan3",
			providers.VideoRequest{Prompt: "p", Resolution: "720p", Inputs: []providers.Media{link(providers.FirstFrame)}},
			"/v1/image_to_video",
			`{"model":"wan3","promptImage":[{"position":"first","uri":"https://h/"}],"promptText":"p","ratio":"auto_720p"}`,
		},
		{
			"a resolution as pixels", "wan3",
			providers.VideoRequest{Prompt: "p", Resolution: "1080p"},
			"/v1/text_to_video",
			`{"model":"wan3","promptText":"p","ratio":"1920:1080"}`,
		},
		{
			"a resolution with an image", "happyhorse_1_0",
			providers.VideoRequest{Width: 1920, Height: 1080, Inputs: []providers.Media{link(providers.FirstFrame)}},
			"/v1/image_to_video",
			`{"model":"happyhorse_1_0","promptImage":[{"position":"first","uri":"https://h/"}],"resolution":"1080p"}`,
		},
		{
			"an edit", "aleph2",
			providers.VideoRequest{Prompt: "p", AspectRatio: "9:16", Inputs: []providers.Media{link(providers.SourceVideo)}},
			"/v1/video_to_video",
			`{"model":"aleph2","promptText":"p","targetAspectRatio":"9:16","videoUri":"https://h/video"}`,
		},
		{
			"an extension", "seedance2_5",
			providers.VideoRequest{Prompt: "p", Seconds: "4", Inputs: []providers.Media{link(providers.ExtendVideo)}},
			"/v1/video_to_video",
			`{"duration":4,"mode":"extend","model":"seedance2_5","promptText":"p","promptVideo":"https://h/extend"}`,
		},
		{
			"a model that is not known", "next",
			providers.VideoRequest{Prompt: "p", Width: 123, Height: 456, Seconds: "77"},
			"/v1/text_to_video",
			`{"duration":77,"model":"next","promptText":"p","ratio":"123:456"}`,
		},
	} {
		seen, err := providertest.VideoExchange{New: newVideos, Model: tc.model, Answer: `{"id":"1"}`}.Submit(t, tc.req)
		if err != nil || len(seen) != 1 || seen[0].URI != tc.path || seen[0].Body != tc.want {
			t.Errorf("%s: got %v, %v, want %s %s", tc.name, seen, err, tc.path, tc.want)
		}
	}
}

func TestVideoRefusals(t *testing.T) {
	t.Parallel()
	off := false
	image := link(providers.FirstFrame)
	for _, tc := range []struct {
		model, field string
		req          providers.VideoRequest
	}{
		{"gen4.5", "prompt", providers.VideoRequest{}},
		{"gen4.5", "prompt", providers.VideoRequest{Prompt: strings.Repeat("p", 1001)}},
		{"veo3.1", "prompt", providers.VideoRequest{}},
		{"gen4_turbo", "image", providers.VideoRequest{Prompt: "p"}},
		{"gen4.5", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "11"}},
		{"gen4.5", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5.5"}},
		{"veo3.1", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5"}},
		{"gen4.5", "width", providers.VideoRequest{Prompt: "p", Width: 640, Height: 480}},
		{"gen4.5", "width", providers.VideoRequest{Prompt: "p", Width: 960, Height: 960}}, // only from an image
		{"gen4.5", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "2:3"}},
		{"grok_imagine_1_5", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "1:1", Inputs: []providers.Media{image}}},
		{"gen4.5", "n", providers.VideoRequest{Prompt: "p", N: 2}},
		{"gen4.5", "fps", providers.VideoRequest{Prompt: "p", FPS: 24}},
		{"next", "fps", providers.VideoRequest{Prompt: "p", FPS: 24}},
		{"gen4.5", "negative_prompt", providers.VideoRequest{Prompt: "p", NegativePrompt: "n"}},
		{"hailuo3", "generate_audio", providers.VideoRequest{Prompt: "p", GenerateAudio: &off}},
		{"veo3.1", "last_image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.LastFrame)}}},
		{"gen4.5", "last_image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{image, link(providers.LastFrame)}}},
		{"gen4.5", "image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{image, image}}},
		{"seedance2", "reference_images", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{image, link(providers.Reference)}}},
		{"seedance2", "image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{image, link(providers.SourceVideo)}}},
		{"seedance2_5", "video", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{link(providers.ExtendVideo), link(providers.SourceVideo)},
		}},
		{"gen4.5", "image", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{{Object: "o", ContentType: "image/png", Size: 201_000_000}},
		}},
		{"gen4.5", "image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{{Object: "o", ContentType: "image/gif", Size: 4}}}},
	} {
		providertest.VideoExchange{New: newVideos, Model: tc.model, Answer: `{"id":"1"}`}.Refuses(t, tc.field, tc.req)
	}
}

// TestVideoKeys: no credit is a 400, and a day's limit is not a moment's.
func TestVideoKeys(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status int
		body   string
		kind   providers.Kind
		key    providers.KeyFault
	}{
		{http.StatusBadRequest, `{"error":"You do not have enough credits to run this task."}`, providers.Upstream, providers.KeyExhausted},
		{http.StatusForbidden, `{"error":"no such model for you"}`, providers.Upstream, providers.KeyForbidden},
		{http.StatusTooManyRequests, `{"error":"daily limit"}`, providers.RateLimited, providers.KeyExhausted},
	} {
		_, err := providertest.VideoExchange{New: newVideos, Model: "gen4.5", Status: tc.status, Answer: tc.body}.Submit(t,
			providers.VideoRequest{Prompt: "p"})
		fault := providers.AsFault(err)
		if fault == nil || fault.Kind != tc.kind || fault.Blame != providers.BlameKey || fault.Key != tc.key ||
			fault.Accepted != providers.NotAccepted {
			t.Errorf("%d: got %+v", tc.status, fault)
		}
	}
}

// TestVideoAnswers: answers about a task in addition to the fixtures.
func TestVideoAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		name, body string
		want       providers.VideoFailure
	}{
		{
			"its own and free", `{"status":"FAILED","failureCode":"INTERNAL.BAD_OUTPUT.CODE01","failure":"f","cost":{"credits":0}}`,
			providers.VideoFailure{Code: providers.FailedVendor, Message: "INTERNAL.BAD_OUTPUT.CODE01: f", Retryable: true},
		},
		{
			"its own and paid", `{"status":"FAILED","failure":"f","cost":{"credits":5}}`,
			providers.VideoFailure{Code: providers.FailedVendor, Message: "f", Billed: true},
		},
		{
			"its own, of unknown cost", `{"status":"FAILED","failure":"f","cost":null}`,
			providers.VideoFailure{Code: providers.FailedVendor, Message: "f"},
		},
		{
			"moderated output", `{"status":"FAILED","failureCode":"SAFETY.OUTPUT.VIDEO","cost":{"credits":0}}`,
			providers.VideoFailure{Code: providers.FailedContent, Message: "SAFETY.OUTPUT.VIDEO"},
		},
		{
			"moderated and paid", `{"status":"FAILED","failureCode":"SAFETY.INPUT.TEXT","cost":{"credits":60}}`,
			providers.VideoFailure{Code: providers.FailedContent, Message: "SAFETY.INPUT.TEXT", Billed: true},
		},
		{
			"bad input", `{"status":"FAILED","failureCode":"ASSET.INVALID","cost":{"credits":0}}`,
			providers.VideoFailure{Code: providers.FailedInput, Message: "ASSET.INVALID"},
		},
		{
			"cancelled", `{"status":"CANCELLED","cost":{"credits":0}}`,
			providers.VideoFailure{Code: providers.FailedVendor, Message: `The upstream's job ended as "CANCELLED".`},
		},
	} {
		got, err := providertest.VideoExchange{New: newVideos, Answer: tc.body}.Poll(t, providers.Ticket{Job: "1"})
		if err != nil || got.State != providers.JobFailed || got.Failure == nil || *got.Failure != tc.want {
			t.Errorf("%s: got %+v, %v, %v", tc.name, got, got.Failure, err)
		}
	}
	running, err := providertest.VideoExchange{New: newVideos, Answer: `{"status":"RUNNING","progress":0.415}`}.Poll(t,
		providers.Ticket{Job: "1"})
	if err != nil || running.Progress != 42 {
		t.Errorf("got %+v, %v", running, err)
	}
	// A result that comes late is asked for again.
	if late, err := (providertest.VideoExchange{New: newVideos, Answer: `{"status":"SUCCEEDED","output":[]}`}).Poll(t,
		providers.Ticket{Job: "1"}); err == nil {
		t.Errorf("got %+v", late)
	}
}
