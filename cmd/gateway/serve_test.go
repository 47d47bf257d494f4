package main_test

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"

	redisserver "github.com/alicebob/miniredis/v2/server"

	main "modelrelay/cmd/gateway"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

// upstream answers chats with its name; stream chats send one event, wait for release, and send the last.
type upstream struct {
	*httptest.Server

	name    string
	calls   atomic.Int64
	begun   chan struct{} // one message per stream that began
	release chan struct{} // closed: streams go on
}

func startUpstream(t *testing.T, name string) *upstream {
	t.Helper()
	u := &upstream{name: name, begun: make(chan struct{}, 100), release: make(chan struct{})}
	u.Server = httptest.NewServer(http.HandlerFunc(u.serve))
	t.Cleanup(u.Close)
	return u
}

func (u *upstream) serve(w http.ResponseWriter, r *http.Request) {
	u.calls.Add(1)
	body, _ := io.ReadAll(r.Body)
	if !strings.Contains(string(body), `"stream":true`) {
		w.Header().Set("Content-Type", "application/json")
		fmt.Fprintf(w, `{"id":"c","object":"chat.completion","model":"m","choices":[{"index":0,"message":{"role":"assistant","content":%q},"finish_reason":"stop"}],"usage":{"prompt_tokens":1,"completion_tokens":1,"total_tokens":2}}`, u.name)
		return
	}
	w.Header().Set("Content-Type", "text/event-stream")
	flush := http.NewResponseController(w).Flush
	fmt.Fprint(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"first\"}}]}\n\n")
	_ = flush()
	u.begun <- struct{}{}
	select {
	case <-u.release:
	case <-r.Context().Done():
		return
	}
	fmt.Fprint(w, "data: {\"id\":\"c\",\"choices\":[{\"index\":0,\"delta\":{\"content\":\"last\"},\"finish_reason\":\"stop\"}]}\n\ndata: [DONE]\n\n")
}

// serving is a gateway that runs in this process.
type serving struct {
	*program

	t      *testing.T
	config string
	url    string
	hangup chan os.Signal
	stop   context.CancelFunc // as SIGTERM does
	ended  chan int           // its exit code
}

// serve starts `gateway serve` and waits until it listens.
func serve(t *testing.T, text string, args ...string) *serving {
	t.Helper()
	return serveFile(t, writeFile(t, "gateway.yaml", text), args...)
}

func serveFile(t *testing.T, path string, args ...string) *serving {
	t.Helper()
	return serveWith(t, path, func(*program) {}, args...)
}

// serveWith starts it in changed surroundings.
func serveWith(t *testing.T, path string, change func(*program), args ...string) *serving {
	t.Helper()
	s := &serving{t: t, config: path, hangup: make(chan os.Signal), ended: make(chan int, 1)}
	s.program = newProgram(append([]string{"serve", "--config", path}, args...)...)
	s.Hangup = s.hangup
	change(s.program)
	ctx, stop := context.WithCancel(context.WithoutCancel(t.Context()))
	s.stop = stop
	go func() { s.ended <- s.do(ctx) }()
	t.Cleanup(func() {
		stop()
		if s.url != "" {
			s.end()
		}
	})
	line := decode[struct{ Address string }](t, s.err.line(t, 1, `"msg":"listening"`))
	s.url = "http://" + line.Address
	return s
}

// end waits for the program's end and returns its exit code.
func (s *serving) end() int {
	s.t.Helper()
	limit, cancel := context.WithTimeout(context.WithoutCancel(s.t.Context()), patience) // also used while the test ends
	defer cancel()
	select {
	case code := <-s.ended:
		s.ended <- code
		return code
	case <-limit.Done():
		s.t.Error("the gateway does not end")
		return -1
	}
}

func (s *serving) rewrite(text string) {
	s.t.Helper()
	// As an editor does: a new file takes the old one's name.
	next := s.config + "~"
	if err := os.WriteFile(next, []byte(text), 0o600); err != nil {
		s.t.Fatal(err)
	}
	if err := os.Rename(next, s.config); err != nil {
		s.t.Fatal(err)
	}
}

// chat makes one call and returns the answer's status and body.
func (s *serving) chat(ctx context.Context, client *http.Client, key string) (int, string, error) {
	resp, err := s.post(ctx, client, key, `{"model":"m","messages":[{"role":"user","content":"hi"}]}`)
	if err != nil {
		return 0, "", err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	return resp.StatusCode, string(body), err
}

func (s *serving) post(ctx context.Context, client *http.Client, key, body string) (*http.Response, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, s.url+"/v1/chat/completions", strings.NewReader(body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Authorization", "Bearer "+key)
	req.Header.Set("Content-Type", "application/json")
	return client.Do(req)
}

func (s *serving) get(path string) (int, string) {
	s.t.Helper()
	return s.getAt(s.url + path)
}

func (s *serving) getAt(url string) (int, string) {
	s.t.Helper()
	req, err := http.NewRequestWithContext(s.t.Context(), http.MethodGet, url, nil)
	if err != nil {
		s.t.Fatal(err)
	}
	resp, err := newClient(s.t).Do(req)
	if err != nil {
		s.t.Fatal(err)
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		s.t.Fatal(err)
	}
	return resp.StatusCode, string(body)
}

func newClient(t *testing.T) *http.Client {
	t.Helper()
	transport := &http.Transport{MaxIdleConnsPerHost: 16}
	t.Cleanup(transport.CloseIdleConnections)
	return &http.Client{Transport: transport}
}

// configFor is a file with one channel and one token; services that are away have port 1.
func configFor(redis, baseURL, key, relay string) string {
	return fmt.Sprintf(`listen: 127.0.0.1:0
metrics: {listen: ""}
redis: {url: %q}
temporal: {address: 127.0.0.1:1}
archive: {endpoint: "http://127.0.0.1:1", access_key: a, secret_key: b}
relay: {%s}
tokens: [{name: demo, key: %s}]
channels: [{name: main, vendor: openai, base_url: %q, keys: [sk-upstream-hidden], models: {m: }}]
`, redis, relay, key, baseURL)
}

const redisAway = "redis://127.0.0.1:1/0"

// TestServeWithEverythingAway: relayed calls need no Redis, Temporal or archive, and /readyz names what is away.
func TestServeWithEverythingAway(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, "A")
	s := serve(t, configFor(redisAway, u.URL, "sk-demo", ""))
	status, body, err := s.chat(t.Context(), newClient(t), "sk-demo")
	if err != nil || status != 200 || !strings.Contains(body, `"content":"A"`) {
		t.Errorf("chat: %d %s %v", status, body, err)
	}
	if status, body := s.get("/healthz"); status != 200 {
		t.Errorf("healthz: %d %s", status, body)
	}
	status, body = s.get("/readyz")
	checks := decode[struct {
		Checks map[string]struct{ Status, Error string }
	}](t, body).Checks
	if status != 503 || len(checks) != 4 { // the store of keys has never answered
		t.Errorf("readyz: %d %s", status, body)
	}
	for _, part := range []string{"tokens", "redis", "temporal", "archive"} {
		if checks[part].Error != "unavailable" {
			t.Errorf("readyz: %s is %+v", part, checks[part])
		}
	}
	s.stop()
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.err)
	}
	if log := s.err.String(); strings.Contains(log, "hidden") || strings.Contains(log, "sk-demo") {
		t.Errorf("a secret stands in the log:\n%s", log)
	}
}

// TestReadyWithoutTemporalOrStore: calls go on, so the process stays in service, and so it does when Redis goes after that:
// the answer says what is away. A Redis that takes no writes is.
func TestReadyWithoutTemporalOrStore(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	s := serve(t, configFor("redis://"+server.Addr(), "http://127.0.0.1:1", "sk-demo", ""), "--worker=false")
	type answer struct {
		Status string
		Parts  map[string]string
		Checks map[string]struct{ Status string }
	}
	ready := func(path string, want int) answer {
		t.Helper()
		status, body := s.get("/readyz" + path)
		if status != want {
			t.Errorf("/readyz%s: %d %s, want %d", path, status, body, want)
		}
		return decode[answer](t, body)
	}
	testwait.Eventually(t, "the tokens are read", patience, func() bool {
		status, _ := s.get("/readyz?for=relay")
		return status == 200
	})
	got := ready("", 200)
	if got.Status != "degraded" || got.Parts["relay"] != "ok" || got.Parts["video"] != "error" || got.Checks["redis"].Status != "ok" ||
		got.Checks["temporal"].Status != "error" {
		t.Errorf("readyz: %+v", got)
	}
	ready("?for=relay", 200)
	ready("?for=video", 503)

	server.Server().SetPreHook(func(peer *redisserver.Peer, command string, _ ...string) bool {
		if command == "SET" {
			peer.WriteError("READONLY You can't write against a read only replica.")
		}
		return command == "SET"
	})
	testwait.Eventually(t, "a verdict that Redis takes no writes", patience, func() bool { // the last stands for a second
		got = ready("", 200)
		return got.Checks["redis"].Status != "ok"
	})
	if got.Checks["redis"].Status != "error" || got.Parts["relay"] != "ok" {
		t.Errorf("on a Redis that takes no writes: %+v", got)
	}
}

// TestWorkerWithEverythingAway: a worker waits for Temporal and ends at once when it is signalled.
func TestWorkerWithEverythingAway(t *testing.T) {
	t.Parallel()
	path := writeFile(t, "gateway.yaml", configFor(redisAway, "http://127.0.0.1:1", "sk-demo", ""))
	p := newProgram("worker", "--config", path)
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan int, 1)
	go func() { ended <- p.do(ctx) }()
	p.err.line(t, 1, `"msg":"working"`)
	p.err.line(t, 1, `"msg":"temporal is not ready, waiting"`)
	stop()
	if code := <-ended; code != 0 {
		t.Errorf("exit code %d\n%s", code, p.err)
	}
}

func TestServeRefusesATakenAddress(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer func() { _ = taken.Close() }()
	text := strings.Replace(configFor(redisAway, "http://u.test", "k", ""), "127.0.0.1:0", taken.Addr().String(), 1)
	_, stderr, code := run(t, nil, "serve", "--worker=false", "--config", writeFile(t, "gateway.yaml", text))
	if code != main.ExitFailed || !strings.Contains(stderr, "gateway: listen: ") {
		t.Errorf("code %d\n%s", code, stderr)
	}
}

// TestReloadDropsNoCall changes the file while calls flow.
func TestReloadDropsNoCall(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	redis := "redis://" + server.Addr()
	a, b := startUpstream(t, "A"), startUpstream(t, "B")
	s := serve(t, configFor(redis, a.URL, "sk-demo", ""), "--worker=false")

	flow, stopFlow := context.WithCancel(t.Context())
	defer stopFlow()
	var callers sync.WaitGroup
	var last atomic.Value
	client := newClient(t)
	for range 4 {
		callers.Go(func() {
			for flow.Err() == nil {
				status, body, err := s.chat(context.WithoutCancel(flow), client, "sk-demo")
				if err != nil || status != 200 {
					t.Errorf("chat: %d %s %v", status, body, err)
					return
				}
				last.Store(body)
			}
		})
	}

	s.rewrite(configFor(redis, b.URL, "sk-demo", "grace: 5s"))
	s.err.line(t, 1, `"msg":"configuration loaded"`)
	if line := s.err.line(t, 1, "after a restart"); !strings.Contains(line, `"keys":["relay.grace"]`) {
		t.Errorf("restart keys: %s", line)
	}
	before := a.calls.Load()
	_, body, err := s.chat(t.Context(), client, "sk-demo")
	if err != nil || !strings.Contains(body, `"content":"B"`) {
		t.Errorf("after the reload: %s %v", body, err)
	}

	s.rewrite("channels: [{name: main, vendr: openai}]\n")
	refused := s.err.line(t, 1, `"msg":"configuration refused, the previous one remains in effect"`)
	if !strings.Contains(refused, "1:25: channels[0].vendr: unknown key") {
		t.Errorf("refused: %s", refused)
	}
	s.rewrite("channels: [\n")
	s.err.line(t, 2, `"msg":"configuration refused, the previous one remains in effect"`)
	s.rewrite("\n")
	if refused := s.err.line(t, 3, `"msg":"configuration refused, the previous one remains in effect"`); !strings.Contains(refused, "the file is empty") {
		t.Errorf("refused: %s", refused)
	}
	if status, _, err := s.chat(t.Context(), client, "sk-demo"); err != nil || status != 200 {
		t.Errorf("after a broken file: %d %v", status, err)
	}
	stopFlow()
	callers.Wait()
	if calls := a.calls.Load(); calls > before+4 { // calls in flight keep their target
		t.Errorf("%d calls went to the old channel after the reload", calls-before)
	}

	// A token that leaves the file is refused, its successor works.
	s.rewrite(configFor(redis, b.URL, "sk-next", "grace: 5s"))
	s.err.line(t, 2, `"msg":"configuration loaded"`)
	if status, _, err := s.chat(t.Context(), client, "sk-demo"); err != nil || status != 401 {
		t.Errorf("old key: %d %v", status, err)
	}
	if status, _, err := s.chat(t.Context(), client, "sk-next"); err != nil || status != 200 {
		t.Errorf("new key: %d %v", status, err)
	}

	// SIGHUP reads the file whether it changed or not.
	s.hangup <- os.Interrupt
	s.err.line(t, 3, `"msg":"configuration loaded"`)
}

// TestReloadOfAMountedFile changes it as a mounted configuration changes: a link to a folder is replaced.
func TestReloadOfAMountedFile(t *testing.T) {
	t.Parallel()
	a, b := startUpstream(t, "A"), startUpstream(t, "B")
	folder := t.TempDir()
	for name, u := range map[string]*upstream{"..one": a, "..two": b} {
		if err := os.Mkdir(filepath.Join(folder, name), 0o700); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(folder, name, "gateway.yaml"), []byte(configFor(redisAway, u.URL, "sk-demo", "")),
			0o600); err != nil {
			t.Fatal(err)
		}
	}
	link := func(target, name string) {
		t.Helper()
		if err := os.Symlink(target, filepath.Join(folder, name)); err != nil {
			t.Fatal(err)
		}
	}
	link("..one", "..data")
	link(filepath.Join("..data", "gateway.yaml"), "gateway.yaml")
	s := serveFile(t, filepath.Join(folder, "gateway.yaml"), "--worker=false")
	link("..two", "..data_tmp")
	if err := os.Rename(filepath.Join(folder, "..data_tmp"), filepath.Join(folder, "..data")); err != nil {
		t.Fatal(err)
	}
	s.err.line(t, 1, `"msg":"configuration loaded"`)
	if _, body, err := s.chat(t.Context(), newClient(t), "sk-demo"); err != nil || !strings.Contains(body, `"content":"B"`) {
		t.Errorf("after the reload: %s %v", body, err)
	}
}

// stream begins a streamed chat and returns a reader behind its first event.
func (s *serving) stream(u *upstream) *bufio.Reader {
	s.t.Helper()
	resp, err := s.post(s.t.Context(), newClient(s.t), "sk-demo", `{"model":"m","stream":true,"messages":[{"role":"user","content":"hi"}]}`)
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Cleanup(func() { _ = resp.Body.Close() })
	<-u.begun
	reader := bufio.NewReader(resp.Body)
	if line, err := reader.ReadString('\n'); err != nil || !strings.Contains(line, "first") {
		s.t.Fatalf("first event: %q %v", line, err)
	}
	return reader
}

func TestStopLetsStreamsEnd(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, "A")
	s := serve(t, configFor(redisAway, u.URL, "sk-demo", ""), "--worker=false")
	reader := s.stream(u)
	s.stop()
	s.err.line(t, 1, `"msg":"stopping"`)
	if !refused(t, s.url) {
		t.Error("a new connection is still taken")
	}
	close(u.release)
	rest, err := io.ReadAll(reader)
	if err != nil || !strings.Contains(string(rest), "last") || !strings.HasSuffix(string(rest), "data: [DONE]\n\n") {
		t.Errorf("rest %q, %v", rest, err)
	}
	if code := s.end(); code != 0 {
		t.Errorf("exit code %d\n%s", code, s.err)
	}
}

func TestStopCutsOffAfterTheGrace(t *testing.T) {
	t.Parallel()
	u := startUpstream(t, "A")
	s := serve(t, configFor(redisAway, u.URL, "sk-demo", "grace: 50ms"), "--worker=false")
	reader := s.stream(u)
	s.stop()
	rest, err := io.ReadAll(reader)
	if err != nil || strings.Contains(string(rest), "[DONE]") || !strings.Contains(string(rest), `"code":"overloaded"`) {
		t.Errorf("rest %q, %v, want an error event at its end", rest, err)
	}
	if code := s.end(); code != 0 || !strings.Contains(s.err.String(), "open calls are cut off") ||
		strings.Contains(s.err.String(), "still running") {
		t.Errorf("exit code %d\n%s", code, s.err)
	}
}

// refused reports whether the address takes no connection any more, which may need a moment.
func refused(t *testing.T, url string) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	for ctx.Err() == nil {
		conn, err := new(net.Dialer).DialContext(ctx, "tcp", strings.TrimPrefix(url, "http://"))
		if err != nil {
			return true
		}
		_ = conn.Close()
	}
	return false
}
