package e2e_test

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"io"
	"net/http"
	"slices"
	"strconv"
	"strings"
	"testing"

	"modelrelay/dev/e2e/stack"
	"modelrelay/providers"
	"modelrelay/providers/upstream"
	"modelrelay/providers/vendors"
)

// adapterRow is a model of a vendor as its adapter calls the fake.
type adapterRow struct {
	stack.VideoVendor

	// pictured makes a video from an image; "": Model does.
	pictured string
	// account: the key is a service account's.
	account bool
	// finishes: the vendor cancels no job of the model, although it does of others.
	finishes bool
}

// adapterRows are those of the fakes' table, and models that vendors have other requests for.
func adapterRows(s *stack.Stack) []adapterRow {
	var rows []adapterRow
	for _, v := range s.VideoVendors() {
		rows = append(rows, adapterRow{VideoVendor: v, account: strings.HasPrefix(v.Key, "{")})
	}
	more := func(name, vendor, path, model, pictured string, seconds int) adapterRow {
		return adapterRow{VideoVendor: stack.VideoVendor{
			Name: name, Vendor: vendor, Path: path, Key: "sk-upstream-adapters",
			VideoModel: stack.VideoModel{Model: model, Seconds: seconds, Unknown: "unknown"},
		}, pictured: pictured}
	}
	first := more("hailuo first", "hailuo", "/hailuo", "MiniMax-Hailuo-02", "", 6)
	first.finishes = true
	hosted := more("fal kling", "fal", "/fal", "fal-ai/kling-video/v3/pro/text-to-video", "fal-ai/kling-video/v3/pro/image-to-video", 5)
	hosted.Unknown = "unknown/app"
	return append(rows, first, hosted, more("wan 2.7", "wan", "/wan/api/v1", "wan2.7-t2v", "wan2.7-i2v", 5),
		more("vidu 2", "vidu", "/vidu", "viduq3-turbo", "viduq2-turbo", 5),
		more("seedance 2.5", "ark", "/ark/api/v3", "doubao-seedance-2-5-260628", "", 5),
		more("runway 4", "runway", "/runway", "gen4.5", "gen4_turbo", 5),
		more("pixverse by path", "pixverse", "/pixverse/openapi/v2", "v6", "", 5))
}

// TestAdapters drives each vendor's adapter against its fake: a job from a text and from an image to its video, failed, forgotten,
// stopped, found again, and what is refused.
func TestAdapters(t *testing.T) {
	t.Parallel()
	stack.Full(t)
	s := stack.SharedRelay(t)
	client := upstream.NewClient(nil)
	t.Cleanup(client.CloseIdleConnections)
	vendors := vendors.New(client)
	for _, row := range adapterRows(s) {
		t.Run(row.Name, func(t *testing.T) {
			a := adapterTest{adapterRow: row, adapter: vendors[row.Vendor].Video, control: s.Control.For(t), to: providers.Target{
				Channel: providers.Channel{Name: row.Name, Vendor: row.Vendor, BaseURL: "http://" + s.UpstreamAt + row.Path},
				Key:     providers.Secret(row.Key),
			}}
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
	to.Model = a.Model
	if len(inputs) > 0 {
		to.Model = cmp.Or(a.pictured, a.Model)
	}
	a.control.AddRule(map[string]any{"vendor": a.Vendor, "operation": "video.create", "action": "manual", "times": 1})
	ticket, err := a.adapter.Submit(t.Context(), to, a.request(prompt, inputs...))
	if err != nil {
		t.Fatalf("%s: %v", prompt, err)
	}
	return to, ticket
}

func (a adapterTest) request(prompt string, inputs ...providers.Media) providers.VideoRequest {
	prompt = a.Name + ": " + prompt
	return providers.VideoRequest{Prompt: prompt, Seconds: strconv.Itoa(a.Seconds), Inputs: inputs, IdempotencyKey: "attempt of " + prompt}
}

func (a adapterTest) job(t *testing.T, prompt string) *stack.Job {
	t.Helper()
	j := a.control.Job(a.Name + ": " + prompt)
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
		if inputs != nil && a.TextOnly {
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
		if inputs != nil && !a.Named {
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
	to.Model = a.Model
	to.Key = "wrong"
	if a.account { // one that was never handed out
		to.Key = providers.Secret(strings.Replace(a.to.Key.Reveal(), `"private_key_id":"`, `"private_key_id":"x`, 1))
	}
	_, err := a.adapter.Submit(t.Context(), to, a.request("with a wrong key"))
	if fault := providers.AsFault(err); fault == nil || fault.Accepted != providers.NotAccepted || fault.Blame != providers.BlameKey ||
		fault.Key != providers.KeyRefused {
		t.Errorf("a wrong key: got %+v", fault)
	}
	to.Key = a.to.Key
	for status, want := range map[int]providers.Accepted{429: providers.NotAccepted, 500: providers.AcceptedUnknown} {
		a.control.AddRule(map[string]any{"vendor": a.Vendor, "operation": "video.create", "action": "status", "status": status, "times": 1})
		_, err = a.adapter.Submit(t.Context(), to, a.request("with a refusal"))
		if fault := providers.AsFault(err); fault == nil || fault.Accepted != want || !fault.Retryable() {
			t.Errorf("%d: got %+v", status, fault)
		}
	}
	if to.Model = a.Unknown; to.Model == stack.Late {
		return
	}
	_, err = a.adapter.Submit(t.Context(), to, a.request("of a model that is not there"))
	if fault := providers.AsFault(err); fault == nil || fault.Accepted != providers.NotAccepted {
		t.Errorf("an unknown model: got %+v", fault)
	}
}

func (a adapterTest) cancel(t *testing.T) {
	t.Helper()
	canceler, ok := a.adapter.(providers.Canceler)
	if !ok || a.finishes {
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
	to.Model = a.Model
	a.control.AddRule(map[string]any{"vendor": a.Vendor, "operation": "video.create", "action": "drop", "accept": true, "times": 1})
	_, err := a.adapter.Submit(t.Context(), to, a.request("and the answer lost"))
	if fault := providers.AsFault(err); fault == nil || fault.Accepted != providers.AcceptedUnknown {
		t.Errorf("a lost answer: got %+v", fault)
	}
	made := a.job(t, "and the answer lost")
	finder, ok := a.adapter.(providers.Finder)
	if !ok {
		return
	}
	ticket, err := finder.Find(t.Context(), to, a.request("and the answer lost"))
	if err != nil || ticket.Job != made.ID {
		t.Errorf("found %+v, %v, want %s", ticket, err, made.ID)
	}
	if a.Repeats { // under one idempotency key, by which the vendor makes no other job
		return
	}
	if again := a.job(t, "and the answer lost"); again.ID != made.ID {
		t.Errorf("the look made the job %s", again.ID)
	}
}
