package bench

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// cpuTime returns the CPU time, user and system, that all threads of the process have used: to the nanosecond, where
// /proc/PID/stat counts in ticks of 10 ms.
func cpuTime(pid int) (time.Duration, error) {
	const scheduler = 2 // CPUCLOCK_SCHED of the kernel, in the lowest bits of a process's clock
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|scheduler, &at); err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(at.Nano()), nil
}

// resident returns the memory of the process in bytes: what it holds now, and the most it held since resetPeak.
func resident(pid int) (now, peak int64, err error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	if now, err = kilobytes(text, "\nVmRSS:"); err != nil {
		return 0, 0, err
	}
	peak, err = kilobytes(text, "\nVmHWM:")
	return now, peak, err
}

func kilobytes(text []byte, name string) (int64, error) {
	_, rest, _ := bytes.Cut(text, []byte(name))
	value, _, found := bytes.Cut(rest, []byte(" kB\n"))
	if !found {
		return 0, fmt.Errorf("read the memory of a process: no %q", name)
	}
	n, err := strconv.ParseInt(string(bytes.TrimSpace(value)), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("read the memory of a process: %w", err)
	}
	return n << 10, nil
}

// resetPeak lets the peak of resident begin anew.
func resetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak memory of a process: %w", err)
	}
	return nil
}
