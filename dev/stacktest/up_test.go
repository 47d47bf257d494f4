package stacktest_test

import (
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"testing"

	"github.com/goccy/go-yaml"
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
	if err != nil || !strings.Contains(line, "signal: killed") || !strings.Contains(line, " s3 --listen ") {
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

func TestStackNamesTakenAddress(t *testing.T) {
	t.Parallel()
	taken, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer taken.Close() //nolint:errcheck // nothing to lose
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
		text, err := os.ReadFile(stat) //nolint:gosec // below /proc
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
