package kernel_test

import (
	"os"
	"runtime"
	"syscall"
	"testing"
	"time"

	"modelrelay/dev/bench/kernel"
)

func TestCPUTime(t *testing.T) {
	t.Parallel()
	if runtime.GOOS != "linux" {
		t.Skip("only Linux shows the CPU time of another process")
	}
	var before, after syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &before); err != nil {
		t.Fatal(err)
	}
	got, err := kernel.CPUTime(os.Getpid())
	if err != nil {
		t.Fatal(err)
	}
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &after); err != nil {
		t.Fatal(err)
	}
	used := func(r syscall.Rusage) time.Duration { return time.Duration(r.Utime.Nano() + r.Stime.Nano()) }
	const room = 20 * time.Millisecond // for rounding in the kernel
	if got < used(before)-room || got > used(after)+room {
		t.Errorf("got %v, want between %v and %v", got, used(before), used(after))
	}
	if _, err := kernel.CPUTime(1 << 23); err == nil {
		t.Error("no error for a process whose id no process can have")
	}
}
