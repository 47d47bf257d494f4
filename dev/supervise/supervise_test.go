package supervise_test

import (
	"context"
	"errors"
	"log/slog"
	"os/exec"
	"strings"
	"syscall"
	"testing"
	"time"

	"modelrelay/dev/supervise"
)

// patience bounds what a busy machine takes to start a process.
const patience = 30 * time.Second

// TestKilledIsStartedAgain: a unit that is killed has another process soon, and Stop ends that one.
func TestKilledIsStartedAgain(t *testing.T) {
	t.Parallel()
	pids := make(chan int, 8)
	group := supervise.New(t.Context(), slog.New(slog.DiscardHandler), func(name string, pid int) {
		if name != "sleeper" {
			t.Errorf("a process of %q was started", name)
		}
		pids <- pid
	})
	err := group.Start(t.Context(), supervise.Unit{
		Name: "sleeper", Command: func() *exec.Cmd { return exec.Command("sleep", "1000") }, Grace: patience,
		Ready: func(context.Context) error { return nil },
	})
	if err != nil {
		t.Fatal(err)
	}
	first := await(t, pids)
	if err := syscall.Kill(first, syscall.SIGKILL); err != nil {
		t.Fatal(err)
	}
	second := await(t, pids)
	if second == first {
		t.Fatalf("the same process %d again", first)
	}
	if err := group.Stop(); err != nil {
		t.Fatal(err)
	}
	if err := syscall.Kill(second, 0); !errors.Is(err, syscall.ESRCH) {
		t.Errorf("process %d is still there after Stop: %v", second, err)
	}
	select {
	case pid := <-pids:
		t.Errorf("process %d was started after Stop", pid)
	default:
	}
}

func await(t *testing.T, pids <-chan int) int {
	t.Helper()
	timer := time.NewTimer(patience)
	defer timer.Stop()
	select {
	case pid := <-pids:
		return pid
	case <-timer.C:
		t.Fatal("no process was started")
		return 0
	}
}

// TestNeverReady: the error of a unit that ends again and again says how it ended.
func TestNeverReady(t *testing.T) {
	t.Parallel()
	starts := make(chan int, 1000)
	group := supervise.New(t.Context(), slog.New(slog.DiscardHandler), func(_ string, pid int) { starts <- pid })
	wait, cancel := context.WithCancel(t.Context())
	defer cancel()
	go func() {
		<-starts
		<-starts // it was started again, so it has ended
		cancel()
	}()
	err := group.Start(wait, supervise.Unit{
		Name: "failing", Command: func() *exec.Cmd { return exec.Command("sh", "-c", "exit 7") }, Grace: patience,
		Ready: func(context.Context) error { return errors.New("does not answer") },
	})
	if err == nil || !strings.Contains(err.Error(), "failing is not ready: does not answer") ||
		!strings.Contains(err.Error(), "exit status 7") {
		t.Errorf("got %v", err)
	}
	if err := group.Stop(); err != nil {
		t.Fatal(err)
	}
}
