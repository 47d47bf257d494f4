package e2e_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"math/rand/v2"
	"net"
	"os/exec"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"
)

const (
	// readyTimeout is how long a part may take to answer on a busy machine.
	readyTimeout = 90 * time.Second
	// endTimeout is how long a process may take to end after SIGTERM.
	endTimeout = 30 * time.Second
	// interval is how often a condition is looked at that gives no signal of its own.
	interval = 25 * time.Millisecond
	// shownLines is how much of a process's output a failed test shows: a test has up to ten processes, and what it found
	// must not drown in them.
	shownLines = 25
)

// process is a child process with its output kept.
type process struct {
	name string
	cmd  *exec.Cmd
	out  *lines
	done chan struct{}
}

// launch starts a process. It is killed at the test's end, and its output is shown when the test failed.
func launch(t *testing.T, name, path string, args ...string) *process {
	t.Helper()
	return launchBy(t, (*exec.Cmd).Start, name, path, args...)
}

// launchBy is launch with another way to start the command.
func launchBy(t *testing.T, start func(*exec.Cmd) error, name, path string, args ...string) *process {
	t.Helper()
	p := &process{name: name, cmd: exec.Command(path, args...), out: newLines(), done: make(chan struct{})}
	p.cmd.SysProcAttr = &syscall.SysProcAttr{Pdeathsig: syscall.SIGKILL}
	p.cmd.Stdout, p.cmd.Stderr = p.out, p.out
	p.cmd.WaitDelay = 5 * time.Second
	if err := start(p.cmd); err != nil {
		t.Fatalf("start %s: %v", name, err)
	}
	go func() {
		_ = p.cmd.Wait()
		close(p.done)
	}()
	t.Cleanup(func() {
		p.kill()
		if t.Failed() {
			t.Logf("---- %s ----\n%s", name, p.out.last(shownLines))
		}
	})
	return p
}

// kill ends the process with SIGKILL and waits for its end.
func (p *process) kill() {
	_ = p.cmd.Process.Kill()
	<-p.done
}

// stop ends the process with SIGTERM and waits for its end.
func (p *process) stop(t *testing.T) {
	t.Helper()
	_ = p.cmd.Process.Signal(syscall.SIGTERM)
	select {
	case <-p.done:
	case <-time.After(endTimeout):
		t.Errorf("%s did not end after SIGTERM", p.name)
		p.kill()
	}
}

// ready waits for the process's line "ready ADDRESS" and returns the address.
func (p *process) ready(t *testing.T) string {
	t.Helper()
	deadline := time.After(readyTimeout)
	for {
		changed := p.out.changed()
		if addr, ok := p.out.find("ready "); ok {
			return addr
		}
		select {
		case <-changed:
		case <-p.done:
			t.Fatalf("%s ended before it was ready:\n%s", p.name, p.out.tail(40))
		case <-deadline:
			t.Fatalf("%s is not ready after %v:\n%s", p.name, readyTimeout, p.out.tail(40))
		}
	}
}

// lines keeps what a process writes.
type lines struct {
	mu   sync.Mutex
	buf  bytes.Buffer
	wake chan struct{}
}

func newLines() *lines { return &lines{wake: make(chan struct{})} }

func (l *lines) Write(p []byte) (int, error) {
	l.mu.Lock()
	defer l.mu.Unlock()
	close(l.wake)
	l.wake = make(chan struct{})
	return l.buf.Write(p)
}

// changed is closed at the next write.
func (l *lines) changed() <-chan struct{} {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.wake
}

func (l *lines) text() string {
	l.mu.Lock()
	defer l.mu.Unlock()
	return l.buf.String()
}

// find returns the rest of the first whole line that begins with the prefix.
func (l *lines) find(prefix string) (string, bool) {
	reader := bufio.NewReader(strings.NewReader(l.text()))
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

func (l *lines) tail(n int) string {
	all := strings.Split(strings.TrimRight(l.text(), "\n"), "\n")
	return strings.Join(all[max(0, len(all)-n):], "\n")
}

// last is tail without the lines of level debug.
func (l *lines) last(n int) string {
	all := slices.DeleteFunc(strings.Split(strings.TrimRight(l.text(), "\n"), "\n"), func(line string) bool {
		return strings.Contains(line, "level=DEBUG")
	})
	return strings.Join(all[max(0, len(all)-n):], "\n")
}

// eventually looks until the condition holds.
func eventually(t *testing.T, what string, limit time.Duration, holds func() bool) {
	t.Helper()
	if !inTime(t, limit, holds) {
		t.Fatalf("%s: not within %v", what, limit)
	}
}

// inTime looks until the condition holds; false where it does not in time.
func inTime(t *testing.T, limit time.Duration, holds func() bool) bool {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), limit)
	defer cancel()
	tick := time.NewTicker(interval)
	defer tick.Stop()
	for !holds() {
		select {
		case <-tick.C:
		case <-ctx.Done():
			return false
		}
	}
	return true
}

const (
	// lowestPort and highestPort bound the ports of freeAddr: below those that systems give to outgoing connections, so that
	// none takes a part's port while the part is down.
	lowestPort, highestPort = 15_000, 32_000
	// portTries is how many ports in a row may be in use by strangers.
	portTries = 100
)

// ports hands out each port once.
var ports = struct {
	sync.Mutex
	next int
}{next: lowestPort + rand.IntN(highestPort-lowestPort)}

// freeAddr is a loopback address nobody listens on, and nobody will but the caller: a process that is killed finds it
// again at its restart.
func freeAddr(t *testing.T) string {
	t.Helper()
	ports.Lock()
	defer ports.Unlock()
	for range portTries {
		addr := fmt.Sprintf("127.0.0.1:%d", ports.next)
		ports.next++
		if ports.next > highestPort {
			ports.next = lowestPort
		}
		l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", addr)
		if err == nil {
			_ = l.Close()
			return addr
		}
	}
	t.Fatalf("no free port among %d", portTries)
	return ""
}

// gate is a TCP proxy whose two directions can be held and let go. While held, bytes wait in it and nothing is lost.
type gate struct {
	listener net.Listener
	target   string
	mu       sync.Mutex
	held     map[bool]chan struct{} // by direction, true: towards the target; open while held
	conns    map[net.Conn]struct{}
}

func newGate(t *testing.T, target string) *gate {
	t.Helper()
	l, err := new(net.ListenConfig).Listen(t.Context(), "tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	g := &gate{listener: l, target: target, held: map[bool]chan struct{}{}, conns: map[net.Conn]struct{}{}}
	go g.serve()
	t.Cleanup(g.close)
	return g
}

func (g *gate) addr() string { return g.listener.Addr().String() }

// hold stops the flow towards the target (true) or back from it (false) until release.
func (g *gate) hold(towards bool) {
	g.mu.Lock()
	defer g.mu.Unlock()
	if g.held[towards] == nil {
		g.held[towards] = make(chan struct{})
	}
}

func (g *gate) release() {
	g.mu.Lock()
	defer g.mu.Unlock()
	for towards, held := range g.held {
		close(held)
		delete(g.held, towards)
	}
}

func (g *gate) close() {
	_ = g.listener.Close()
	g.release()
	g.mu.Lock()
	defer g.mu.Unlock()
	for conn := range g.conns {
		_ = conn.Close()
	}
}

func (g *gate) serve() {
	for {
		in, err := g.listener.Accept()
		if err != nil {
			return
		}
		go func() {
			out, err := net.Dial("tcp", g.target)
			if err != nil {
				_ = in.Close()
				return
			}
			g.mu.Lock()
			g.conns[in], g.conns[out] = struct{}{}, struct{}{}
			g.mu.Unlock()
			go g.pipe(out, in, true)
			g.pipe(in, out, false)
		}()
	}
}

// pipe copies one direction, waiting before each write while it is held.
func (g *gate) pipe(to, from net.Conn, towards bool) {
	defer to.Close()
	defer from.Close()
	buf := make([]byte, 32<<10)
	for {
		n, err := from.Read(buf)
		if n > 0 {
			g.mu.Lock()
			held := g.held[towards]
			g.mu.Unlock()
			if held != nil {
				<-held
			}
			if _, err := to.Write(buf[:n]); err != nil {
				return
			}
		}
		if err != nil {
			return
		}
	}
}
