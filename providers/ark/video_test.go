package ark_test

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
	"modelrelay/providers/ark"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
)

const (
	tasksPath = "/contents/generations/tasks"
	jobPath   = tasksPath + "/cgt-20261121101500-abcde"
)

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     func(client *http.Client) providers.VideoAdapter { return ark.NewVideos(client) },
		Channel: providers.Channel{Vendor: "ark"},
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST " + tasksPath:
				return providertest.VideoSubmit
			case "GET " + tasksPath:
				if q := req.URL.Query(); q.Get("filter.model") == "up" && q.Get("page_num") == "1" {
					return providertest.VideoFind
				}
			case "GET " + jobPath:
				return providertest.VideoPoll
			case "DELETE " + jobPath:
				return providertest.VideoCancel
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			if strings.HasPrefix(req.URL.Path, tasksPath) {
				return req.Header.Get("Authorization") == "Bearer "+key.Reveal()
			}
			return req.Header.Get("Authorization") == "" // links need no key
		},
		Job: "cgt-20261121101500-abcde",
		Failure: providers.VideoFailure{
			Code: providers.FailedContent, Message: "OutputVideoSensitiveContentDetected: The output video may contain sensitive information.",
		},
		IdempotencyKey: func(req *http.Request) string {
			raw, _ := io.ReadAll(req.Body)
			req.Body = io.NopCloser(strings.NewReader(string(raw)))
			var body struct {
				Identifier string `json:"safety_identifier"`
			}
			_ = json.Unmarshal(raw, &body)
			return body.Identifier
		},
		Upload:      upload,
		VideoTraits: providertest.VideoTraits{BareUploads: true, LooksUp: true, CancelReads: "queued"},
	})
}

func upload(req *http.Request) (providertest.Upload, error) {
	var body struct {
		Content []struct {
			Role     string `json:"role"`
			ImageURL struct {
				URL string `json:"url"`
			} `json:"image_url"`
		} `json:"content"`
	}
	if err := json.NewDecoder(req.Body).Decode(&body); err != nil {
		return providertest.Upload{}, err
	}
	if len(body.Content) != 2 || body.Content[1].Role != "first_frame" {
		return providertest.Upload{}, errors.New("no text and first frame")
	}
	encoded, found := strings.CutPrefix(body.Content[1].ImageURL.URL, "data:image/png;base64,")
	if !found {
		return providertest.Upload{}, errors.New("no data URL of a PNG")
	}
	data, err := base64.StdEncoding.DecodeString(encoded)
	return providertest.Upload{Data: data}, err
}

// at is an adapter and a target at a server that answers so, and what that saw last.
func at(t *testing.T, answer http.HandlerFunc) (*ark.Videos, providers.Target) {
	t.Helper()
	server := httptest.NewServer(answer)
	t.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	return ark.NewVideos(client), providers.Target{Channel: providers.Channel{BaseURL: server.URL}, Key: "secret", Model: "ep-1"}
}

// create submits to a server that accepts it, and returns what that saw.
func create(t *testing.T, model string, req providers.VideoRequest) (body string, err error) {
	t.Helper()
	adapter, to := at(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		body = string(raw)
		_, _ = io.WriteString(w, `{"id":"1"}`)
	})
	to.Model = model
	_, err = adapter.Submit(t.Context(), to, req)
	return body, err
}

func link(role providers.InputRole) providers.Media {
	return providers.Media{Role: role, URL: "https://h/" + string(role)}
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	off, seed := false, int64(7)
	for _, tc := range []struct {
		name, model string
		req         providers.VideoRequest
		want        string
	}{
		{"a prompt", "ep-20261121-x", providers.VideoRequest{Prompt: "p"}, `{"content":[{"type":"text","text":"p"}],"model":"ep-20261121-x"}`},
		{
			"everything of 1.0", "doubao-seedance-1-0-pro-250528",
			providers.VideoRequest{
				Prompt: "p", Seconds: "5.0", Width: 1280, Height: 720, FPS: 24, GenerateAudio: &off, Seed: &seed,
				Extra:  json.RawMessage(`{"camera_fixed":true,"duration":9}`),
				Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)},
			},
			`{"camera_fixed":true,"content":[{"type":"text","text":"p"},{"type":"image_url","image_url":{"url":"https://h/"},"role":"first_frame"},` +
				`{"type":"image_url","image_url":{"url":"https://h/last_frame"},"role":"last_frame"}],"duration":5,"model":"doubao-seedance-1-0-pro-250528","ratio":"16:9","resolution":"720p","seed":7}`,
		},
		{
			"references", "dreamina-seedance-2-0-260128",
			providers.VideoRequest{
				GenerateAudio: &off, Resolution: "4k",
				Inputs: []providers.Media{link(providers.Reference), link(providers.SourceAudio)}, IdempotencyKey: "video_1-1",
				Extra: json.RawMessage(`{"safety_identifier":"u"}`),
			},
			`{"content":[{"type":"image_url","image_url":{"url":"https://h/reference"},"role":"reference_image"},{"type":"audio_url","audio_url":{"url":"https://h/audio"},"role":"reference_audio"}],` +
				`"generate_audio":false,"model":"dreamina-seedance-2-0-260128","resolution":"4k","safety_identifier":"u"}`,
		},
		{
			"2.5 in 4k", "dreamina-seedance-2-5-260628",
			providers.VideoRequest{Prompt: "p", Seconds: "30", Resolution: "4k"},
			`{"content":[{"type":"text","text":"p"}],"duration":30,"model":"dreamina-seedance-2-5-260628","resolution":"4k"}`,
		},
		{
			"frames of 2.5", "dreamina-seedance-2-5-260628",
			providers.VideoRequest{Inputs: []providers.Media{link(providers.FirstFrame)}},
			`{"content":[{"type":"image_url","image_url":{"url":"https://h/"},"role":"first_frame"}],"model":"dreamina-seedance-2-5-260628","ratio":"adaptive"}`,
		},
		{
			"an edit of 2.5", "doubao-seedance-2-5-260628",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.SourceVideo)}},
			`{"content":[{"type":"text","text":"p"},{"type":"video_url","video_url":{"url":"https://h/video"},"role":"reference_video"}],"duration":-1,` +
				`"model":"doubao-seedance-2-5-260628","omni_reference_task_type":"edit","ratio":"adaptive"}`,
		},
		{
			"the vendor's own content", "ep-1",
			providers.VideoRequest{Extra: json.RawMessage(`{"content":[{"type":"draft_task","draft_task":{"id":"d"}}]}`)},
			`{"content":[{"type":"draft_task","draft_task":{"id":"d"}}],"model":"ep-1"}`,
		},
	} {
		body, err := create(t, tc.model, tc.req)
		if err != nil || body != tc.want {
			t.Errorf("%s: got %s, %v, want %s", tc.name, body, err, tc.want)
		}
	}
}

func TestVideoCreateRefused(t *testing.T) {
	t.Parallel()
	on, seed := true, int64(1<<33)
	const (
		one  = "doubao-seedance-1-0-pro-250528"
		two  = "doubao-seedance-2-0-260128"
		half = "doubao-seedance-2-5-260628"
	)
	upload := func(kind string, size int64) []providers.Media {
		return []providers.Media{{Object: "o", ContentType: kind, Size: size}}
	}
	for _, tc := range []struct {
		name, model, field string
		req                providers.VideoRequest
	}{
		{"seconds beyond the model's", one, "seconds", providers.VideoRequest{Prompt: "p", Seconds: "13"}},
		{"broken seconds", "ep-1", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5.5"}},
		{"a size", one, "width", providers.VideoRequest{Prompt: "p", Width: 1000, Height: 720}},
		{"a resolution", "doubao-seedance-2-0-fast-260128", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "1080p"}},
		{"a resolution of Flash", "dreamina-seedance-2-5-flash-261115", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "1080p"}},
		{"seconds beyond Flash's", "dreamina-seedance-2-5-flash-261115", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "31"}},
		{
			"the length of an edit by Flash", "dreamina-seedance-2-5-flash-261115", "seconds",
			providers.VideoRequest{Prompt: "p", Seconds: "5", Inputs: []providers.Media{link(providers.SourceVideo)}},
		},
		{"a ratio", one, "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "3:2"}},
		{"adaptive without an image", one, "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "adaptive"}},
		{"a last frame alone", two, "last_image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.LastFrame)}}},
		{
			"a last frame that the model has not", "doubao-seedance-1-0-pro-fast-251015", "last_image",
			providers.VideoRequest{Inputs: []providers.Media{link(providers.FirstFrame), link(providers.LastFrame)}},
		},
		{
			"references with frames", two, "reference_images",
			providers.VideoRequest{Inputs: []providers.Media{link(providers.FirstFrame), link(providers.Reference)}},
		},
		{"a video with frames", two, "video", providers.VideoRequest{Inputs: []providers.Media{
			link(providers.FirstFrame),
			link(providers.SourceVideo),
		}}},
		{"sound with frames", half, "audio", providers.VideoRequest{Inputs: []providers.Media{
			link(providers.FirstFrame),
			link(providers.SourceAudio),
		}}},
		{"sound alone", two, "audio", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{link(providers.SourceAudio)}}},
		{"a video as bytes", two, "video", providers.VideoRequest{
			Prompt: "p",
			Inputs: []providers.Media{{Role: providers.SourceVideo, Object: "o", ContentType: "video/mp4"}},
		}},
		{"two first frames", two, "image", providers.VideoRequest{Inputs: []providers.Media{
			link(providers.FirstFrame),
			link(providers.FirstFrame),
		}}},
		{"a large image", one, "image", providers.VideoRequest{Prompt: "p", Inputs: upload("image/png", 31<<20)}},
		{"an image of another kind", one, "image", providers.VideoRequest{Prompt: "p", Inputs: upload("image/heic", 1)}},
		{
			"a fixed ratio with a frame", half, "aspect_ratio",
			providers.VideoRequest{AspectRatio: "16:9", Inputs: []providers.Media{link(providers.FirstFrame)}},
		},
		{"the length of an edit", half, "seconds", providers.VideoRequest{
			Prompt: "p", Seconds: "5",
			Inputs: []providers.Media{link(providers.SourceVideo)},
		}},
		{"nothing", one, "prompt", providers.VideoRequest{}},
		{"several", one, "n", providers.VideoRequest{Prompt: "p", N: 2}},
		{"another rate", one, "fps", providers.VideoRequest{Prompt: "p", FPS: 30}},
		{"a seed of 2.0", two, "seed", providers.VideoRequest{Prompt: "p", Seed: new(int64)}},
		{"a large seed", one, "seed", providers.VideoRequest{Prompt: "p", Seed: &seed}},
		{"sound of 1.0", one, "generate_audio", providers.VideoRequest{Prompt: "p", GenerateAudio: &on}},
		{"a negative prompt", two, "negative_prompt", providers.VideoRequest{Prompt: "p", NegativePrompt: "x"}},
		{"a callback", two, "callback_url", providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"callback_url":"https://h"}`)}},
		{"content twice", two, "content", providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"content":[]}`)}},
	} {
		body, err := create(t, tc.model, tc.req)
		if fault := providers.AsFault(err); fault == nil || fault.Param != tc.field || fault.Kind != providers.Invalid ||
			fault.Accepted != providers.NotAccepted || body != "" {
			t.Errorf("%s: got %v, sent %q, want %s refused", tc.name, err, body, tc.field)
		}
	}
}

// TestVideoRefusals: the vendor's codes that say more than the status.
func TestVideoRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status        int
		code, message string
		kind          providers.Kind
		key           providers.KeyFault
		blame         providers.Blame
	}{
		{400, "InputTextSensitiveContentDetected.PolicyViolation", "x", providers.Invalid, 0, providers.BlameNone},
		{400, "ContentSecurityDetectionError", "x", providers.Overloaded, 0, providers.BlameNone},
		{403, "AccountOverdueError", "x", providers.Upstream, providers.KeyExhausted, providers.BlameKey},
		{403, "AccessDenied", "x", providers.Upstream, providers.KeyForbidden, providers.BlameKey},
		{404, "ModelNotOpen", "x", providers.Upstream, providers.KeyForbidden, providers.BlameKey},
		{404, "InvalidEndpointOrModel.NotFound", "x", providers.ModelNotFound, 0, providers.BlameNone},
		{429, "ServerOverloaded", "x", providers.Overloaded, 0, providers.BlameChannel},
		{429, "QuotaExceeded", "Your account has too many queued tasks.", providers.RateLimited, providers.KeyBusy, providers.BlameKey},
		{429, "QuotaExceeded", "The free trial is used up.", providers.Upstream, providers.KeyExhausted, providers.BlameKey},
		{429, "SetLimitExceeded", "x", providers.Upstream, providers.KeyExhausted, providers.BlameKey},
	} {
		adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_ = json.NewEncoder(w).Encode(map[string]any{"error": map[string]string{"code": tc.code, "message": tc.message}})
		})
		_, err := adapter.Submit(t.Context(), to, providers.VideoRequest{Prompt: "p"})
		fault := providers.AsFault(err)
		if fault == nil || fault.Kind != tc.kind || fault.Key != tc.key || fault.Blame != tc.blame || fault.Accepted != providers.NotAccepted ||
			fault.Code != tc.code {
			t.Errorf("%d %s: got %+v", tc.status, tc.code, fault)
		}
	}
}

// TestVideoAnswers: the failure code and message of the vendor's rarer answers about a job.
func TestVideoAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, body, code, message string }{
		{"expired", `{"status":"expired"}`, providers.FailedTimeout, "expired: The upstream gave the job up."},
		{"cancelled", `{"status":"cancelled"}`, providers.FailedVendor, "cancelled: The job was cancelled at the upstream."},
		{
			"a late refusal", `{"status":"failed","error":{"code":"InvalidParameter.TaskTypeMismatch","message":"m"}}`, providers.FailedInput,
			"InvalidParameter.TaskTypeMismatch: m",
		},
		{
			"its own failure", `{"status":"failed","error":{"code":"InternalServiceError","message":"m"}}`, providers.FailedVendor,
			"InternalServiceError: m",
		},
		{"no reason", `{"status":"failed","error":null}`, providers.FailedVendor, `The upstream's job ended as "failed".`},
	} {
		adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tc.body) })
		got, err := adapter.Poll(t.Context(), to, providers.Ticket{Job: "1"})
		if err != nil || got.State != providers.JobFailed || *got.Failure != (providers.VideoFailure{Code: tc.code, Message: tc.message}) {
			t.Errorf("%s: got %+v, %v", tc.name, got, err)
		}
	}
}

// TestVideoCancelOnlyQueued: a job that runs is not stopped, and the record of one that ended is not deleted with its video.
func TestVideoCancelOnlyQueued(t *testing.T) {
	t.Parallel()
	for word, conflict := range map[string]bool{"running": true, "succeeded": false, "failed": false, "expired": false} {
		adapter, to := at(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method != http.MethodGet {
				t.Errorf("%s: got %s", word, r.Method)
			}
			_ = json.NewEncoder(w).Encode(map[string]string{"status": word})
		})
		err := adapter.Cancel(t.Context(), to, providers.Ticket{Job: "1"})
		if fault := providers.AsFault(err); (fault != nil) != conflict || conflict && fault.Kind != providers.Conflict {
			t.Errorf("%s: got %v", word, err)
		}
	}
}

// TestVideoFindNothing: that a job is not listed proves nothing, and a client's own identifier finds nothing.
func TestVideoFindNothing(t *testing.T) {
	t.Parallel()
	asked := 0
	adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) {
		asked++
		_, _ = io.WriteString(w, `{"items":[{"id":"1","safety_identifier":"u"}],"total":1}`)
	})
	_, err := adapter.Find(t.Context(), to, providers.VideoRequest{IdempotencyKey: "video_1-1"})
	if fault := providers.AsFault(err); fault == nil || fault.Accepted != providers.AcceptedUnknown || errors.Is(err, providers.ErrNoLookup) ||
		asked != 1 {
		t.Errorf("got %v, asked %d times", err, asked)
	}
	_, err = adapter.Find(t.Context(), to, providers.VideoRequest{
		IdempotencyKey: "video_1-1",
		Extra:          json.RawMessage(`{"safety_identifier":"u"}`),
	})
	if !errors.Is(err, providers.ErrNoLookup) || asked != 1 {
		t.Errorf("got %v, asked %d times", err, asked)
	}
}

// TestBill: the vendor reports what it made, and counts tokens. A report of another shape counts nothing and loses no video.
func TestBill(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]providers.VideoTokens{
		`{"completion_tokens":108900,"total_tokens":108900}`: {Output: 108900}, `[]`: {}, `{"completion_tokens":{}}`: {},
		`{"completion_tokens":-1}`: {},
	} {
		adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"id":"1","status":"succeeded","content":{"video_url":"http://x/"},"usage":`+usage+
				`,"resolution":"720p","generate_audio":false}`)
		})
		status, err := adapter.Poll(t.Context(), to, providers.Ticket{Job: "1"})
		if err != nil || status.State != providers.JobDone || status.Tokens != want || status.Resolution != "720p" || status.Audio != "false" {
			t.Errorf("%s: got %+v, %v", usage, status, err)
		}
	}
}
