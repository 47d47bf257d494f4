package stack

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

// Binaries are the programs that a stack runs.
type Binaries struct{ Dev, Gateway string }

// Bin are those that Build made, once for all tests.
var Bin Binaries

// Build makes the binaries of all stacks in a directory, from the repository at root.
func Build(ctx context.Context, root, dir string) error {
	Bin = Binaries{Dev: filepath.Join(dir, "dev"), Gateway: filepath.Join(dir, "gateway")}
	for _, step := range [][]string{{filepath.Join(root, "dev"), Bin.Dev, "./stack"}, {root, Bin.Gateway, "./cmd/gateway"}} {
		cmd := exec.CommandContext(ctx, "go", "build", "-o", step[1], step[2])
		cmd.Dir = step[0]
		cmd.Env = append(os.Environ(), "GOWORK=off")
		if out, err := cmd.CombinedOutput(); err != nil {
			return fmt.Errorf("build %s: %w\n%s", step[2], err, out)
		}
	}
	return prepareParts(ctx)
}

// ShownLines is how much of a process's output a failed test shows: a test has up to ten processes, and what it found must not
// drown in them.
const ShownLines = 25

// Process is a child process with its output kept.
type Process struct {
	Name string
	Cmd  *exec.Cmd
	Out  *Output
	Done chan struct{} // closed at its end
}

// Launch starts a process. It is killed at the test's end, and its output is shown when the test failed.
func Launch(t *testing.T, name, path string, args ...string) *Process {
	t.Helper()
	return LaunchBy(t, (*exec.Cmd).Start, name, path, args...)
}

// LaunchBy is Launch with another way to start the command.
func LaunchBy(t *testing.T, start func(*exec.Cmd) error, name, path string, args ...string) *Process {
	t.Helper()
	p, err := launch(start, name, path, args...)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		p.Kill()
		p.showIfFailed(t)
	})
	return p
}

// launch starts a process that the caller kills.
func launch(start func(*exec.Cmd) error, name, path string, args ...string) (*Process, error) {
	p := &Process{Name: name, Cmd: exec.Command(path, args...), Out: newOutput(), Done: make(chan struct{})}
	p.Cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.Cmd.Stdout, p.Cmd.Stderr = p.Out, p.Out
	p.Cmd.WaitDelay = 5 * time.Second
	if err := start(p.Cmd); err != nil {
		return nil, fmt.Errorf("start %s: %w", name, err)
	}
	go func() {
		_ = p.Cmd.Wait()
		close(p.Done)
	}()
	return p, nil
}

// showIfFailed shows the end of the process's output when the test failed.
func (p *Process) showIfFailed(t *testing.T) {
	t.Helper()
	if t.Failed() {
		t.Logf("---- %s ----\n%s", p.Name, p.Out.last(ShownLines))
	}
}

// Kill ends the process and all below it with SIGKILL and waits for their end: what listens at an address of the process may be
// one of them.
func (p *Process) Kill() {
	below := descendants(p.Cmd.Process.Pid)
	_ = p.Cmd.Process.Kill()
	<-p.Done
	for _, pid := range below {
		_ = syscall.Kill(pid, syscall.SIGKILL)
	}
	for _, pid := range below {
		awaitGone(pid)
	}
}

// Stop ends the process with SIGTERM and waits for its end.
func (p *Process) Stop(t *testing.T) {
	t.Helper()
	_ = p.Cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.Done:
	case <-time.After(EndTimeout):
		t.Errorf("%s did not end after SIGTERM", p.Name)
		p.Kill()
	}
}

// AwaitReady waits for the process's line "ready ADDRESS" and returns the address.
func (p *Process) AwaitReady(t *testing.T) string {
	t.Helper()
	addr, err := p.ready()
	if err != nil {
		t.Fatal(err)
	}
	return addr
}

func (p *Process) ready() (addr string, err error) {
	deadline := time.After(StartTimeout)
	for {
		changed := p.Out.changed()
		if addr, ok := p.Out.find("ready "); ok {
			return addr, nil
		}
		select {
		case <-changed:
		case <-p.Done:
			return "", fmt.Errorf("%s ended before it was ready:\n%s", p.Name, p.Out.Tail(40))
		case <-deadline:
			return "", fmt.Errorf("%s is not ready after %v:\n%s", p.Name, StartTimeout, p.Out.Tail(40))
		}
	}
}

// Output keeps what a process writes.
type Output struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	wake chan struct{}
}

func newOutput() *Output { return &Output{wake: make(chan struct{})} }

// Write implements [io.Writer].
func (l *Output) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.wake)
	l.wake = make(chan struct{})
	return l.buf.Write(p)
}

// changed is closed at the next write.
func (l *Output) changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wake
}

// Text is all of it so far.
func (l *Output) Text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// find returns the rest of the first whole line that begins with the prefix.
func (l *Output) find(prefix string) (string, bool) {
	reader := bufio.NewReader(strings.NewReader(l.Text()))
	for {
		line, err := reader.ReadString('\n')
		if err != nil {
			return "", false
		}
		if rest, ok := strings.CutPrefix(strings.TrimSpace(line), prefix); ok {
			return rest, true
		}
	}
}

// Tail is the last n lines.
func (l *Output) Tail(n int) string {
	all := strings.Split(strings.TrimRight(l.Text(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}

// last is Tail without the lines of level debug.
func (l *Output) last(n int) string {
	all := slices.DeleteFunc(strings.Split(strings.TrimRight(l.Text(), "\n"), "\n"), func(line string) bool {
		return strings.Contains(line, "level=DEBUG")
	})
	return strings.Join(all[max(0, len(all)-n):], "\n")
}
