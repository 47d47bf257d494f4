//go:build unix

package main

import "syscall"

// systemFiles returns the system's limit of open files for this process.
func systemFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return unlimitedFiles
	}
	return int(min(uint64(limit.Cur), unlimitedFiles)) //nolint:unconvert // it fits an int; it is signed on some systems
}
