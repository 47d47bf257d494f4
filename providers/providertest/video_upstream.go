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

// resultPath is where the results of a vendor lie that names links to them; its requests are VideoContent.
const resultPath = "/result.mp4"

// videoUpstream is a fake of the subject's vendor: it gives each step the set answer and counts the submits.
type videoUpstream struct {
	t       *testing.T
	subject VideoSubject
	server  *httptest.Server

	mu      sync.Mutex
	answers map[VideoStep]http.HandlerFunc
	submits int
	// lenient: a request that is no step is not found, and no error of the test's.
	lenient bool
}

// upstream starts a vendor at which every submit is accepted and every job is done.
func (s videoSuite) upstream(t *testing.T) *videoUpstream {
	t.Helper()
	u := s.idleUpstream(t)
	u.server.Start()
	return u
}

// idleUpstream is an upstream that is not started yet.
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

// on says how a step is answered from now on.
func (u *videoUpstream) on(step VideoStep, answer http.HandlerFunc) {
	u.mu.Lock()
	defer u.mu.Unlock()
	u.answers[step] = answer
}

// submitted is how often a submit came.
func (u *videoUpstream) submitted() int {
	u.mu.Lock()
	defer u.mu.Unlock()
	return u.submits
}

// images is the step that brings an image, and the name of its answer.
func (u *videoUpstream) images() (step VideoStep, file string) {
	if _, err := fs.Stat(u.subject.Answers, "upload.http"); err == nil {
		return VideoUpload, "upload"
	}
	return VideoSubmit, "submitted"
}

// link says where the result of the job lies from now on; false where the vendor names no links.
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

// file answers with a file of the subject's.
func (u *videoUpstream) file(name string) http.HandlerFunc {
	u.t.Helper()
	return u.send(u.answer(name, "", ""))
}

// send gives the set answer.
func (u *videoUpstream) send(a answer) http.HandlerFunc {
	return func(w http.ResponseWriter, r *http.Request) {
		maps.Copy(w.Header(), a.header)
		w.WriteHeader(a.status)
		_, _ = w.Write(bytes.ReplaceAll(a.body, []byte("{{link}}"), []byte("http://"+r.Host+resultPath))) //nolint:gosec // a test's own words
	}
}

// text answers with a status and a body as they are.
func (u *videoUpstream) text(status int, contentType, body string) http.HandlerFunc {
	return func(w http.ResponseWriter, _ *http.Request) {
		w.Header().Set("Content-Type", contentType)
		w.WriteHeader(status)
		_, _ = io.WriteString(w, body)
	}
}

// clipBytes is what the vendor's videos look like, longer than any buffer on the way.
func clipBytes() []byte {
	return append([]byte(clipHead), bytes.Repeat([]byte("moov and mdat; "), 100_000)...)
}

// clipHead begins an MP4 file, and pictureHead a WebP one, by which they are known.
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

// hang keeps a request without an answer until its client is gone, and then closes gone.
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

// wantFault wants a *Fault that keeps the key to itself.
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

// wantHush wants no key in what leaves the adapter.
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
