package replicate_test

import (
	"bytes"
	"encoding/base64"
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
	"modelrelay/providers/providertest"
	"modelrelay/providers/replicate"
)

const job = "gm3qorzdhgbfurvjtvhg6dckhu"

func adapter(client *http.Client) providers.VideoAdapter { return replicate.NewVideos(client) }

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     adapter,
		Channel: providers.Channel{Vendor: "replicate"},
		Model:   "google/veo-3.1",
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST /models/google/veo-3.1/predictions":
				return providertest.VideoSubmit
			case "GET /predictions":
				return providertest.VideoFind
			case "GET /predictions/" + job:
				return providertest.VideoPoll
			case "POST /predictions/" + job + "/cancel":
				return providertest.VideoCancel
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool { // files at the vendor's own address want it too
			return req.Header.Get("Authorization") == "Bearer "+key.Reveal()
		},
		Job:     job,
		Failure: providers.VideoFailure{Code: providers.FailedContent, Message: "The input was flagged as sensitive. (E005)"},
		Upload: func(req *http.Request) (providertest.Upload, error) {
			var body struct {
				Input struct {
					Image string `json:"image"`
				} `json:"input"`
			}
			if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
				return providertest.Upload{}, err
			}
			encoded, found := strings.CutPrefix(body.Input.Image, "data:image/png;base64,")
			if !found {
				return providertest.Upload{}, errors.New("no data URL of a PNG")
			}
			data, err := base64.StdEncoding.DecodeString(encoded)
			return providertest.Upload{Data: data}, err
		},
		IdempotencyKey: func(req *http.Request) string { // the seed stands for it
			raw, _ := io.ReadAll(req.Body)
			req.Body = io.NopCloser(bytes.NewReader(raw))
			var body struct {
				Input struct{ Seed json.Number } `json:"input"`
			}
			_ = json.Unmarshal(raw, &body) // without a seed there is no key
			return body.Input.Seed.String()
		},
		VideoTraits: providertest.VideoTraits{BareUploads: true, LooksUp: true},
	})
}

func link(role providers.InputRole) providers.Media {
	return providers.Media{Role: role, URL: "https://h/" + string(role)}
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	on, seed := true, int64(7)
	for _, tc := range []struct {
		model string
		req   providers.VideoRequest
		path  string
		want  string
	}{
		{
			"google/veo-3.1",
			providers.VideoRequest{
				Prompt: "p", NegativePrompt: "n", Seconds: "8.0", Width: 1920, Height: 1080, GenerateAudio: &on, Seed: &seed,
				Extra:  json.RawMessage(`{"guidance_scale":7,"prompt":"x"}`),
				Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)},
			},
			"/models/google/veo-3.1/predictions",
			`{"input":{"aspect_ratio":"16:9","duration":8,"generate_audio":true,"guidance_scale":7,"image":"https://h/","last_frame":"https://h/last_frame",` +
				`"negative_prompt":"n","prompt":"p","resolution":"1080p","seed":7}}`,
		},
		{
			"vidu/q3-pro:abc",
			providers.VideoRequest{Prompt: "p", Seconds: "5", GenerateAudio: &on, Inputs: []providers.Media{link(providers.FirstFrame)}},
			"/predictions", `{"input":{"audio":true,"duration":5,"prompt":"p","start_image":"https://h/"},"version":"abc"}`,
		},
		{
			"bytedance/seedance-2.0",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.Reference)}},
			"/models/bytedance/seedance-2.0/predictions", `{"input":{"prompt":"p","reference_images":["https://h/reference"]}}`,
		},
		{
			"wan-video/wan-2.7-i2v",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.ExtendVideo), link(providers.SourceAudio)}},
			"/models/wan-video/wan-2.7-i2v/predictions", `{"input":{"audio":"https://h/audio","first_clip":"https://h/extend","prompt":"p"}}`,
		},
		{
			"deployments/me/mine",
			providers.VideoRequest{Prompt: "p", FPS: 24, Inputs: []providers.Media{link(providers.FirstFrame)}},
			"/deployments/me/mine/predictions", `{"input":{"fps":24,"image":"https://h/","prompt":"p"}}`,
		},
	} {
		seen, err := providertest.VideoExchange{New: adapter, Model: tc.model, Answer: `{"id":"1"}`}.Submit(t, tc.req)
		if err != nil || len(seen) != 1 || seen[0].URI != tc.path || seen[0].Body != tc.want || seen[0].Header.Get("Prefer") != "" {
			t.Errorf("%s: got %+v, %v, want %s %s", tc.model, seen, err, tc.path, tc.want)
		}
	}
}

func TestVideoRefuses(t *testing.T) {
	t.Parallel()
	seed := int64(7)
	many := make([]providers.Media, 4)
	for i := range many {
		many[i] = link(providers.Reference)
	}
	for _, tc := range []struct {
		model, field string
		req          providers.VideoRequest
	}{
		{"google/veo-3.1", "prompt", providers.VideoRequest{}},
		{"google/veo-3.1", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5"}},
		{"google/veo-3.1", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "1:1"}},
		{"google/veo-3.1", "width", providers.VideoRequest{Prompt: "p", Width: 640, Height: 480}},
		{"google/veo-3.1", "last_image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.LastFrame)}}},
		{"google/veo-3.1", "reference_images", providers.VideoRequest{Prompt: "p", Inputs: many}},
		{"google/veo-3.1", "reference_images", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{link(providers.FirstFrame), link(providers.Reference)},
		}},
		{"google/veo-3.1:abc", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5"}},
		{"kwaivgi/kling-v2.6", "seed", providers.VideoRequest{Prompt: "p", Seed: &seed}},
		{"bytedance/seedance-1.5-pro", "fps", providers.VideoRequest{Prompt: "p", FPS: 30}},
		{"bytedance/seedance-1.5-pro", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "720p"}},
		{"runwayml/gen4-turbo", "image", providers.VideoRequest{Prompt: "p"}},
		{"me/mine", "n", providers.VideoRequest{Prompt: "p", N: 2}},
		{"me/mine", "last_image", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)},
		}},
		{"me/mine", "image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{{Object: "o", ContentType: "image/heic", Size: 1}}}},
	} {
		providertest.VideoExchange{New: adapter, Model: tc.model}.Refuses(t, tc.field, tc.req)
	}
}

func TestVideoAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		body    string
		want    providers.VideoState
		code    string
		outputs int
	}{
		{`{"status":"succeeded","output":["https://h/1","https://h/2","text"]}`, providers.JobDone, "", 2},
		{`{"status":"succeeded","output":{"b":"https://h/1","a":"https://h/2"}}`, providers.JobDone, "", 2},
		{`{"status":"succeeded","output":null,"data_removed":true}`, providers.JobFailed, providers.FailedForgotten, 0},
		{`{"status":"canceled"}`, providers.JobFailed, providers.FailedVendor, 0},
		{`{"status":"aborted"}`, providers.JobFailed, providers.FailedTimeout, 0},
		{`{"status":"failed","error":{"detail":"NSFW"}}`, providers.JobFailed, providers.FailedContent, 0},
		{`{"status":"failed","error":"Service is full (E004)"}`, providers.JobFailed, providers.FailedVendor, 0},
	} {
		got, err := providertest.VideoExchange{New: adapter, Answer: tc.body}.Poll(t, providers.Ticket{Job: "1"})
		if err != nil || got.State != tc.want || got.Outputs != tc.outputs || tc.code != "" &&
			(got.Failure == nil || got.Failure.Code != tc.code || got.Failure.Retryable) {
			t.Errorf("%s: got %+v, %+v, %v", tc.body, got, got.Failure, err)
		}
	}
	table := providertest.VideoExchange{
		New:    adapter,
		Answer: `{"status":"succeeded","output":"https://h","created_at":"2026-11-21T10:00:00Z","completed_at":"2026-11-21T10:01:00Z"}`,
	}
	got, err := table.Poll(t, providers.Ticket{Job: "1"})
	if want := time.Date(2026, 11, 21, 11, 1, 0, 0, time.UTC); err != nil || !got.ExpiresAt.Equal(want) || got.Took != time.Minute {
		t.Errorf("got %+v, %v, want it to die at %s", got, err, want)
	}
	table.Answer = `{"status":"succeeded","output":null}`
	if got, err := table.Poll(t, providers.Ticket{Job: "1"}); err == nil {
		t.Errorf("no link: got %+v", got)
	}
}

// TestVideoModelName: a model name that would lead to another path is refused.
func TestVideoModelName(t *testing.T) {
	t.Parallel()
	for _, model := range []string{"me/..", "/a", "a//b", "a/./b"} {
		providertest.VideoExchange{New: adapter}.RefusesModel(t, model)
	}
}

// TestVideoFields: the channel's configuration names the fields of a model that the table lacks.
func TestVideoFields(t *testing.T) {
	t.Parallel()
	exchange := providertest.VideoExchange{New: adapter, Model: "some-one/app", Answer: `{"id":"1"}`, Facts: providers.ModelFacts{
		Fields: map[string]providers.VideoFields{"some-one/": {"last_image": {Name: "end"}, "seconds": {As: providers.AsText}}},
	}}
	req := providers.VideoRequest{Prompt: "p", Seconds: "5", Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)}}
	seen, err := exchange.Submit(t, req)
	if want := `{"input":{"duration":"5","end":"https://h/last_frame","image":"https://h/","prompt":"p"}}`; err != nil || len(seen) != 1 ||
		seen[0].Body != want {
		t.Errorf("got %+v, %v, want %s", seen, err, want)
	}
	exchange.Facts = providers.ModelFacts{}
	exchange.Refuses(t, "last_image", req)
}

// TestVideoFind: a lost prediction is the one with the attempt's seed, which is only of a model that has a seed and of a request that
// chooses none.
func TestVideoFind(t *testing.T) {
	t.Parallel()
	var seen []string
	answers := map[string]string{}
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		seen = append(seen, r.URL.RequestURI())
		_, _ = io.WriteString(w, answers[r.URL.RequestURI()])
	}))
	t.Cleanup(server.Close)
	videos, to := replicate.NewVideos(server.Client()),
		providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "k", Model: "google/veo-3.1"}
	req := providers.VideoRequest{Prompt: "p", IdempotencyKey: "video_1-1"}
	body, err := providertest.VideoExchange{New: adapter, Model: "google/veo-3.1", Answer: `{"id":"1"}`}.Submit(t, req)
	var sent struct{ Input json.RawMessage }
	if err != nil || json.Unmarshal([]byte(body[0].Body), &sent) != nil {
		t.Fatal(body, err)
	}
	mine := `{"id":"mine","input":` + string(sent.Input) + `}`
	other := `{"id":"other","input":{"prompt":"p"}}`
	for name, tc := range map[string]struct{ first, second, want string }{
		"on the second page": {
			`{"next":"https://elsewhere.invalid/v1/predictions?cursor=2","results":[` + other + `]}`,
			`{"next":null,"results":[` + mine + `]}`, "mine",
		},
		"none": {`{"next":null,"results":[` + other + `]}`, "", ""},
		"two":  {`{"next":null,"results":[` + mine + `,` + strings.Replace(mine, "mine", "again", 1) + `]}`, "", ""},
	} {
		answers = map[string]string{"/predictions": tc.first, "/predictions?cursor=2": tc.second}
		ticket, err := videos.Find(t.Context(), to, req)
		if ticket.Job != tc.want || (err == nil) != (tc.want != "") || err != nil &&
			providers.AsFault(err).Accepted != providers.AcceptedUnknown {
			t.Errorf("%s: got %+v, %v", name, ticket, err)
		}
	}
	seen = nil
	own := int64(7)
	for name, tc := range map[string]struct {
		model string
		req   providers.VideoRequest
	}{
		"a seed of the caller's": {"google/veo-3.1", providers.VideoRequest{Prompt: "p", IdempotencyKey: "video_1-1", Seed: &own}},
		"a seed among its own parameters": {
			"google/veo-3.1",
			providers.VideoRequest{Prompt: "p", IdempotencyKey: "video_1-1", Extra: json.RawMessage(`{"seed":7}`)},
		},
		"a model without a seed":            {"kwaivgi/kling-v2.6", req},
		"a model of which nothing is known": {"some-one/mover", req},
	} {
		to.Model = tc.model
		if _, err := videos.Find(t.Context(), to, tc.req); !errors.Is(err, providers.ErrNoLookup) {
			t.Errorf("%s: got %v", name, err)
		}
	}
	if len(seen) > 0 {
		t.Errorf("asked %v", seen)
	}
}
