// Package process starts child processes and owns them to their end. It knows nothing of what they do.
package process

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strings"
	"syscall"
	"time"
)

// Child is a process this one started. It lives in a process group of its own, so that an interrupt typed at the
// terminal reaches only the parent, which then stops its children in order. On Linux the kernel ends it when this
// process ends in any way; elsewhere only an orderly end takes it along.
type Child struct {
	process *os.Process
	done    chan struct{}
	err     error
}

// Start starts cmd. orphaned is the signal the child gets when this process dies without stopping it (Linux only).
// The child is waited for by a goroutine that ends with it. Of the command's own attributes only its user is kept.
func Start(cmd *exec.Cmd, orphaned syscall.Signal) (*Child, error) {
	c := &Child{done: make(chan struct{})}
	var as *syscall.Credential
	if cmd.SysProcAttr != nil {
		as = cmd.SysProcAttr.Credential
	}
	cmd.SysProcAttr = attributes(orphaned, as)
	started := make(chan error, 1)
	go func() {
		// Linux sends the signal when the thread that forked ends, so this goroutine keeps its thread to the end.
		runtime.LockOSThread()
		err := cmd.Start()
		if err == nil {
			c.process = cmd.Process
		}
		started <- err
		if err != nil {
			return
		}
		c.err = cmd.Wait()
		close(c.done)
	}()
	if err := <-started; err != nil {
		return nil, err
	}
	return c, nil
}

// Pid returns the process id.
func (c *Child) Pid() int { return c.process.Pid }

// Done is closed when the process has ended and everything it printed was read.
func (c *Child) Done() <-chan struct{} { return c.done }

// Err says how the process ended: nil after exit status 0, else an *exec.ExitError or a failure to read its output.
// It must not be called before Done is closed.
func (c *Child) Err() error { return c.err }

// Stop asks the process to end by SIGTERM and kills it when it has not within grace. It returns when the process has ended,
// at once where it already had, and reports a kill as an error.
func (c *Child) Stop(grace time.Duration) error { return c.StopBy(syscall.SIGTERM, grace) }

// StopBy is Stop with another signal to ask by.
func (c *Child) StopBy(ask syscall.Signal, grace time.Duration) error {
	if err := c.process.Signal(ask); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("ask it to end: %w", err)
	}
	timer := time.NewTimer(grace)
	defer timer.Stop()
	select {
	case <-c.done:
		return nil
	case <-timer.C:
	}
	if err := c.process.Kill(); err != nil && !errors.Is(err, os.ErrProcessDone) {
		return fmt.Errorf("kill it: %w", err)
	}
	<-c.done
	return fmt.Errorf("killed: still alive %v after it was asked to end", grace)
}

// ErrOrphaned is the cause of a context that ended because the parent process died.
var ErrOrphaned = errors.New("the parent process died")

// FollowParent returns a context that ends when the process that started this one is gone: a child notices that by
// its new parent. The caller must cancel it.
func FollowParent(ctx context.Context) (context.Context, context.CancelFunc) {
	ctx, cancel := context.WithCancelCause(ctx)
	parent := os.Getppid()
	go func() {
		tick := time.NewTicker(500 * time.Millisecond)
		defer tick.Stop()
		for os.Getppid() == parent {
			select {
			case <-ctx.Done():
				return
			case <-tick.C:
			}
		}
		cancel(ErrOrphaned)
	}()
	return ctx, func() { cancel(context.Canceled) }
}

// UnderGoRun reports whether the go command started this program: it compiles into its cache or a folder of its own. It
// passes an interrupt on, but no SIGTERM, so such a program has to follow its parent.
func UnderGoRun() bool {
	path, err := os.Executable()
	return err == nil && strings.Contains(filepath.ToSlash(path), "/go-build")
}
