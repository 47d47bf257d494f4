package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"syscall"
	"time"

	"modelrelay/dev/process"
)

// part is one child process of the stack.
type part struct {
	name string
	// program and args start it.
	program string
	args    []string
	// again is what a person types to start it again.
	again string
	// grace is what it gets to end in order.
	grace time.Duration
	// line is called with every line it writes to stderr; nil: the lines are not read.
	line func(text string)

	child *process.Child
	tail  tail
}

// start starts the process with its stderr going to a file in the folder logs, and returns a channel that gets the
// address of its ready line.
func (p *part) start(logs string) (<-chan string, error) {
	file, err := os.Create(filepath.Join(logs, p.name+".log")) //nolint:gosec // a name of ours in our folder
	if err != nil {
		return nil, fmt.Errorf("%s: create its log: %w", p.name, err)
	}
	ready := make(chan string, 1)
	cmd := exec.Command(p.program, p.args...) //nolint:gosec,noctx // our own programs; stop ends them in order, a context would kill
	cmd.Stdout = &lines{do: func(text string) {
		if addr, ok := strings.CutPrefix(text, readyWord+" "); ok {
			select {
			case ready <- addr:
			default:
			}
		}
	}}
	cmd.Stderr = io.MultiWriter(file, &lines{do: func(text string) {
		p.tail.add(text)
		if p.line != nil {
			p.line(text)
		}
	}})
	cmd.WaitDelay = time.Second // a grandchild that outlives it may hold its stderr
	p.child, err = process.Start(cmd, syscall.SIGTERM)
	if err != nil {
		return nil, errors.Join(fmt.Errorf("%s: start: %w", p.name, err), file.Close())
	}
	go func() {
		<-p.child.Done()
		_ = file.Close() // a log
	}()
	return ready, nil
}

// await returns the address of the ready line, or why there will be none.
func (p *part) await(ctx context.Context, ready <-chan string) (string, error) {
	select {
	case addr := <-ready:
		return addr, nil
	case <-p.child.Done():
		return "", fmt.Errorf("%s ended before it was ready: %s%s", p.name, p.status(), p.tail.String())
	case <-ctx.Done():
		return "", ctx.Err()
	}
}

// status says in words how the process ended. It must not be called before it has.
func (p *part) status() string {
	if err := p.child.Err(); err != nil {
		return err.Error()
	}
	return "exit status 0"
}

// lines is a writer that hands on whole lines. The processes that write to it write from one goroutine each.
type lines struct {
	do   func(text string)
	rest []byte
}

func (l *lines) Write(b []byte) (int, error) {
	l.rest = append(l.rest, b...)
	for {
		i := bytes.IndexByte(l.rest, '\n')
		if i < 0 {
			return len(b), nil
		}
		l.do(string(bytes.TrimRight(l.rest[:i], "\r")))
		l.rest = l.rest[i+1:]
	}
}

// tail keeps the last lines of what a process said, for the moment it dies.
type tail struct {
	mu   sync.Mutex
	last []string
}

const tailLines = 5

func (t *tail) add(text string) {
	t.mu.Lock()
	defer t.mu.Unlock()
	t.last = append(t.last, text)
	if len(t.last) > tailLines {
		t.last = t.last[1:]
	}
}

// String returns the lines, each after a line break and some room.
func (t *tail) String() string {
	t.mu.Lock()
	defer t.mu.Unlock()
	var b strings.Builder
	for _, text := range t.last {
		b.WriteString("\n    ")
		b.WriteString(text)
	}
	return b.String()
}
