// Package kernel reads from Linux what processes use, CPU time and memory, and says which cores they use.
package kernel

import (
	"bytes"
	"errors"
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

// ShareCore puts every thread of the processes on one core, the first that this process may use, and returns what lets them
// have all of this process's cores again. Threads they make have the core of the thread that makes them.
func ShareCore(pids ...int) (spread func() error, err error) {
	var all, one unix.CPUSet
	if err := unix.SchedGetaffinity(0, &all); err != nil {
		return nil, fmt.Errorf("read the cores of this process: %w", err)
	}
	core := 0
	for !all.IsSet(core) {
		core++
	}
	one.Set(core)
	on := func(set *unix.CPUSet) error {
		for _, pid := range pids {
			if err := setCores(pid, set); err != nil {
				return fmt.Errorf("set the cores of process %d: %w", pid, err)
			}
		}
		return nil
	}
	spread = func() error { return on(&all) }
	if err := on(&one); err != nil {
		return nil, errors.Join(err, spread())
	}
	return spread, nil
}

// setCores sets the cores of all threads of a process: again and again, until it finds no thread that was made meanwhile.
func setCores(pid int, set *unix.CPUSet) error {
	done := map[string]bool{}
	for more := true; more; {
		threads, err := os.ReadDir(fmt.Sprintf("/proc/%d/task", pid))
		if err != nil {
			return err
		}
		more = false
		for _, thread := range threads {
			if done[thread.Name()] {
				continue
			}
			done[thread.Name()], more = true, true
			id, err := strconv.Atoi(thread.Name())
			if err != nil {
				return err
			}
			if err := unix.SchedSetaffinity(id, set); err != nil && !errors.Is(err, unix.ESRCH) { // it has just ended
				return err
			}
		}
	}
	return nil
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

// ResetPeak lets the peak of Resident begin anew.
func ResetPeak(pid int) error {
	if err := os.WriteFile(fmt.Sprintf("/proc/%d/clear_refs", pid), []byte("5"), 0); err != nil {
		return fmt.Errorf("reset the peak memory of a process: %w", err)
	}
	return nil
}

// TreeTime returns the CPU time of a process, of the children of it that have ended, and of those that live, in steps of the
// kernel's clock, 10 ms.
func TreeTime(pid int) (time.Duration, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, fmt.Errorf("read the CPU time of process %d: %w", pid, err)
	}
	_, rest, _ := bytes.Cut(text, []byte(") ")) // behind the name, which is in brackets
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
