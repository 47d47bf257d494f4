//go:build unix && !linux

// Package kernel reads from Linux how much CPU time and memory processes use.
package kernel

import (
	"errors"
	"time"
)

// errKernel means that this system cannot be measured.
var errKernel = errors.New("only Linux shows the CPU time and memory of another process")

// CPUTime needs Linux.
func CPUTime(int) (time.Duration, error) { return 0, errKernel }

// Resident needs Linux.
func Resident(int) (now, peak int64, err error) { return 0, 0, errKernel }

// TreeTime needs Linux.
func TreeTime(int) (time.Duration, error) { return 0, errKernel }

// ResetPeak needs Linux.
func ResetPeak(int) error { return errKernel }
