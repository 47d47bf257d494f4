package stack

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"golang.org/x/sys/unix"
)

// KernelStatus is what the kernel says of a process under the name.
func (p *Process) KernelStatus(t *testing.T, name string) string {
	t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", p.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	_, rest, _ := strings.Cut(string(text), "\n"+name+":")
	value, _, _ := strings.Cut(rest, "\n")
	return strings.TrimSpace(value)
}

// Memory is the memory of a process in bytes, as the kernel counts it.
func (p *Process) Memory(t *testing.T) int64 {
	t.Helper()
	return p.bytes(t, "VmRSS")
}

// PeakMemory is the most memory in bytes that a process had since its start, or since resetPeak.
func (p *Process) PeakMemory(t *testing.T) int64 {
	t.Helper()
	return p.bytes(t, "VmHWM")
}

func (p *Process) bytes(t *testing.T, name string) int64 {
	t.Helper()
	n, err := strconv.ParseInt(strings.TrimSuffix(p.KernelStatus(t, name), " kB"), 10, 64)
	if err != nil {
		t.Fatal(err)
	}
	return n << 10
}

// ResetPeakMemory lets peak begin anew. Where that fails the peak since the start is measured, which is no less.
func (p *Process) ResetPeakMemory(t *testing.T) {
	t.Helper()
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", p.Cmd.Process.Pid), []byte("5"), 0); err != nil {
		t.Logf("peak memory since the start: %v", err)
	}
}

// clockTick is the unit of a process's time in /proc on every Linux that Go runs on.
const clockTick = 10 * time.Millisecond

// CPU is what a process has used of the processor so far.
func (p *Process) CPU(t *testing.T) (used time.Duration) {
	t.Helper()
	stat, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", p.Cmd.Process.Pid))
	if err != nil {
		t.Fatal(err)
	}
	fields := strings.Fields(string(stat[bytes.LastIndexByte(stat, ')')+1:]))
	for _, field := range fields[11:13] { // user and system time
		ticks, err := strconv.Atoi(field)
		if err != nil {
			t.Fatal(err)
		}
		used += time.Duration(ticks) * clockTick
	}
	return used
}

// OnOneCore starts a process that has one core of this machine to itself and its like, whatever threads it makes: always the
// same, the first that this process may use.
func OnOneCore(cmd *exec.Cmd) (err error) {
	runtime.LockOSThread() // a child has the cores of the thread that made it
	defer runtime.UnlockOSThread()
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return fmt.Errorf("read the cores of this thread: %w", err)
	}
	core := 0
	for !all.IsSet(core) {
		core++
	}
	one.Set(core)
	if err := unix.SchedSetaffinity(0, &one); err != nil {
		return fmt.Errorf("set the core of this thread: %w", err)
	}
	defer func() { err = errors.Join(err, unix.SchedSetaffinity(0, &all)) }()
	return cmd.Start()
}
