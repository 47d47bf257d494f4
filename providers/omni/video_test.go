package omni_test

import (
	"context"
	"encoding/base64"
	"encoding/json"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"strings"
	"testing"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/omni"
	"modelrelay/providers/providertest"
	"modelrelay/providers/upstream"
)

const jobPath = "/interactions/v1_ChdQa2xN"

// body is what the tests read of a create.
type body struct {
	Input    json.RawMessage `json:"input"`
	Previous string          `json:"previous_interaction_id"`
}

func TestVideo(t *testing.T) {
	t.Parallel()
	providertest.TestVideo(t, providertest.VideoSubject{
		New:     func(client *http.Client) providers.VideoAdapter { return omni.NewVideos(client) },
		Channel: providers.Channel{Vendor: "omni"},
		Answers: os.DirFS("testdata/video"),
		Step: func(req *http.Request) providertest.VideoStep {
			switch req.Method + " " + req.URL.EscapedPath() {
			case "POST /interactions":
				var create body
				if json.NewDecoder(req.Body).Decode(&create) == nil && create.Previous == "v1_ChdQa2xN" {
					return providertest.VideoRemix
				}
				return providertest.VideoSubmit
			case "GET " + jobPath:
				return providertest.VideoPoll
			case "POST " + jobPath + "/cancel":
				return providertest.VideoCancel
			}
			return ""
		},
		Authorized: func(req *http.Request, key providers.Secret) bool {
			return req.Header.Get("X-Goog-Api-Key") == key.Reveal() && req.Header.Get("Authorization") == "" && req.URL.Query().Get("key") == ""
		},
		Job:     "v1_ChdQa2xN",
		Failure: providers.VideoFailure{Code: providers.FailedInput, Message: "invalid_request: The image could not be decoded."},
		Upload:  upload,
		RemixPrompt: func(req *http.Request) (string, error) {
			var create body
			var prompt string
			err := json.NewDecoder(req.Body).Decode(&create)
			if err == nil {
				err = json.Unmarshal(create.Input, &prompt)
			}
			return prompt, err
		},
		VideoTraits: providertest.VideoTraits{BareUploads: true, NoLinks: true},
	})
}

func upload(req *http.Request) (providertest.Upload, error) {
	var create body
	var parts []struct {
		Type     string `json:"type"`
		MimeType string `json:"mime_type"`
		Data     []byte `json:"data"`
	}
	err := json.NewDecoder(req.Body).Decode(&create)
	if err == nil {
		err = json.Unmarshal(create.Input, &parts)
	}
	if err != nil || len(parts) != 2 || parts[0].Type != "image" || parts[0].MimeType != "image/png" {
		return providertest.Upload{}, err
	}
	return providertest.Upload{Data: parts[0].Data}, nil
}

// at is an adapter and a target at a server that answers so.
func at(tb testing.TB, answer http.HandlerFunc) (*omni.Videos, providers.Target) {
	tb.Helper()
	server := httptest.NewServer(answer)
	tb.Cleanup(server.Close)
	client := upstream.NewClient(nil)
	tb.Cleanup(client.CloseIdleConnections)
	return omni.NewVideos(client), providers.Target{
		Channel: providers.Channel{BaseURL: server.URL}, Key: "secret",
		Model: "gemini-omni-1.2-flash",
	}
}

// create submits to a server that accepts it, and returns what that saw.
func create(t *testing.T, model string, req providers.VideoRequest) (sent string, err error) {
	t.Helper()
	adapter, to := at(t, func(w http.ResponseWriter, r *http.Request) {
		raw, _ := io.ReadAll(r.Body)
		sent = string(raw)
		_, _ = io.WriteString(w, `{"id":"1"}`)
	})
	to.Model = model
	_, err = adapter.Submit(t.Context(), to, req)
	return sent, err
}

// file is an upload whose bytes are its role's name.
func file(role providers.InputRole, kind string) providers.Media {
	return providers.Media{Role: role, Object: "o", ContentType: kind, Open: func(context.Context) (io.ReadCloser, error) {
		return io.NopCloser(strings.NewReader("bytes of " + string(role))), nil
	}}
}

func encoded(role providers.InputRole) string {
	return base64.StdEncoding.EncodeToString([]byte("bytes of " + string(role)))
}

func TestVideoCreate(t *testing.T) {
	t.Parallel()
	seed := int64(7)
	for _, tc := range []struct {
		name, model string
		req         providers.VideoRequest
		want        string
	}{
		{
			"a prompt", "gemini-omni-2-flash",
			providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"background":false}`)},
			`{"background":true,"input":"p","model":"gemini-omni-2-flash","response_format":{"delivery":"uri","type":"video"}}`,
		},
		{
			"everything", "gemini-omni-1.2-flash",
			providers.VideoRequest{
				Prompt: "p", Seconds: "15", Width: 3840, Height: 2160, FPS: 24, Seed: &seed,
				Inputs: []providers.Media{file(providers.LastFrame, "image/png"), file(providers.FirstFrame, "image/jpeg")},
				Extra:  json.RawMessage(`{"labels":{"a":"b"},"response_format":{"delivery":"inline","duration":"3s"},"generation_config":{"x":1,"seed":2}}`),
			},
			`{"background":true,"generation_config":{"seed":7,"video_config":{"task":"image_to_video"},"x":1},"input":[` +
				`{"type":"image","mime_type":"image/jpeg","data":"` + encoded(providers.FirstFrame) +
				`"},{"type":"image","mime_type":"image/png","data":"` + encoded(providers.LastFrame) + `"},` +
				`{"type":"text","text":"p"}],"labels":{"a":"b"},"model":"gemini-omni-1.2-flash",` +
				`"response_format":{"aspect_ratio":"16:9","delivery":"inline","duration":"15s","resolution":"4k","type":"video"}}`,
		},
		{
			"references", "gemini-omni-1.1-flash",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{file(providers.Reference, "image/png")}},
			`{"background":true,"generation_config":{"video_config":{"task":"reference_to_video"}},"input":[{"type":"image","mime_type":"image/png","data":"` + encoded(providers.Reference) +
				`"},{"type":"text","text":"p"}],"model":"gemini-omni-1.1-flash","response_format":{"delivery":"uri","type":"video"}}`,
		},
		{
			"an extension", "gemini-omni-1.1-flash",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{file(providers.ExtendVideo, "video/mp4")}},
			`{"background":true,"generation_config":{"video_config":{"task":"extend"}},"input":[{"type":"video","mime_type":"video/mp4","data":"` +
				encoded(providers.ExtendVideo) +
				`"},{"type":"text","text":"p"}],"model":"gemini-omni-1.1-flash","response_format":{"delivery":"uri","type":"video"}}`,
		},
	} {
		sent, err := create(t, tc.model, tc.req)
		if err != nil || sent != tc.want {
			t.Errorf("%s: got %s, %v, want %s", tc.name, sent, err, tc.want)
		}
	}
}

func TestVideoCreateRefused(t *testing.T) {
	t.Parallel()
	off := false
	several := make([]providers.Media, 11)
	for i := range several {
		several[i] = file(providers.Reference, "image/png")
	}
	for _, tc := range []struct {
		name, model, field string
		req                providers.VideoRequest
	}{
		{"seconds", "gemini-omni-1.1-flash", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "11"}},
		{"broken seconds", "gemini-omni-9", "seconds", providers.VideoRequest{Prompt: "p", Seconds: "5.5"}},
		{"a size", "gemini-omni-1.2-flash", "width", providers.VideoRequest{Prompt: "p", Width: 1000, Height: 1000}},
		{"a ratio", "gemini-omni-1.2-flash", "aspect_ratio", providers.VideoRequest{Prompt: "p", AspectRatio: "1:1"}},
		{"a resolution", "gemini-omni-1.2-flash", "resolution", providers.VideoRequest{Prompt: "p", Resolution: "480p"}},
		{
			"a last frame alone", "gemini-omni-1.2-flash", "last_image",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{file(providers.LastFrame, "image/png")}},
		},
		{
			"references with frames", "gemini-omni-1.2-flash", "reference_images",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{
				file(providers.FirstFrame, "image/png"),
				file(providers.Reference, "image/png"),
			}},
		},
		{
			"a video with frames", "gemini-omni-1.2-flash", "video",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{
				file(providers.FirstFrame, "image/png"),
				file(providers.SourceVideo, "video/mp4"),
			}},
		},
		{"a link", "gemini-omni-1.2-flash", "image", providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{{URL: "https://h/a.png"}}}},
		{
			"a link to a video", "gemini-omni-1.2-flash", "video",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{{Role: providers.SourceVideo, URL: "https://h/a.mp4"}}},
		},
		{
			"an image of another kind", "gemini-omni-1.2-flash", "image",
			providers.VideoRequest{Prompt: "p", Inputs: []providers.Media{file(providers.FirstFrame, "image/gif")}},
		},
		{"too many", "gemini-omni-1.2-flash", "reference_images", providers.VideoRequest{Prompt: "p", Inputs: several}},
		{"an empty prompt", "gemini-omni-1.2-flash", "prompt", providers.VideoRequest{}},
		{"several", "gemini-omni-1.2-flash", "n", providers.VideoRequest{Prompt: "p", N: 2}},
		{"another rate", "gemini-omni-1.2-flash", "fps", providers.VideoRequest{Prompt: "p", FPS: 30}},
		{"silence", "gemini-omni-1.2-flash", "generate_audio", providers.VideoRequest{Prompt: "p", GenerateAudio: &off}},
		{"a negative prompt", "gemini-omni-1.2-flash", "negative_prompt", providers.VideoRequest{Prompt: "p", NegativePrompt: "n"}},
		{"a stream", "gemini-omni-1.2-flash", "stream", providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"stream":true}`)}},
		{
			"a format that is none", "gemini-omni-1.2-flash", "response_format",
			providers.VideoRequest{Prompt: "p", Extra: json.RawMessage(`{"response_format":7}`)},
		},
	} {
		sent, err := create(t, tc.model, tc.req)
		if fault := providers.AsFault(err); fault == nil || fault.Param != tc.field || fault.Kind != providers.Invalid ||
			fault.Accepted != providers.NotAccepted || sent != "" {
			t.Errorf("%s: got %v, sent %q, want %s refused", tc.name, err, sent, tc.field)
		}
	}
}

// TestVideoRefusals: the vendor's error body refines what the status means.
func TestVideoRefusals(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct {
		status   int
		body     string
		kind     providers.Kind
		key      providers.KeyFault
		accepted providers.Accepted
		after    time.Duration
	}{
		{
			400, `{"error":{"code":400,"message":"API key not valid.","status":"INVALID_ARGUMENT","details":[{"reason":"API_KEY_INVALID"}]}}`,
			providers.Upstream, providers.KeyRefused, providers.NotAccepted, 0,
		},
		{
			400, `[{"error":{"code":400,"message":"m","status":"FAILED_PRECONDITION"}}]`, providers.Upstream, providers.KeyForbidden,
			providers.NotAccepted, 0,
		},
		{402, `{}`, providers.Upstream, providers.KeyExhausted, providers.NotAccepted, 0},
		{404, `{"error":{"code":404,"message":"models/x is not found","status":"NOT_FOUND"}}`, providers.ModelNotFound, 0, providers.NotAccepted, 0},
		{
			429, `{"error":{"status":"RESOURCE_EXHAUSTED","details":[{"retryDelay":"30s"}]}}`, providers.RateLimited, 0, providers.NotAccepted,
			30 * time.Second,
		},
		{499, `{}`, providers.Upstream, 0, providers.AcceptedUnknown, 0},
		{504, `{}`, providers.Upstream, 0, providers.AcceptedUnknown, 0},
	} {
		adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) {
			w.WriteHeader(tc.status)
			_, _ = io.WriteString(w, tc.body)
		})
		_, err := adapter.Submit(t.Context(), to, providers.VideoRequest{Prompt: "p"})
		fault := providers.AsFault(err)
		if fault == nil || fault.Kind != tc.kind || fault.Key != tc.key || fault.Accepted != tc.accepted || fault.RetryAfter != tc.after {
			t.Errorf("%d %s: got %+v", tc.status, tc.body, fault)
		}
	}
}

// TestVideoAnswers: the failure code and message of the vendor's rarer answers about a job.
func TestVideoAnswers(t *testing.T) {
	t.Parallel()
	for _, tc := range []struct{ name, body, code, message string }{
		{
			"a refusal in words", `{"status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"I cannot."}]}]}`,
			providers.FailedContent, "I cannot.",
		},
		{"an unsafe prompt", `{"status":"failed","error":{"code":"SAFETY","message":"m"}}`, providers.FailedContent, "SAFETY: m"},
		{"one of several errors", `{"status":"failed","errors":[{"code":13,"message":"m"}]}`, providers.FailedVendor, "13: m"},
		{"a budget", `{"status":"budget_exceeded"}`, providers.FailedQuota, "budget_exceeded: The job took more than the upstream's budget."},
		{"incomplete", `{"status":"incomplete"}`, providers.FailedVendor, "incomplete: The upstream ended the job."},
	} {
		adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, tc.body) })
		got, err := adapter.Poll(t.Context(), to, providers.Ticket{Job: "1"})
		if err != nil || got.State != providers.JobFailed || *got.Failure != (providers.VideoFailure{Code: tc.code, Message: tc.message}) {
			t.Errorf("%s: got %+v, %v", tc.name, got, err)
		}
	}
	for name, body := range map[string]string{
		"nothing":      `{"status":"completed"}`,
		"billed words": `{"status":"completed","steps":[{"type":"model_output","content":[{"type":"text","text":"Done."}]}],"usage":{"output_tokens_by_modality":[{"modality":"video","tokens":5792}]}}`,
	} {
		adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, body) })
		if got, err := adapter.Poll(t.Context(), to, providers.Ticket{Job: "1"}); err == nil {
			t.Errorf("%s: got %+v, want a fault", name, got)
		}
	}
	// A 400 that does not name the job decides nothing about it.
	adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) {
		w.WriteHeader(http.StatusBadRequest)
		_, _ = io.WriteString(w, `{"error":{"message":"Multiple authentication credentials received."}}`)
	})
	if _, err := adapter.Poll(t.Context(), to, providers.Ticket{Job: "1"}); !providers.AsFault(err).Retryable() {
		t.Errorf("got %v, want what may pass", err)
	}
}

// TestVideoLateFile: a completed interaction is not done before its file is, whose address is completed.
func TestVideoLateFile(t *testing.T) {
	t.Parallel()
	state := "PROCESSING"
	adapter, to := at(t, func(w http.ResponseWriter, r *http.Request) {
		switch r.URL.Path {
		case "/interactions/1":
			_, _ = io.WriteString(w, `{"status":"completed","updated":"2026-11-21T10:16:30Z","steps":[{"type":"model_output","content":[{"type":"video","uri":"http://`+r.Host+`/files/abc"}]}]}`)
		case "/files/abc":
			if state == "" {
				http.NotFound(w, r)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]string{"state": state})
		case "/files/abc:download":
			if r.URL.RawQuery != "alt=media" || r.Header.Get("X-Goog-Api-Key") != "secret" {
				t.Errorf("got query %q, key %q", r.URL.RawQuery, r.Header.Get("X-Goog-Api-Key"))
			}
			_, _ = io.WriteString(w, clipHead)
		}
	})
	ticket := providers.Ticket{Job: "1"}
	for _, tc := range []struct {
		state string
		want  providers.VideoState
	}{{"PROCESSING", providers.JobRunning}, {"ACTIVE", providers.JobDone}, {"FAILED", providers.JobDone}, {"", providers.JobDone}} {
		state = tc.state
		got, err := adapter.Poll(t.Context(), to, ticket)
		if err != nil || got.State != tc.want {
			t.Errorf("%q: got %+v, %v, want %s", tc.state, got, err, tc.want)
		}
		if until := time.Date(2026, 11, 23, 10, 16, 30, 0, time.UTC); tc.want == providers.JobDone && !got.ExpiresAt.Equal(until) {
			t.Errorf("got an end at %s, want %s", got.ExpiresAt, until)
		}
	}
	video, err := adapter.Open(t.Context(), to, ticket, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer video.Body.Close()
}

// TestVideoCancelLate: a job that the vendor does not stop runs on, and one that has ended need not be stopped.
func TestVideoCancelLate(t *testing.T) {
	t.Parallel()
	for word, refused := range map[string]bool{"in_progress": true, "completed": false, "failed": false} {
		adapter, to := at(t, func(w http.ResponseWriter, r *http.Request) {
			if r.Method == http.MethodPost {
				w.WriteHeader(http.StatusBadRequest)
				_, _ = io.WriteString(w, `{"error":{"message":"not a background interaction"}}`)
				return
			}
			_ = json.NewEncoder(w).Encode(map[string]string{"status": word})
		})
		if err := adapter.Cancel(t.Context(), to, providers.Ticket{Job: "1"}); (err != nil) != refused {
			t.Errorf("%s: got %v", word, err)
		}
	}
}

const clipHead = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"

// inline answers with a video of so many bytes in the interaction itself, behind an image that the model put out as well.
func inline(size int) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		_, _ = io.WriteString(w, `{"id":"1","steps":[{"type":"model_output","content":[{"type":"image","data":"iVBORw0KGgo="},{"data":"`)
		encoder := base64.NewEncoder(base64.StdEncoding, w)
		_, _ = io.WriteString(encoder, clipHead)
		block := make([]byte, 32<<10)
		for left := size - len(clipHead); left > 0; left -= len(block) {
			_, _ = encoder.Write(block[:min(left, len(block))])
		}
		_ = encoder.Close()
		_, _ = io.WriteString(w, `","mime_type":"video/mp4","type":"video"}]}],"status":"completed"}`)
	}
}

func TestVideoInline(t *testing.T) {
	t.Parallel()
	const size = 1_000_003
	adapter, to := at(t, inline(size))
	got, err := adapter.Poll(t.Context(), to, providers.Ticket{Job: "1"})
	if err != nil || got.State != providers.JobDone {
		t.Fatalf("got %+v, %v", got, err)
	}
	video, err := adapter.Open(t.Context(), to, providers.Ticket{Job: "1"}, 0)
	if err != nil {
		t.Fatal(err)
	}
	defer video.Body.Close()
	raw, err := io.ReadAll(video.Body)
	if err != nil || len(raw) != size || !strings.HasPrefix(string(raw), clipHead) || video.ContentType != "video/mp4" || video.Length != -1 {
		t.Errorf("got %d bytes of %s, length %d, %v", len(raw), video.ContentType, video.Length, err)
	}
}

// inlineSize is that of a large video within an answer, and mostMemory what may be allocated for it, in bytes.
const inlineSize, mostMemory = 50 << 20, 8 << 20

func BenchmarkPoll(b *testing.B) {
	adapter, to := at(b, inline(inlineSize))
	providertest.Bounded(b, mostMemory, func() {
		if got, err := adapter.Poll(b.Context(), to, providers.Ticket{Job: "1"}); err != nil || got.State != providers.JobDone {
			b.Fatalf("got %+v, %v", got, err)
		}
	})
}

func BenchmarkOpen(b *testing.B) {
	adapter, to := at(b, inline(inlineSize))
	providertest.Bounded(b, mostMemory, func() {
		video, err := adapter.Open(b.Context(), to, providers.Ticket{Job: "1"}, 0)
		if err != nil {
			b.Fatal(err)
		}
		n, err := io.Copy(io.Discard, video.Body)
		_ = video.Body.Close()
		if err != nil || n != inlineSize {
			b.Fatalf("got %d bytes, %v", n, err)
		}
	})
}

// TestBill: tokens of video are what the vendor bills; other modalities are no video.
func TestBill(t *testing.T) {
	t.Parallel()
	for usage, want := range map[string]providers.VideoTokens{
		`{"total_input_tokens":12,"total_output_tokens":34800,"output_tokens_by_modality":[{"modality":"text","tokens":48},{"modality":"video","tokens":34752}]}`: {Input: 12, Output: 34752},
		`{}`: {}, `7`: {},
	} {
		adapter, to := at(t, func(w http.ResponseWriter, _ *http.Request) {
			_, _ = io.WriteString(w, `{"id":"1","status":"completed","steps":[{"type":"model_output","content":[{"type":"video","uri":"http://x/"}]}],"usage":`+usage+`}`)
		})
		status, err := adapter.Poll(t.Context(), to, providers.Ticket{Job: "1"})
		if err != nil || status.State != providers.JobDone || status.Tokens != want {
			t.Errorf("%s: got %+v, %v", usage, status, err)
		}
	}
}
