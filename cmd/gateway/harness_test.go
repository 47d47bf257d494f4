package main_test

import (
	"bytes"
	"context"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	main "modelrelay/cmd/gateway"
)

// patience is how long a test waits for something that normally takes milliseconds, on a machine that does much else.
const patience = time.Minute

// output is a writer that tests wait on.
type output struct {
	mu   sync.Mutex
	cond sync.Cond
	text bytes.Buffer
}

func newOutput() *output {
	o := new(output)
	o.cond.L = &o.mu
	return o
}

func (o *output) Write(p []byte) (int, error) {
	o.mu.Lock()
	defer o.mu.Unlock()
	defer o.cond.Broadcast()
	return o.text.Write(p)
}

func (o *output) String() string {
	o.mu.Lock()
	defer o.mu.Unlock()
	return o.text.String()
}

// line waits for the nth line, counted from 1, that holds the text.
func (o *output) line(t *testing.T, n int, text string) string {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	defer context.AfterFunc(ctx, func() {
		o.mu.Lock() // so that the waiter is either before its check or asleep
		defer o.mu.Unlock()
		o.cond.Broadcast()
	})()
	o.mu.Lock()
	defer o.mu.Unlock()
	for {
		found := 0
		for line := range strings.Lines(o.text.String()) {
			if strings.Contains(line, text) && strings.HasSuffix(line, "\n") {
				if found++; found == n {
					return line
				}
			}
		}
		if ctx.Err() != nil {
			t.Fatalf("no line %d with %q in:\n%s", n, text, o.text.String())
		}
		o.cond.Wait()
	}
}

// program is a Main with its surroundings.
type program struct {
	*main.Main

	out, err *output
	env      map[string]string
}

func newProgram(args ...string) *program {
	p := &program{out: newOutput(), err: newOutput(), env: map[string]string{}}
	p.Main = &main.Main{Args: args, Stdout: p.out, Stderr: p.err, Hangup: make(chan os.Signal), Env: func(name string) (string, bool) {
		value, ok := p.env[name]
		return value, ok
	}}
	return p
}

// do runs the program to its end and returns its exit code.
func (p *program) do(ctx context.Context) int {
	err := p.Run(ctx)
	if closeErr := p.Close(); err == nil {
		err = closeErr
	}
	if err != nil {
		p.Report(err)
	}
	return main.ExitCode(err)
}

// run runs a command to its end.
func run(t *testing.T, env map[string]string, args ...string) (stdout, stderr string, code int) {
	t.Helper()
	p := newProgram(args...)
	p.env = env
	code = p.do(t.Context())
	return p.out.String(), p.err.String(), code
}

// writeFile writes a file of the test's own folder and returns its path.
func writeFile(t *testing.T, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// decode reads a JSON document.
func decode[T any](t *testing.T, text string) T {
	t.Helper()
	var v T
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		t.Fatalf("%v in %s", err, text)
	}
	return v
}
