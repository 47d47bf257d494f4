// Package stacktest starts the development stack as its users do, as processes, kills them and checks what is left.
// It is one package, and apart from the program's own, so that the Temporal server is linked once.
package stacktest_test

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"flag"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"modelrelay/dev/checkout"
)

// startTimeout bounds the start of one process on a busy machine.
const startTimeout = time.Minute

func TestMain(m *testing.M) {
	flag.Parse()
	os.Exit(func() int {
		if testing.Short() {
			return m.Run()
		}
		dir, err := os.MkdirTemp("", "dev-stacktest-")
		if err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		defer os.RemoveAll(dir) //nolint:errcheck // a temporary folder
		program := filepath.Join(dir, "stack")
		// The stack builds the gateway itself. It is in the build cache by then, so its compilation takes no test's time.
		for _, target := range []struct{ folder, pkg, file string }{
			{"..", "./stack", program}, {filepath.Join("..", ".."), "./cmd/gateway", filepath.Join(dir, "gateway")},
		} {
			if err := checkout.Build(context.Background(), target.folder, target.pkg, target.file, os.Stderr); err != nil {
				fmt.Fprintln(os.Stderr, err)
				return 1
			}
		}
		if err := os.Setenv(programKey, program); err != nil {
			fmt.Fprintln(os.Stderr, err)
			return 1
		}
		return m.Run()
	}())
}

// programKey names the environment variable that hands the built program to the tests.
const programKey = "DEV_STACKTEST_PROGRAM"

// program returns the path of the built stack, and skips the test where none was built.
func program(t *testing.T) string {
	t.Helper()
	path := os.Getenv(programKey)
	if path == "" {
		t.Skip("starts real servers: left out with -short")
	}
	return path
}

// running is a process of the stack.
type running struct {
	cmd *exec.Cmd
	// addr is the rest of its ready line.
	addr           string
	stdout, stderr *output
	done           chan struct{}
	err            error // after done
}

// start starts the stack's program and returns once it printed its ready line. What is still alive at the end of
// the test is asked to end, and killed if it does not.
func start(t *testing.T, args ...string) *running {
	t.Helper()
	return startCommand(t, exec.Command(program(t), args...))
}

// startCommand is start with another command.
func startCommand(t *testing.T, cmd *exec.Cmd) *running {
	t.Helper()
	r := &running{cmd: cmd, stdout: newOutput(), stderr: newOutput(), done: make(chan struct{})}
	cmd.Stdout, cmd.Stderr = r.stdout, r.stderr
	cmd.WaitDelay = 5 * time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	go func() {
		r.err = cmd.Wait()
		close(r.done)
	}()
	t.Cleanup(func() {
		r.stop()
		if t.Failed() {
			t.Logf("%v said:\n%s%s", cmd.Args, r.stdout, r.stderr)
		}
	})
	line, err := r.stdout.line(t.Context(), "ready ", r.done)
	if err != nil {
		t.Fatalf("%v: %v", cmd.Args, err)
	}
	r.addr = strings.TrimPrefix(line, "ready ")
	return r
}

// kill ends the process as a crash would.
func (r *running) kill(t *testing.T) {
	t.Helper()
	if err := r.cmd.Process.Kill(); err != nil {
		t.Fatal(err)
	}
	<-r.done
}

// stop ends the process in order and returns its exit status, -1 where it had to be killed.
func (r *running) stop() int {
	_ = r.cmd.Process.Signal(syscall.SIGTERM) // it may have ended
	select {
	case <-r.done:
	case <-time.After(startTimeout):
		_ = r.cmd.Process.Kill()
		<-r.done
	}
	return r.cmd.ProcessState.ExitCode()
}

// output collects what a process prints and lets a test wait for a line of it.
type output struct {
	mu      sync.Mutex
	text    bytes.Buffer
	changed chan struct{} // closed and replaced at every write
}

func newOutput() *output { return &output{changed: make(chan struct{})} }

func (o *output) Write(b []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	close(o.changed)
	o.changed = make(chan struct{})
	return o.text.Write(b)
}

// String returns everything printed so far.
func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// line waits for a whole line that contains part.
func (o *output) line(ctx context.Context, part string, done <-chan struct{}) (string, error) {
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	for {
		o.mu.Lock()
		changed := o.changed
		text := o.text.String()
		o.mu.Unlock()
		whole := text[:strings.LastIndexByte(text, '\n')+1]
		for scan := bufio.NewScanner(strings.NewReader(whole)); scan.Scan(); {
			if strings.Contains(scan.Text(), part) {
				return scan.Text(), nil
			}
		}
		select {
		case <-changed:
		case <-done:
			if o.String() == text {
				return "", fmt.Errorf("ended without a line %q", part)
			}
		case <-ctx.Done():
			return "", fmt.Errorf("no line %q: %w", part, ctx.Err())
		}
	}
}

// eventually waits until try succeeds and fails the test with its last error otherwise.
func eventually(t *testing.T, what string, try func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	tick := time.NewTicker(50 * time.Millisecond)
	defer tick.Stop()
	for {
		err := try()
		if err == nil {
			return
		}
		select {
		case <-ctx.Done():
			t.Fatalf("%s: %v", what, err)
		case <-tick.C:
		}
	}
}

// runToEnd runs the stack's program where it is expected to end by itself.
func runToEnd(t *testing.T, args ...string) (status int, text string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), startTimeout)
	defer cancel()
	cmd := exec.CommandContext(ctx, program(t), args...)
	out, err := cmd.CombinedOutput()
	if exit := (*exec.ExitError)(nil); err != nil && !errors.As(err, &exit) {
		t.Fatal(err)
	}
	return cmd.ProcessState.ExitCode(), string(out)
}
