// Package kernel reads from Linux how much CPU time and memory processes use.
package kernel

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strconv"
	"time"

	"golang.org/x/sys/unix"
)

// CPUTime returns the CPU time, user and system, that all threads of the process have used: to the nanosecond, where
// /proc/PID/stat counts in ticks of 10 ms.
func CPUTime(pid int) (time.Duration, error) {
	const scheduler = 2 // CPUCLOCK_SCHED of the kernel, in the lowest bits of a process's clock
	var at unix.Timespec
	if err := unix.ClockGettime(int32(^pid)<<3|scheduler, &at); err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	return time.Duration(at.Nano()), nil
}

// Resident returns the memory of the process in bytes: what it holds now, and the most it held since ResetPeak.
func Resident(pid int) (now, peak int64, err error) {
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

// ResetPeak resets the peak that Resident returns to what the process holds now.
func ResetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak memory of a process: %w", err)
	}
	return nil
}

// TreeTime returns the CPU time of a process and of all its descendants, ended ones included, in steps of the kernel's
// clock, 10 ms.
func TreeTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	_, rest, _ := bytes.Cut(text, []byte(") ")) // after the name, which is in brackets
	fields := bytes.Fields(rest)
	const utime, cstime, tick = 11, 14, 10 * time.Millisecond // user, system, and both of the children that have ended
	if len(fields) <= cstime {
		return 0, fmt.Errorf("read the CPU time of process %d: %q", pid, text)
	}
	var sum time.Duration
	for _, field := range fields[utime : cstime+1] {
		n, err := strconv.ParseInt(string(field), 10, 64)
		if err != nil {
			return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
		}
		sum += time.Duration(n) * tick
	}
	lists, err := filepath.Glob(fmt.Sprintf("/proc/%d/task/*/children", pid))
	if err != nil {
		return 0, err
	}
	for _, list := range lists {
		children, err := os.ReadFile(list) //nolint:gosec // the kernel's
		if err != nil {
			continue // the thread has ended
		}
		for child := range bytes.FieldsSeq(children) {
			id, err := strconv.Atoi(string(child))
			if err != nil {
				return 0, err
			}
			if took, err := TreeTime(id); err == nil { // else it has just ended, and the parent has its time
				sum += took
			}
		}
	}
	return sum, nil
}
