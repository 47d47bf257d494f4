package stacktest_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"syscall"
	"testing"
	"time"

	"go.yaml.in/yaml/v4"
)

// freePorts are the address flags of a stack that disturbs no other.
func freePorts() []string {
	var args []string
	for _, flag := range []string{"--temporal", "--ui", "--redis", "--s3", "--upstream"} {
		args = append(args, flag, "127.0.0.1:0")
	}
	return args
}

func TestServices(t *testing.T) {
	t.Parallel()
	data := t.TempDir()
	stack := start(t, append([]string{"--services", "--data", data}, freePorts()...)...)
	_, pasted, ok := strings.Cut(stack.stdout.String(), "For a gateway.yaml:\n\n")
	pasted, _, ready := strings.Cut(pasted, "\nready ")
	if !ok || !ready {
		t.Fatalf("no sections to paste in\n%s", stack.stdout)
	}
	var sections struct {
		Redis    struct{ URL string }
		Temporal struct{ Address, Namespace string }
		Archive  struct{ Endpoint, Bucket string }
		Channels []struct {
			Vendor string
			Base   string `yaml:"base_url"`
			Models map[string]string
		}
		Tokens []struct{ Name, Key string }
	}
	if err := yaml.Unmarshal([]byte(pasted), &sections); err != nil {
		t.Fatalf("the sections to paste: %v\n%s", err, pasted)
	}
	for _, addr := range []string{
		strings.TrimSuffix(strings.TrimPrefix(sections.Redis.URL, "redis://"), "/0"),
		sections.Temporal.Address,
		strings.TrimPrefix(sections.Archive.Endpoint, "http://"),
	} {
		conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", addr)
		if err != nil {
			t.Errorf("a printed address does not answer: %v", err)
			continue
		}
		_ = conn.Close()
	}
	if len(sections.Channels) == 0 || len(sections.Tokens) == 0 {
		t.Fatalf("channels and tokens are missing in\n%s", pasted)
	}

	// A part that dies is named, and the others go on.
	pid := childOf(t, stack.cmd.Process.Pid, "s3")
	if err := syscall.Kill(pid, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	line, err := stack.stderr.line(t.Context(), "part=s3", stack.done)
	if err != nil || !strings.Contains(line, "signal: killed") || !strings.Contains(line, " s3 --parts=embedded --listen ") {
		t.Errorf("the death of a part: got %q, %v, want its name, its status and how to start it again", line, err)
	}
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", sections.Temporal.Address); err != nil {
		t.Errorf("after another part's death: %v", err)
	} else {
		_ = conn.Close()
	}

	if got := stack.stop(); got != 0 {
		t.Errorf("exit status after SIGTERM: got %d, want 0", got)
	}
	last := -1
	for _, part := range []string{"upstream", "redis", "temporal"} {
		at := strings.Index(stack.stderr.String(), "msg=stopping part="+part)
		if at <= last {
			t.Errorf("%s was not stopped in its turn:\n%s", part, stack.stderr)
		}
		last = at
	}
	if conn, err := new(net.Dialer).DialContext(t.Context(), "tcp", sections.Temporal.Address); err == nil {
		_ = conn.Close()
		t.Error("temporal still listens after the stack's end")
	}
}

// TestUp pastes what the stack prints, as a newcomer does.
func TestUp(t *testing.T) {
	t.Parallel()
	for _, tool := range []string{"sh", "curl"} {
		if _, err := exec.LookPath(tool); err != nil {
			t.Skipf("%s is not on PATH", tool)
		}
	}
	dir := t.TempDir()
	config := filepath.Join(dir, "mine.yaml")
	if err := os.WriteFile(config, []byte("relay: {grace: 5s} # mine\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	args := append([]string{"--data", filepath.Join(dir, "data"), "--config", config, "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"},
		freePorts()...)
	stack := start(t, args...)

	var chats, video []string
	for line := range strings.Lines(stack.stdout.String()) {
		switch line = strings.TrimSpace(line); {
		case strings.HasPrefix(line, "curl "):
			chats = append(chats, line)
		case strings.HasPrefix(line, "export "), strings.Contains(line, " video create "):
			video = append(video, line)
		}
	}
	if len(chats) != 3 || len(video) != 2 { // the last one shows usage
		t.Fatalf("got %d calls and %d lines for a video, want 3 and 2, in\n%s", len(chats), len(video), stack.stdout)
	}
	wants := []string{`"chat.completion"`, "data: [DONE]", `{"object":"list","from":`}
	for i, chat := range chats {
		if text, err := shell(t, dir, chat+" --silent --show-error --fail"); err != nil || !strings.Contains(text, wants[i]) {
			t.Errorf("%s: got %v\n%s\nwant %s", chat, err, text, wants[i])
		}
	}
	if text, err := shell(t, dir, strings.Join(video, "\n")); err != nil {
		t.Errorf("%s: got %v\n%s\nwant success", video, err, text)
	}
	file, err := os.ReadFile(filepath.Join(dir, "cat.mp4"))
	if err != nil || len(file) < 12 || string(file[4:8]) != "ftyp" {
		t.Errorf("cat.mp4: got %d bytes, %v, want a video", len(file), err)
	}
	if line, err := stack.stderr.line(t.Context(), "task=video_", stack.done); err != nil {
		t.Errorf("a line about the task: got %q, %v", line, err)
	}

	metrics := regexp.MustCompile(`(?m)^metrics\s+(http://\S+)$`).FindStringSubmatch(stack.stdout.String())
	if metrics == nil {
		t.Fatalf("no address of the metrics in\n%s", stack.stdout)
	}
	if text, err := shell(t, dir, "curl --silent --show-error --fail "+metrics[1]); err != nil ||
		!strings.Contains(text, "\ngateway_tasks_created_total{") {
		t.Errorf("metrics: got %v\n%.500s\nwant the counts of what was done", err, text)
	}

	merged, err := os.Stat(filepath.Join(dir, "data", "gateway.yaml"))
	if err != nil || merged.Mode().Perm() != 0o600 {
		t.Errorf("the merged configuration: got %v, %v, want mode 0600", merged, err)
	}
	if got := stack.stop(); got != 0 {
		t.Errorf("exit status after SIGTERM: got %d, want 0", got)
	}
	last := -1
	for _, part := range []string{"gateway", "upstream", "s3", "redis", "temporal"} {
		at := strings.Index(stack.stderr.String(), "msg=stopping part="+part)
		if at <= last {
			t.Errorf("%s was not stopped in its turn:\n%s", part, stack.stderr)
		}
		last = at
	}
}

// TestUpServesDefaults: without a configuration of one's own, what the contract calls optional may be left out.
func TestUpServesDefaults(t *testing.T) {
	t.Parallel()
	args := append([]string{"--data", filepath.Join(t.TempDir(), "data"), "--listen", "127.0.0.1:0", "--metrics", "127.0.0.1:0"},
		freePorts()...)
	stack := start(t, args...)
	token := regexp.MustCompile(`(?m)^token\s+(\S+)$`).FindStringSubmatch(stack.stdout.String())
	if token == nil {
		t.Fatalf("no token in\n%s", stack.stdout)
	}
	for path, body := range map[string]string{"/v1/moderations": `{"input":"a cat"}`, "/v1/videos": `{"prompt":"a cat"}`} {
		req, err := http.NewRequestWithContext(t.Context(), http.MethodPost, stack.addr+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		req.Header.Set("Authorization", "Bearer "+token[1])
		resp, err := http.DefaultClient.Do(req)
		if err != nil {
			t.Fatal(err)
		}
		answer, err := io.ReadAll(resp.Body)
		resp.Body.Close()
		if err != nil || resp.StatusCode != http.StatusOK {
			t.Errorf("%s: got %d %s, %v", path, resp.StatusCode, answer, err)
		}
	}
}

// shell runs a script in dir.
func shell(t *testing.T, dir, script string) (string, error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 2*time.Minute)
	defer cancel()
	cmd := exec.CommandContext(ctx, "sh", "-c", script)
	cmd.Dir = dir
	out, err := cmd.CombinedOutput()
	return string(out), err
}

func TestStackNamesTakenAddress(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close()
	args := append([]string{"--services"}, freePorts()...)
	args[len(args)-3] = taken.Addr().String() // the object store's
	status, text := runToEnd(t, args...)
	if status != 1 || !strings.Contains(text, "the object store") || !strings.Contains(text, "--s3") {
		t.Errorf("got status %d\n%s\nwant 1, the part and its flag", status, text)
	}
}

func TestUsage(t *testing.T) {
	t.Parallel()
	for _, args := range [][]string{{"--nothing"}, {"temporal"}, {"sing"}} {
		if status, text := runToEnd(t, args...); status != 2 {
			t.Errorf("%v: got status %d, want 2\n%s", args, status, text)
		}
	}
}

// childOf returns the process id of the child of parent that runs the part name.
func childOf(t *testing.T, parent int, name string) int {
	t.Helper()
	stats, err := filepath.Glob("/proc/[0-9]*/stat")
	if err != nil || len(stats) == 0 {
		t.Skip("needs /proc")
	}
	for _, stat := range stats {
		dir := filepath.Dir(stat)
		text, err := os.ReadFile(stat)
		if err != nil {
			continue
		}
		_, rest, _ := strings.Cut(string(text), ") ")
		fields := strings.Fields(rest)
		line, err := os.ReadFile(filepath.Join(dir, "cmdline"))
		if err != nil || len(fields) < 2 || fields[1] != strconv.Itoa(parent) {
			continue
		}
		if args := strings.Split(string(line), "\x00"); len(args) > 1 && args[1] == name {
			pid, err := strconv.Atoi(filepath.Base(dir))
			if err != nil {
				t.Fatal(err)
			}
			return pid
		}
	}
	t.Fatalf("no child %s", name)
	return 0
}

// createJob starts a video job at the upstreams and returns its id.
func createJob(t *testing.T, addr string) string {
	t.Helper()
	status, body := call(t, http.MethodPost, "http://"+addr+"/openai/v1/videos", `{"model":"sora-2","prompt":"a cat"}`)
	var job struct{ ID string }
	if err := yaml.Unmarshal([]byte(body), &job); status != http.StatusOK || err != nil || job.ID == "" {
		t.Fatalf("create a job: got %d %s, %v", status, body, err)
	}
	return job.ID
}

func call(t *testing.T, method, url, body string) (status int, answer string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), method, url, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	request.Header.Set("Authorization", "Bearer sk-upstream-one")
	request.Header.Set("Content-Type", "application/json")
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		return 0, fmt.Sprint(err)
	}
	text, err := io.ReadAll(response.Body)
	if err := errors.Join(err, response.Body.Close()); err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, string(text)
}
