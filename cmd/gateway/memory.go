package main

import (
	"io/fs"
	"math"
	"path"
	"strconv"
	"strings"
)

// unknownMemory stands for the memory of a machine that does not tell it.
const unknownMemory = 4 << 30

// memoryLimit is how much memory the process may take: the least of limit, which is Go's own (math.MaxInt64 for none), the
// limits of its control group, and what the machine has.
func memoryLimit(root fs.FS, limit int64) int64 {
	for _, of := range []func(fs.FS) int64{groupMemory, machineMemory} {
		if n := of(root); n > 0 {
			limit = min(limit, n)
		}
	}
	if limit == math.MaxInt64 {
		return unknownMemory
	}
	return limit
}

// groupMemory is the least limit of the process's control group and those that it is in, 0 for none.
func groupMemory(root fs.FS) int64 {
	const hierarchy = "sys/fs/cgroup"
	text, err := fs.ReadFile(root, "proc/self/cgroup")
	if err != nil {
		return 0
	}
	least := int64(0)
	for line := range strings.Lines(string(text)) {
		fields := strings.SplitN(strings.TrimSpace(line), ":", 3)
		if len(fields) != 3 {
			continue
		}
		var dir, file string
		switch {
		case fields[0] == "0" && fields[1] == "":
			dir, file = hierarchy, "memory.max"
		case strings.Contains(","+fields[1]+",", ",memory,"):
			dir, file = hierarchy+"/memory", "memory.limit_in_bytes"
		default:
			continue
		}
		// Within a container the path may be the host's, and only its beginning is there.
		for group := path.Clean("/" + fields[2]); ; group = path.Dir(group) {
			if n := readNumber(root, path.Join(dir, group, file)); n > 0 && (least == 0 || n < least) {
				least = n
			}
			if group == "/" {
				break
			}
		}
	}
	return least
}

// machineMemory is what the machine has, 0 where it does not tell.
func machineMemory(root fs.FS) int64 {
	text, err := fs.ReadFile(root, "proc/meminfo")
	if err != nil {
		return 0
	}
	for line := range strings.Lines(string(text)) {
		if rest, found := strings.CutPrefix(line, "MemTotal:"); found {
			kib, err := strconv.ParseInt(strings.TrimSpace(strings.TrimSuffix(strings.TrimSpace(rest), "kB")), 10, 64)
			if err != nil {
				return 0
			}
			return kib << 10
		}
	}
	return 0
}

// readNumber reads a file that holds one number, 0 for anything else.
func readNumber(root fs.FS, name string) int64 {
	text, err := fs.ReadFile(root, name)
	if err != nil {
		return 0
	}
	n, err := strconv.ParseInt(strings.TrimSpace(string(text)), 10, 64)
	if err != nil {
		return 0 // "max"
	}
	return n
}
