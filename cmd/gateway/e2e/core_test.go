package e2e_test

import (
	"errors"
	"fmt"
	"os/exec"
	"runtime"

	"golang.org/x/sys/unix"
)

// onOneCore starts a process that has one core of this machine to itself and its like, whatever threads it makes: always the
// same, the first that this process may use.
func onOneCore(cmd *exec.Cmd) (err error) {
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
