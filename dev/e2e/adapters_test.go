package e2e_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strings"
	"testing"

	"modelrelay/dev/e2e/stack"
	"modelrelay/providers"
	"modelrelay/providers/catalog"
	"modelrelay/providers/upstream"
)

// adapterRow is one vendor as its adapter meets the fake upstream.
type adapterRow struct {
	// name is the test's, vendor the catalog's, path that of base_url at the fake.
	name, vendor, path string
	// model and pictured are upstream models that make a video from text and from an image; "" for none from an image.
	model, pictured string
	// needsImage: the model makes none from text.
	needsImage bool
	// account: the key is a service account's.
	account bool
	// unknown is a name that the vendor does not have; "" where it is told only when the job runs.
	unknown string
	// seconds is a length that it makes.
	seconds string
	// cancels: a job that waits can be stopped; remembers: a lost create is found.
	cancels, remembers bool
}

func adapterRows() []adapterRow {
	return []adapterRow{
		{name: "ark", vendor: "ark", path: "/ark/api/v3", model: "doubao-seedance-2-0-260128", pictured: "doubao-seedance-2-5-260628", unknown: "unknown", seconds: "5", cancels: true, remembers: true},
		{name: "kling", vendor: "kling", path: "/kling", model: "kling-3.0", pictured: "kling-3.0", unknown: "unknown", seconds: "5", remembers: true},
		{name: "ltx", vendor: "ltx", path: "/ltx", model: "ltx-2-5-fast", pictured: "ltx-2-5-pro", unknown: "unknown", seconds: "6"},
		{name: "luma", vendor: "luma", path: "/luma/v1", model: "ray-3.2", pictured: "ray-3.2", unknown: "unknown", seconds: "5"},
		{name: "omni", vendor: "omni", path: "/omni/v1beta", model: "gemini-omni-1.2-flash", pictured: "gemini-omni-1.1-flash", unknown: "unknown", seconds: "6", cancels: true},
		{name: "runway", vendor: "runway", path: "/runway", model: "gen4.5", pictured: "gen4_turbo", unknown: "unknown", seconds: "5", cancels: true},
		{name: "veo", vendor: "veo", path: "/veo/v1/projects/p/locations/us-central1", account: true, model: "veo-3.1-generate-001", pictured: "veo-3.1-fast-generate-001", unknown: "unknown", seconds: "8"},
		{name: "veo by key", vendor: "veo", path: "/veo/v1beta", model: "veo-3.1-generate-preview", pictured: "veo-3.1-generate-preview", unknown: "unknown", seconds: "8"},
		{name: "xai", vendor: "xai", path: "/xai/v1", model: "grok-imagine-video", pictured: "grok-imagine-video-1.5", unknown: "unknown", seconds: "6"},
		{name: "hailuo first", vendor: "hailuo", path: "/hailuo", model: "MiniMax-Hailuo-02", pictured: "MiniMax-Hailuo-02", unknown: "unknown", seconds: "6"},
		{name: "hailuo second", vendor: "hailuo", path: "/hailuo", model: "MiniMax-H3", pictured: "MiniMax-H3", seconds: "5", cancels: true},
		{name: "wan 2.7", vendor: "wan", path: "/wan", model: "wan2.7-t2v", pictured: "wan2.7-i2v", unknown: "unknown", seconds: "5", cancels: true},
		{name: "wan 3", vendor: "wan", path: "/wan/api/v1", model: "wan3.0-video", pictured: "wan3.0-video", seconds: "5", cancels: true},
		{name: "vidu", vendor: "vidu", path: "/vidu", model: "viduq3-turbo", pictured: "viduq2-turbo", unknown: "unknown", seconds: "5", cancels: true, remembers: true},
		{name: "pixverse", vendor: "pixverse", path: "/pixverse/openapi/v2", model: "v6", pictured: "v6", unknown: "unknown", seconds: "5"},
		{name: "zhipu", vendor: "zhipu", path: "/zhipu", model: "cogvideox-3", pictured: "cogvideox-3", unknown: "unknown", seconds: "5"},
		{
			name: "fal", vendor: "fal", path: "/fal", model: "fal-ai/kling-video/v3/pro/text-to-video", pictured: "fal-ai/kling-video/v3/pro/image-to-video",
			unknown: "unknown/app", seconds: "5", cancels: true,
		},
		{name: "replicate", vendor: "replicate", path: "/replicate/v1", model: "google/veo-3.1", pictured: "google/veo-3.1", unknown: "community/app", seconds: "8", cancels: true},
	}
}

// TestAdapters drives each vendor's adapter against its fake: a job from a text and from an image to its video, failed, forgotten,
// stopped, found again, and what is refused.
func TestAdapters(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.SharedRelay(t)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	vendors := catalog.New(client)
	for _, row := range adapterRows() {
		t.Run(row.name, func(t *testing.T) {
			a := adapterTest{adapterRow: row, adapter: vendors[row.vendor].Video, control: s.Control.For(t), to: providers.Target{
				Channel: providers.Channel{Name: row.name, Vendor: row.vendor, BaseURL: "http://" + s.UpstreamAt + row.path}, Key: "sk-upstream-adapters",
			}}
			if row.account {
				a.to.Key = providers.Secret(s.ServiceAccount())
			}
			a.life(t)
			a.fails(t)
			a.forgets(t)
			a.refuses(t)
			a.cancel(t)
			a.lost(t)
		})
	}
}

type adapterTest struct {
	adapterRow

	adapter providers.VideoAdapter
	control *stack.Control
	to      providers.Target
}

// inputImage is an image of a request, a PNG by its first bytes.
func inputImage() providers.Media {
	data := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte("pixels "), 1000)...)
	return providers.Media{
		Object: "tasks/video_1/inputs/0", Name: "cat.png", ContentType: "image/png", Size: int64(len(data)),
		Open: func(context.Context) (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(data)), nil },
	}
}

// submit starts a job that waits to be driven.
func (a adapterTest) submit(t *testing.T, prompt string, inputs ...providers.Media) (providers.Target, providers.Ticket) {
	t.Helper()
	to := a.to
	to.Model = a.model
	if len(inputs) > 0 {
		to.Model = a.pictured
	}
	if a.needsImage && len(inputs) == 0 {
		inputs = []providers.Media{inputImage()}
	}
	a.control.AddRule(map[string]any{"vendor": a.vendor, "operation": "video.create", "action": "manual", "times": 1})
	ticket, err := a.adapter.Submit(t.Context(), to, a.request(prompt, inputs...))
	if err != nil {
		t.Fatalf("%s: %v", prompt, err)
	}
	return to, ticket
}

func (a adapterTest) request(prompt string, inputs ...providers.Media) providers.VideoRequest {
	prompt = a.name + ": " + prompt
	return providers.VideoRequest{Prompt: prompt, Seconds: a.seconds, Inputs: inputs, IdempotencyKey: "attempt of " + prompt}
}

func (a adapterTest) job(t *testing.T, prompt string) *stack.Job {
	t.Helper()
	j := a.control.Job(a.name + ": " + prompt)
	if j == nil {
		t.Fatalf("%s: there is no job", prompt)
	}
	return j
}

func (a adapterTest) poll(t *testing.T, to providers.Target, ticket providers.Ticket, want ...providers.VideoState) providers.VideoStatus {
	t.Helper()
	got, err := a.adapter.Poll(t.Context(), to, ticket)
	if err != nil {
		t.Fatalf("poll: %v, want %s", err, want)
	}
	if !slices.Contains(want, got.State) {
		t.Errorf("poll: got %+v, want %s", got, want)
	}
	return got
}

func (a adapterTest) life(t *testing.T) {
	t.Helper()
	image := inputImage()
	for prompt, inputs := range map[string][]providers.Media{"from a text": nil, "from an image": {image}} {
		if inputs != nil && a.pictured == "" || inputs == nil && a.needsImage {
			continue
		}
		to, ticket := a.submit(t, prompt, inputs...)
		a.poll(t, to, ticket, providers.JobQueued, providers.JobRunning)
		made := a.job(t, prompt)
		a.control.Drive(made.ID, "in_progress", 40)
		a.poll(t, to, ticket, providers.JobRunning)
		a.control.Drive(made.ID, "completed", 100)
		if got := a.poll(t, to, ticket, providers.JobDone); got.Outputs != 1 {
			t.Errorf("%s: got %d outputs", prompt, got.Outputs)
		}
		video, err := a.adapter.Open(t.Context(), to, ticket, 0)
		if err != nil {
			t.Fatalf("%s: open: %v", prompt, err)
		}
		sum := sha256.New()
		_, err = io.Copy(sum, video.Body)
		_ = video.Body.Close()
		if got := hex.EncodeToString(sum.Sum(nil)); err != nil || got != a.job(t, prompt).SHA256 || video.ContentType != "video/mp4" {
			t.Errorf("%s: got a video %s of type %s, %v", prompt, got, video.ContentType, err)
		}
		if inputs != nil {
			file, err := image.Open(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			data, _ := io.ReadAll(file) // from memory
			if want := sha256.Sum256(data); made.InputSHA256 != hex.EncodeToString(want[:]) {
				t.Errorf("%s: the vendor got another image", prompt)
			}
		}
		if made.Submissions != 1 {
			t.Errorf("%s: submitted %d times", prompt, made.Submissions)
		}
	}
}

func (a adapterTest) fails(t *testing.T) {
	t.Helper()
	to, ticket := a.submit(t, "doomed")
	a.control.Drive(a.job(t, "doomed").ID, "failed", 10)
	if got := a.poll(t, to, ticket, providers.JobFailed); got.Failure == nil || got.Failure.Code == "" || got.Failure.Message == "" {
		t.Errorf("failed: got %+v", got.Failure)
	}
}

func (a adapterTest) forgets(t *testing.T) {
	t.Helper()
	to, ticket := a.submit(t, "forgotten")
	a.control.Do(http.MethodPost, "/jobs/"+a.job(t, "forgotten").ID, map[string]any{"forgotten": true}, nil)
	a.poll(t, to, ticket, providers.JobForgotten)
}

func (a adapterTest) refuses(t *testing.T) {
	t.Helper()
	to := a.to
	to.Model = a.model
	inputs := []providers.Media(nil)
	if a.needsImage {
		inputs = []providers.Media{inputImage()}
	}
	to.Key = "wrong"
	if a.account { // one that was never handed out
		to.Key = providers.Secret(strings.Replace(a.to.Key.Reveal(), `"private_key_id":"`, `"private_key_id":"x`, 1))
	}
	_, err := a.adapter.Submit(t.Context(), to, a.request("with a wrong key", inputs...))
	if fault := providers.AsFault(err); fault == nil || fault.Accepted != providers.NotAccepted || fault.Blame != providers.BlameKey || fault.Key != providers.KeyRefused {
		t.Errorf("a wrong key: got %+v", fault)
	}
	to.Key = a.to.Key
	for status, want := range map[int]providers.Accepted{429: providers.NotAccepted, 500: providers.AcceptedUnknown} {
		a.control.AddRule(map[string]any{"vendor": a.vendor, "operation": "video.create", "action": "status", "status": status, "times": 1})
		_, err = a.adapter.Submit(t.Context(), to, a.request("with a refusal", inputs...))
		if fault := providers.AsFault(err); fault == nil || fault.Accepted != want || !fault.Retryable() {
			t.Errorf("%d: got %+v", status, fault)
		}
	}
	if to.Model = a.unknown; to.Model == "" {
		return
	}
	_, err = a.adapter.Submit(t.Context(), to, a.request("of a model that is not there", inputs...))
	if fault := providers.AsFault(err); fault == nil || fault.Accepted != providers.NotAccepted {
		t.Errorf("an unknown model: got %+v", fault)
	}
}

func (a adapterTest) cancel(t *testing.T) {
	t.Helper()
	canceler, ok := a.adapter.(providers.Canceler)
	if !ok || !a.cancels {
		return
	}
	to, ticket := a.submit(t, "called off")
	if err := canceler.Cancel(t.Context(), to, ticket); err != nil {
		t.Errorf("cancel: %v", err)
	}
	if got := a.job(t, "called off").State; got != "cancelled" {
		t.Errorf("cancel: the job is %s", got)
	}
	a.poll(t, to, ticket, providers.JobFailed)
	if err := canceler.Cancel(t.Context(), to, ticket); err != nil {
		t.Errorf("cancel again: %v", err)
	}
}

// lost: an answer that does not come says nothing of the job, and a look finds it where the vendor has one.
func (a adapterTest) lost(t *testing.T) {
	t.Helper()
	to := a.to
	to.Model = a.model
	inputs := []providers.Media(nil)
	if a.needsImage {
		inputs = []providers.Media{inputImage()}
	}
	a.control.AddRule(map[string]any{"vendor": a.vendor, "operation": "video.create", "action": "drop", "accept": true, "times": 1})
	_, err := a.adapter.Submit(t.Context(), to, a.request("and the answer lost", inputs...))
	if fault := providers.AsFault(err); fault == nil || fault.Accepted != providers.AcceptedUnknown {
		t.Errorf("a lost answer: got %+v", fault)
	}
	made := a.job(t, "and the answer lost")
	finder, ok := a.adapter.(providers.Finder)
	if ok != a.remembers {
		t.Errorf("looks up: %t, want %t", ok, a.remembers)
	}
	if !ok {
		return
	}
	ticket, err := finder.Find(t.Context(), to, a.request("and the answer lost", inputs...))
	if err != nil || ticket.Job != made.ID {
		t.Errorf("found %+v, %v, want %s", ticket, err, made.ID)
	}
	if again := a.job(t, "and the answer lost"); again.ID != made.ID {
		t.Errorf("the look made the job %s", again.ID)
	}
}
