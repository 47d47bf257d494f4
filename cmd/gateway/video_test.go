package main_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/base64"
	"encoding/hex"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
)

// fakeGateway answers the Sora routes from a list of answers per route, the last of which stands.
type fakeGateway struct {
	t *testing.T

	mu      sync.Mutex
	answers map[string][]http.HandlerFunc // by "METHOD path"
	seen    []*http.Request               // with their bodies read
	bodies  [][]byte
}

func (f *fakeGateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		f.t.Errorf("read body: %v", err)
	}
	f.mu.Lock()
	f.seen, f.bodies = append(f.seen, r), append(f.bodies, body)
	route := r.Method + " " + r.URL.Path
	list := f.answers[route]
	if len(list) > 1 {
		f.answers[route] = list[1:]
	}
	f.mu.Unlock()
	if len(list) == 0 {
		answer(404, `{"error":{"message":"There is nothing at this path.","type":"invalid_request_error","param":null,"code":"not_found"}}`)(w, r)
		return
	}
	list[0](w, r)
}

// requests returns those of one method so far.
func (f *fakeGateway) requests(method string) (list []*http.Request, bodies [][]byte) {
	f.mu.Lock()
	defer f.mu.Unlock()
	for i, r := range f.seen {
		if r.Method == method {
			list, bodies = append(list, r), append(bodies, f.bodies[i])
		}
	}
	return list, bodies
}

// answer is a JSON answer; headers are "name: value".
func answer(status int, body string, headers ...string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", "application/json")
		w.Header().Set("X-Request-Id", "req_1")
		for _, header := range headers {
			name, value, _ := strings.Cut(header, ": ")
			w.Header().Set(name, value)
		}
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// video is a video object.
func video(status string, progress int) string {
	failure := "null"
	if status == "failed" {
		failure = `{"code":"moderation_blocked","message":"The prompt was refused."}`
	}
	return fmt.Sprintf(`{"id":"video_1","object":"video","model":"sora-2","status":%q,"progress":%d,"created_at":1800000000,`+
		`"completed_at":null,"expires_at":null,"seconds":"4","size":"720x1280","prompt":"a cat","remixed_from_video_id":null,"error":%s}`, status,
		progress, failure)
}

func startFakeGateway(t *testing.T, answers map[string][]http.HandlerFunc) (fake *fakeGateway, env map[string]string) {
	t.Helper()
	fake = &fakeGateway{t: t, answers: answers}
	server := httptest.NewServer(fake)
	t.Cleanup(server.Close)
	return fake, map[string]string{"GATEWAY_URL": server.URL, "GATEWAY_TOKEN": "sk-hidden"}
}

func TestVideoCreateNeverPaysTwice(t *testing.T) {
	t.Parallel()
	fake, env := startFakeGateway(t, map[string][]http.HandlerFunc{"POST /v1/videos": {
		answer(503, `{"error":{"message":"Starting.","code":"overloaded"}}`, "Retry-After: 0"),
		answer(409, `{"error":{"message":"Starting.","code":"conflict"}}`, "Retry-After: 0"),
		answer(200, video("queued", 0)),
	}})
	stdout, stderr, code := run(t, env, "video", "create", "--model", "sora-2", "--prompt", "a cat", "--seconds", "4", "--size", "720x1280")
	if code != 0 || !strings.Contains(stdout, "video_1") || !strings.Contains(stderr, "gateway video wait video_1") {
		t.Errorf("code %d\n%s\n%s", code, stdout, stderr)
	}
	requests, bodies := fake.requests(http.MethodPost)
	if len(requests) != 3 {
		t.Fatalf("%d requests, want 3", len(requests))
	}
	key := requests[0].Header.Get("Idempotency-Key")
	if len(key) < 20 {
		t.Errorf("idempotency key %q", key)
	}
	for i, r := range requests {
		if got := r.Header.Get("Idempotency-Key"); got != key {
			t.Errorf("request %d: key %q, want %q", i, got, key)
		}
		if got, want := string(bodies[i]), `{"model":"sora-2","prompt":"a cat","seconds":"4","size":"720x1280"}`; got != want {
			t.Errorf("request %d: body %s, want %s", i, got, want)
		}
		if r.Header.Get("Authorization") != "Bearer sk-hidden" || r.Header.Get("Content-Type") != "application/json" {
			t.Errorf("request %d: header %v", i, r.Header)
		}
	}
	if _, _, code := run(t, env, "video", "create", "--prompt", "a cat", "--idempotency-key", "mine"); code != 0 {
		t.Error("second create failed")
	}
	requests, _ = fake.requests(http.MethodPost)
	if got := requests[3].Header.Get("Idempotency-Key"); got != "mine" {
		t.Errorf("key %q, want mine", got)
	}
}

func TestVideoCreateSaysHowToRepeat(t *testing.T) {
	t.Parallel()
	_, env := startFakeGateway(t, map[string][]http.HandlerFunc{"POST /v1/videos": {
		answer(503, `{"error":{"message":"Temporal is away.","code":"overloaded"}}`, "Retry-After: 0"),
	}})
	_, stderr, code := run(t, env, "video", "create", "--prompt", "a cat", "--idempotency-key", "k1")
	if code != 1 || !strings.Contains(stderr, "--idempotency-key k1") ||
		!strings.Contains(stderr, "Temporal is away. (503 overloaded, request req_1)") {
		t.Errorf("code %d\n%s", code, stderr)
	}
}

func TestVideoErrorsAreShownAndFinal(t *testing.T) {
	t.Parallel()
	fake, env := startFakeGateway(t, map[string][]http.HandlerFunc{"POST /v1/videos": {
		answer(429, `{"error":{"message":"Out of budget.","type":"insufficient_quota","code":"insufficient_quota"}}`, "X-Should-Retry: false"),
	}})
	_, stderr, code := run(t, env, "video", "create", "--prompt", "a cat")
	if requests, _ := fake.requests(http.MethodPost); code != 1 || len(requests) != 1 ||
		!strings.Contains(stderr, "Out of budget. (429 insufficient_quota") {
		t.Errorf("code %d, %d requests\n%s", code, len(requests), stderr)
	}
	_, stderr, code = run(t, env, "video", "get", "video_2")
	if code != 1 || !strings.Contains(stderr, "There is nothing at this path. (404 not_found, request req_1)") ||
		strings.Contains(stderr, "sk-hidden") {
		t.Errorf("code %d\n%s", code, stderr)
	}
}

func TestVideoCreateWithImages(t *testing.T) {
	t.Parallel()
	fake, env := startFakeGateway(t, map[string][]http.HandlerFunc{"POST /v1/videos": {answer(200, video("queued", 0))}})
	png := append([]byte("\x89PNG\r\n\x1a\n"), bytes.Repeat([]byte{7}, 1000)...)
	path := writeFile(t, "grüße.png", string(png))
	if _, stderr, code := run(t, env, "video", "create", "--prompt", "a cat", "--image", path); code != 0 {
		t.Fatal(stderr)
	}
	if _, stderr, code := run(t, env, "video", "create", "--image", "https://i.test/a.png?x=1"); code != 0 {
		t.Fatal(stderr)
	}
	requests, bodies := fake.requests(http.MethodPost)
	form := requests[0]
	form.Body = io.NopCloser(bytes.NewReader(bodies[0]))
	file, head, err := form.FormFile("input_reference")
	if err != nil {
		t.Fatal(err)
	}
	got, err := io.ReadAll(file)
	if err != nil || !bytes.Equal(got, png) || head.Filename != "grüße.png" || head.Header.Get("Content-Type") != "image/png" {
		t.Errorf("file %q, %v, %d bytes, %v", head.Filename, head.Header, len(got), err)
	}
	if form.FormValue("prompt") != "a cat" || form.MultipartForm.Value["seconds"] != nil {
		t.Errorf("form %v", form.MultipartForm.Value)
	}
	if got, want := string(bodies[1]), `{"input_reference":{"image_url":"https://i.test/a.png?x=1"}}`; got != want {
		t.Errorf("body %s, want %s", got, want)
	}
	if _, stderr, code := run(t, env, "video", "create", "--image", "none.png"); code != 1 || !strings.Contains(stderr, "read the image") {
		t.Errorf("code %d %s", code, stderr)
	}
}

func TestVideoGetAndCancel(t *testing.T) {
	t.Parallel()
	_, env := startFakeGateway(t, map[string][]http.HandlerFunc{
		"GET /v1/videos/video_1":         {answer(200, video("in_progress", 40))},
		"POST /v1/videos/video_1/cancel": {answer(200, video("failed", 40))},
		"GET /v1/videos/page":            {answer(200, "<html>")},
	})
	stdout, _, code := run(t, env, "video", "get", "video_1")
	if code != 0 || !strings.Contains(stdout, "in_progress") || !strings.Contains(stdout, "40%") || !strings.Contains(stdout, "720x1280") {
		t.Errorf("code %d\n%s", code, stdout)
	}
	stdout, _, code = run(t, env, "video", "get", "video_1", "--json")
	if got := decode[map[string]any](t, stdout); code != 0 || len(got) != 13 || got["prompt"] != "a cat" {
		t.Errorf("code %d\n%s", code, stdout)
	}
	env["GATEWAY_URL"] += "/v1/" // as an SDK wants it
	if stdout, _, code = run(t, env, "video", "cancel", "video_1"); code != 0 || !strings.Contains(stdout, "moderation_blocked") {
		t.Errorf("code %d\n%s", code, stdout)
	}
	if _, stderr, code := run(t, env, "video", "get", "page"); code != 1 || !strings.Contains(stderr, "check that --url is a gateway") {
		t.Errorf("code %d\n%s", code, stderr)
	}
}

func TestVideoWait(t *testing.T) {
	t.Parallel()
	states := func() map[string][]http.HandlerFunc {
		return map[string][]http.HandlerFunc{"GET /v1/videos/video_1": {
			answer(200, video("queued", 0)), answer(200, video("queued", 0)), answer(429, `{}`, "Retry-After: 0"),
			answer(200, video("in_progress", 50)), answer(200, video("completed", 100)),
		}}
	}
	fake, env := startFakeGateway(t, states())
	stdout, stderr, code := run(t, env, "video", "wait", "video_1", "--every", "1ms")
	if code != 0 || !strings.Contains(stdout, "completed") {
		t.Errorf("code %d\n%s\n%s", code, stdout, stderr)
	}
	if lines := strings.Split(strings.TrimSpace(stderr), "\n"); len(lines) != 3 || !strings.HasPrefix(lines[0], "queued   0%") ||
		!strings.HasPrefix(lines[2], "completed 100%") {
		t.Errorf("progress:\n%s", stderr)
	}
	requests, _ := fake.requests(http.MethodGet)
	if len(requests) != 5 || requests[0].URL.RawQuery != "wait=20" {
		t.Errorf("%d requests, query %q", len(requests), requests[0].URL.RawQuery)
	}

	_, env = startFakeGateway(t, states())
	stdout, stderr, code = run(t, env, "video", "wait", "video_1", "--every", "1ms", "--json")
	if code != 0 || stderr != "" || decode[map[string]any](t, stdout)["status"] != "completed" {
		t.Errorf("code %d\n%s\n%s", code, stdout, stderr)
	}

	_, env = startFakeGateway(t, states())
	p := newProgram("video", "wait", "video_1", "--every", "1ms")
	p.env, p.Terminal = env, true
	if code := p.do(t.Context()); code != 0 || !strings.Contains(p.err.String(), "\rin_progress  50% |██████████████              |") {
		t.Errorf("code %d\n%q", code, p.err)
	}
}

func TestVideoWaitForFailure(t *testing.T) {
	t.Parallel()
	_, env := startFakeGateway(t, map[string][]http.HandlerFunc{"GET /v1/videos/video_1": {answer(200, video("failed", 30))}})
	stdout, stderr, code := run(t, env, "video", "wait", "video_1", "--every", "1ms", "--json")
	if code != 1 || !strings.Contains(stderr, "video_1 failed: The prompt was refused. (moderation_blocked)") ||
		decode[map[string]any](t, stdout)["status"] != "failed" {
		t.Errorf("code %d\n%s\n%s", code, stdout, stderr)
	}
}

func TestVideoWaitInterrupted(t *testing.T) {
	t.Parallel()
	ctx, interrupt := context.WithCancel(t.Context())
	fake, env := startFakeGateway(t, map[string][]http.HandlerFunc{"GET /v1/videos/video_1": {
		answer(200, video("queued", 0)),
		func(_ http.ResponseWriter, r *http.Request) { interrupt(); <-r.Context().Done() },
	}})
	p := newProgram("video", "wait", "video_1", "--every", "1ms")
	p.env = env
	if code := p.do(ctx); code != 1 || !strings.Contains(p.err.String(), "To continue waiting: gateway video wait video_1") {
		t.Errorf("code %d\n%s", code, p.err)
	}
	if requests, _ := fake.requests(http.MethodPost); len(requests) != 0 {
		t.Error("the task was touched")
	}
}

// clip is a served file.
type clip struct {
	bytes  []byte
	etag   string
	digest string

	mu     sync.Mutex
	served bool
	// breaks are after how many bytes the first answer, and then each answer to a range, breaks off.
	breaks []int
}

func (c *clip) serve(w http.ResponseWriter, r *http.Request) {
	w.Header().Set("Etag", c.etag)
	if c.digest != "" {
		w.Header().Set("Repr-Digest", c.digest)
	}
	w.Header().Set("Content-Type", "video/mp4")
	c.mu.Lock()
	if (!c.served || r.Header.Get("Range") != "") && len(c.breaks) > 0 {
		w = &breaking{ResponseWriter: w, left: c.breaks[0]}
		c.breaks = c.breaks[1:]
	}
	c.served = true
	c.mu.Unlock()
	http.ServeContent(w, r, "", time.Time{}, bytes.NewReader(c.bytes))
}

// breaking ends the connection after some bytes.
type breaking struct {
	http.ResponseWriter

	left int
}

func (b *breaking) Write(p []byte) (int, error) {
	if len(p) > b.left {
		_, _ = b.ResponseWriter.Write(p[:b.left])
		_ = http.NewResponseController(b.ResponseWriter).Flush()
		panic(http.ErrAbortHandler)
	}
	b.left -= len(p)
	return b.ResponseWriter.Write(p)
}

func newClip(n int) *clip {
	c := &clip{bytes: make([]byte, n)}
	for i := range c.bytes {
		c.bytes[i] = byte(i * i >> 3)
	}
	sum := sha256.Sum256(c.bytes)
	c.etag = `"` + hex.EncodeToString(sum[:]) + `"`
	return c
}

func TestVideoDownload(t *testing.T) {
	t.Parallel()
	c := newClip(300_000)
	fake, env := startFakeGateway(t, map[string][]http.HandlerFunc{"GET /v1/videos/video_1/content": {c.serve}})
	folder := t.TempDir()
	output := filepath.Join(folder, "clip.mp4")
	stdout, stderr, code := run(t, env, "video", "download", "video_1", "-o", output, "--index", "2")
	got, err := os.ReadFile(output)
	if code != 0 || err != nil || !bytes.Equal(got, c.bytes) || !strings.Contains(stdout, strings.Trim(c.etag, `"`)) {
		t.Errorf("code %d, %v, %d bytes\n%s\n%s", code, err, len(got), stdout, stderr)
	}
	if requests, _ := fake.requests(http.MethodGet); len(requests) != 1 || requests[0].URL.RawQuery != "index=2" {
		t.Errorf("%d requests", len(requests))
	}
	if entries, _ := os.ReadDir(folder); len(entries) != 1 {
		t.Errorf("left behind: %v", entries)
	}
}

func TestVideoDownloadGoesOnWhereItBroke(t *testing.T) {
	t.Parallel()
	c := newClip(300_000)
	c.breaks = []int{100_000, 50_000} // the whole file, then a range of it; the second range is whole
	fake, env := startFakeGateway(t, map[string][]http.HandlerFunc{"GET /v1/videos/video_1/content": {c.serve}})
	output := filepath.Join(t.TempDir(), "clip.mp4")
	stdout, stderr, code := run(t, env, "video", "download", "video_1", "-o", output, "--json")
	got, err := os.ReadFile(output)
	if code != 0 || err != nil || !bytes.Equal(got, c.bytes) {
		t.Fatalf("code %d, %v, %d bytes\n%s\n%s", code, err, len(got), stdout, stderr)
	}
	if size := decode[map[string]any](t, stdout)["size"]; size != 300_000. {
		t.Errorf("size %v", size)
	}
	requests, _ := fake.requests(http.MethodGet)
	ranges := 0
	for _, r := range requests {
		if r.Header.Get("Range") != "" {
			ranges++
			if r.Header.Get("If-Range") != c.etag {
				t.Errorf("If-Range %q", r.Header.Get("If-Range"))
			}
		}
	}
	if ranges != 2 {
		t.Errorf("%d ranges were asked for, want 2", ranges)
	}
}

func TestVideoDownloadContinuesAnEarlierOne(t *testing.T) {
	t.Parallel()
	c := newClip(300_000)
	fake, env := startFakeGateway(t, map[string][]http.HandlerFunc{"GET /v1/videos/video_1/content": {c.serve}})
	output := filepath.Join(t.TempDir(), "clip.mp4")
	tag := sha256.Sum256([]byte(c.etag))
	earlier := output + "." + hex.EncodeToString(tag[:4]) + ".part"
	foreign := output + ".00000000.part" // of another video under the same name
	for path, bytes := range map[string][]byte{earlier: c.bytes[:200_000], foreign: []byte("other")} {
		if err := os.WriteFile(path, bytes, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	_, stderr, code := run(t, env, "video", "download", "video_1", "-o", output)
	got, err := os.ReadFile(output)
	if code != 0 || err != nil || !bytes.Equal(got, c.bytes) {
		t.Fatalf("code %d, %v, %d bytes\n%s", code, err, len(got), stderr)
	}
	requests, _ := fake.requests(http.MethodGet)
	if last := requests[len(requests)-1].Header.Get("Range"); last != "bytes=200000-" {
		t.Errorf("range %q", last)
	}
}

func TestVideoDownloadChecksTheDigest(t *testing.T) {
	t.Parallel()
	for _, digest := range []string{"etag", "repr-digest"} {
		c := newClip(1000)
		wrong := sha256.Sum256([]byte("wrong"))
		if digest == "etag" {
			c.etag = `"` + hex.EncodeToString(wrong[:]) + `"`
		} else {
			c.etag = `"x"`
			c.digest = "sha-256=:" + base64.StdEncoding.EncodeToString(wrong[:]) + ":"
		}
		_, env := startFakeGateway(t, map[string][]http.HandlerFunc{"GET /v1/videos/video_1/content": {c.serve}})
		folder := t.TempDir()
		_, stderr, code := run(t, env, "video", "download", "video_1", "-o", filepath.Join(folder, "clip.mp4"))
		entries, _ := os.ReadDir(folder)
		if code != 1 || !strings.Contains(stderr, "SHA-256") || len(entries) != 0 {
			t.Errorf("%s: code %d, left %v\n%s", digest, code, entries, stderr)
		}
	}
}

func TestVideoFromCreateToFile(t *testing.T) {
	t.Parallel()
	c := newClip(5000)
	fake, env := startFakeGateway(t, map[string][]http.HandlerFunc{
		"POST /v1/videos":                {answer(200, video("queued", 0))},
		"GET /v1/videos/video_1":         {answer(200, video("in_progress", 10)), answer(200, video("completed", 100))},
		"GET /v1/videos/video_1/content": {c.serve},
	})
	output := filepath.Join(t.TempDir(), "clip.mp4")
	stdout, stderr, code := run(t, env, "video", "create", "--prompt", "a cat", "-o", output, "--every", "1ms", "--json")
	got, err := os.ReadFile(output)
	if code != 0 || err != nil || !bytes.Equal(got, c.bytes) || !json.Valid([]byte(stdout)) {
		t.Errorf("code %d, %v\n%s\n%s", code, err, stdout, stderr)
	}
	if requests, _ := fake.requests(http.MethodPost); len(requests) != 1 {
		t.Errorf("%d creates", len(requests))
	}
}
