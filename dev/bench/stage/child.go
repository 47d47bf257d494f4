package stage

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"syscall"
	"time"

	"modelrelay/dev/loopback"
	"modelrelay/dev/process"
)

const (
	// startTimeout bounds the time until a process is ready.
	startTimeout = 3 * time.Minute
	// stopGrace is how long a process may take to end after SIGTERM.
	stopGrace   = time.Minute
	askInterval = 20 * time.Millisecond
)

// Child is a process of the stage.
type Child struct {
	Name string
	Addr string   // at which other processes reach it; "": it does not listen
	Env  []string // in addition to this process's environment

	log     string
	process *process.Child
}

// PID is the process's id.
func (c *Child) PID() int { return c.process.Pid() }

func (s *Stage) start(
	ctx context.Context, c *Child, ready func(ctx context.Context, addr string) error, program string, args ...string,
) (*Child, error) {
	s.started++
	c.log = filepath.Join(s.Options.Data, fmt.Sprintf("%02d-%s.log", s.started, c.Name))
	out, err := os.Create(c.log)
	if err != nil {
		return nil, fmt.Errorf("%s: create its log: %w", c.Name, err)
	}
	cmd := exec.Command(program, args...) //nolint:gosec,noctx // our own programs; Stop ends them in order, a context would kill
	cmd.Env = append(os.Environ(), c.Env...)
	// A file instead of a pipe: this process then spends no time on reading.
	cmd.Stdout, cmd.Stderr = out, out
	c.process, err = process.Start(cmd, syscall.SIGTERM)
	if err := errors.Join(err, out.Close()); err != nil {
		return nil, fmt.Errorf("%s: start: %w", c.Name, err)
	}
	ctx, cancel := context.WithTimeout(ctx, startTimeout)
	defer cancel()
	tick := time.NewTicker(askInterval)
	defer tick.Stop()
	for {
		err := ready(ctx, c.Addr)
		if err == nil {
			return c, nil
		}
		select {
		case <-tick.C:
			continue
		case <-c.process.Done():
			err = fmt.Errorf("it ended: %v", c.process.Err()) //nolint:errorlint // nil after status 0
		case <-ctx.Done():
		}
		return nil, errors.Join(fmt.Errorf("%s does not answer: %w%s", c.Name, err, c.lastLines()), c.Stop())
	}
}

// Stop ends the process in order. The receiver may be nil.
func (c *Child) Stop() error {
	if c == nil {
		return nil
	}
	if err := c.process.Stop(stopGrace); err != nil {
		return fmt.Errorf("stop %s: %w", c.Name, err)
	}
	return nil
}

// lastLines are the last lines of the process's log.
func (c *Child) lastLines() string {
	const most = 5
	text, err := os.ReadFile(c.log)
	if err != nil {
		return ""
	}
	lines := strings.Split(strings.TrimSpace(string(text)), "\n")
	return "\n    " + strings.Join(lines[max(0, len(lines)-most):], "\n    ")
}

// Printed fails until the process has printed a line that begins with the text.
func (c *Child) Printed(beginning string) error {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return err
	}
	if strings.HasPrefix(string(text), beginning) || strings.Contains(string(text), "\n"+beginning) {
		return nil
	}
	return fmt.Errorf("has not printed %q", beginning)
}

// Units are the ids of the processes that a part consists of now, by name. They are none if the part is one process.
func (c *Child) Units() (map[string]int, error) {
	text, err := os.ReadFile(c.log)
	if err != nil {
		return nil, err
	}
	units := make(map[string]int)
	for line := range strings.Lines(string(text)) {
		words := strings.Fields(line)
		if len(words) != 3 || words[0] != "unit" {
			continue
		}
		if pid, err := strconv.Atoi(words[2]); err == nil {
			units[words[1]] = pid
		}
	}
	return units, nil
}

// FreeAddress returns an address of this machine at which nothing listens.
func FreeAddress() (string, error) {
	addr, err := loopback.Address("127.0.0.1:0")
	if err != nil {
		return "", fmt.Errorf("find a free address: %w", err)
	}
	return addr.String(), nil
}

// Connects fails until a process listens at the address.
func Connects(ctx context.Context, addr string) error {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
	if err != nil {
		return err
	}
	return conn.Close()
}

// Runs never fails: it is for processes that listen nowhere.
func Runs(context.Context, string) error { return nil }
