//go:build unix

package main

import "syscall"

// systemFiles is how many files the system lets this process have open.
func systemFiles() int {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return unlimitedFiles
	}
	return int(min(uint64(limit.Cur), unlimitedFiles)) //nolint:unconvert // within an int; it is signed on some systems
}
