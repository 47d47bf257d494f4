//go:build unix && !linux

package bench

import (
	"errors"
	"time"
)

// errKernel says that there is nothing to measure with.
var errKernel = errors.New("only Linux tells the CPU time and memory of another process")

func cpuTime(int) (time.Duration, error) { return 0, errKernel }

func resident(int) (now, peak int64, err error) { return 0, 0, errKernel }

func treeTime(int) (time.Duration, error) { return 0, errKernel }

func resetPeak(int) error { return errKernel }

func shareCore(...int) (func() error, error) { return nil, errKernel }
