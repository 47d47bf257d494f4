package providertest

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"maps"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"sync"
	"testing"

	"modelrelay/providers"
)

// resultPath is the path of the results of a vendor with links; its requests are VideoContent.
const resultPath = "/result.mp4"

// videoUpstream is a fake of the subject's vendor: it sends the set answer of each step and counts the submits.
type videoUpstream struct {
	t       *testing.T
	subject VideoSubject
	server  *httptest.Server

	mu      sync.Mutex
	answers map[VideoStep]http.HandlerFunc
	submits int
	// lenient: the answer to a request without a step is 404, and the test does not fail.
	lenient bool
}

// upstream starts a vendor that accepts every submit and has finished every job.
func (s videoSuite) upstream(t *testing.T) *videoUpstream {
	t.Helper()
	u := s.idleUpstream(t)
	u.server.Start()
	return u
}

// idleUpstream returns an upstream that is not started yet.
func (s videoSuite) idleUpstream(t *testing.T) *videoUpstream {
	t.Helper()
	u := &videoUpstream{t: t, subject: s.subject}
	u.answers = map[VideoStep]http.HandlerFunc{
		VideoSubmit: u.file("submitted"), VideoPoll: u.file("done"), VideoContent: u.clip, VideoRemix: u.file("submitted"),
	}
	for step, name := range map[VideoStep]string{VideoCancel: "cancelled", VideoFind: "find", VideoLink: "link", VideoUpload: "upload"} {
		if _, err := fs.Stat(s.subject.Answers, name+".http"); err == nil {
			u.answers[step] = u.file(name)
		}
	}
	u.server = httptest.NewUnstartedServer(u)
	t.Cleanup(u.server.Close)
	return u
}

// ServeHTTP implements http.Handler.
func (u *videoUpstream) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, err := io.ReadAll(r.Body)
	if err != nil {
		u.t.Errorf("read the request: %v", err)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	step := u.subject.Step(r)
	if r.Method == http.MethodGet && r.URL.Path == resultPath {
		step = VideoContent
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	u.mu.Lock()
	if step == VideoSubmit {
		u.submits++
	}
	answer := u.answers[step]
	u.mu.Unlock()
	if answer == nil && u.lenient {
		http.NotFound(w, r)
		return
	}
	if answer == nil {
		u.t.Errorf("got a request that is no step: %s %s", r.Method, r.URL.Path)
		http.NotFound(w, r)
		return
	}
	if !u.subject.Authorized(r, videoSuite{u.subject}.at("").Key) {
		u.t.Errorf("%s does not carry the key as the vendor wants it", step)
	}
	if got := r.Header.Get("User-Agent"); got != suiteAgent {
		u.t.Errorf("%s: got agent %q", step, got)
	}
	r.Body = io.NopCloser(bytes.NewReader(body))
	answer(w, r)
}

// on sets the answer to a step.
func (u *videoUpstream) on(step VideoStep, answer http.HandlerFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answers[step] = answer
}

// submitted returns the number of submits.
func (u *videoUpstream) submitted() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.submits
}

// images returns the step that sends an image, and the name of its answer.
func (u *videoUpstream) images() (step VideoStep, file string) {
	if _, err := fs.Stat(u.subject.Answers, "upload.http"); err == nil {
		return VideoUpload, "upload"
	}
	return VideoSubmit, "submitted"
}

// link sets the address of the job's result. It reports false if the vendor has no links.
func (u *videoUpstream) link(at string) bool {
	u.t.Helper()
	for _, names := range [...]struct {
		step VideoStep
		file string
	}{{VideoLink, "link"}, {VideoPoll, "linked"}} {
		if _, err := fs.Stat(u.subject.Answers, names.file+".http"); err == nil {
			u.on(names.step, u.send(u.answer(names.file, "{{link}}", at)))
			return true
		}
	}
	return false
}

// answer is one of the subject's answers.
type answer struct {
	status int
	header http.Header
	body   []byte
}

// answer reads one of the subject's answers with a mark replaced; "" replaces none.
func (u *videoUpstream) answer(name, mark, text string) answer {
	u.t.Helper()
	raw, err := fs.ReadFile(u.subject.Answers, name+".http")
	if err != nil {
		u.t.Fatal(err)
	}
	resp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(raw)), nil)
	if err != nil {
		u.t.Fatalf("%s.http: %v", name, err)
	}
	body, err := io.ReadAll(resp.Body)
	if closed := resp.Body.Close(); err != nil || closed != nil {
		u.t.Fatalf("%s.http: %v", name, errors.Join(err, closed))
	}
	if resp.Header.Get("Source") == "" {
		u.t.Fatalf("%s.http does not say where its shape comes from", name)
	}
	resp.Header.Del("Source")
	if mark != "" && !bytes.Contains(body, []byte(mark)) {
		u.t.Fatalf("%s.http lacks %s", name, mark)
	}
	if mark != "" {
		body = bytes.ReplaceAll(body, []byte(mark), []byte(text))
	}
	return answer{resp.StatusCode, resp.Header, body}
}

// file answers with a file of the subject.
func (u *videoUpstream) file(name string) http.HandlerFunc {
	u.t.Helper()
	return u.send(u.answer(name, "", ""))
}

// send sends the answer.
func (u *videoUpstream) send(a answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), a.header)
		w.WriteHeader(a.status)
		_, _ = w.Write(bytes.ReplaceAll(a.body, []byte("{{link}}"), []byte("http://"+r.Host+resultPath))) //nolint:gosec // a test's own text
	}
}

// text answers with a status and a body.
func (u *videoUpstream) text(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// clipBytes returns a video of the vendor, which is longer than any buffer.
func clipBytes() []byte {
	return append([]byte(clipHead), bytes.Repeat([]byte("moov and mdat; "), 100_000)...)
}

// clipHead is the beginning of an MP4 file, pictureHead that of a WebP file.
const (
	clipHead    = "\x00\x00\x00\x18ftypisom\x00\x00\x02\x00isomiso2"
	pictureHead = "RIFF\x24\x00\x00\x00WEBPVP8 "
)

func (u *videoUpstream) clip(w http.ResponseWriter, _ *http.Request) {
	clip := clipBytes()
	w.Header().Set("Content-Type", "video/mp4")
	w.Header().Set("Content-Length", fmt.Sprint(len(clip)))
	_, _ = w.Write(clip)
}

// hang holds a request without an answer until its client is gone, and then closes gone.
func (u *videoUpstream) hang(arrived func(), gone chan<- struct{}) http.HandlerFunc {
	return func(_ http.ResponseWriter, r *http.Request) {
		defer close(gone)
		arrived()
		<-r.Context().Done()
	}
}

// drop ends the connection without an answer, by a reset or by an orderly end.
func (u *videoUpstream) drop(reset bool) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		conn, _, err := http.NewResponseController(w).Hijack()
		if err != nil {
			u.t.Errorf("hijack: %v", err)
			return
		}
		if tcp, ok := conn.(*net.TCPConn); ok && reset {
			_ = tcp.SetLinger(0)
		}
		_ = conn.Close()
	}
}

// wantFault requires a *Fault without the key.
func wantFault(t *testing.T, err error) *providers.Fault {
	t.Helper()
	var fault *providers.Fault
	if !errors.As(err, &fault) {
		t.Fatalf("got error %v, want a *Fault", err)
	}
	if fault.Message == "" {
		t.Error("the fault has no message")
	}
	wantHush(t, "error", err.Error()+fault.Error()+fault.Message)
	return fault
}

// wantHush requires that the adapter's output does not contain the key.
func wantHush(t *testing.T, what string, shown any) {
	t.Helper()
	doc, err := json.Marshal(shown)
	if err != nil {
		t.Fatal(err)
	}
	if strings.Contains(string(doc), hushKey) {
		t.Errorf("the %s tells the key: %s", what, doc)
	}
}
