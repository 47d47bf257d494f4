package main_test

import (
	"math"
	"strings"
	"testing"
	"testing/fstest"

	main "modelrelay/cmd/gateway"
	"modelrelay/cmd/gateway/internal/config"
)

// TestMemoryLimit: the least limit counts, whichever kind of control group has it.
func TestMemoryLimit(t *testing.T) {
	t.Parallel()
	const machine = "MemTotal:       16777216 kB\nMemFree: 1 kB\n"
	for name, test := range map[string]struct {
		files map[string]string
		want  int64
	}{
		"nothing known": {nil, 4 << 30},
		"the machine":   {map[string]string{"proc/meminfo": machine}, 16 << 30},
		"its own group": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "1073741824\n", "sys/fs/cgroup/a/memory.max": "max\n",
		}, 1 << 30},
		"a group around it": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "0::/a/b\n", "sys/fs/cgroup/a/b/memory.max": "max\n", "sys/fs/cgroup/a/memory.max": "536870912\n",
		}, 512 << 20},
		"in a container": {map[string]string{"proc/meminfo": machine, "proc/self/cgroup": "0::/docker/1\n", "sys/fs/cgroup/memory.max": "268435456\n"}, 256 << 20},
		"the older groups": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "3:cpu:/x\n2:memory:/x\n", "sys/fs/cgroup/memory/x/memory.limit_in_bytes": "2147483648\n",
		}, 2 << 30},
		"no limit in the older groups": {map[string]string{
			"proc/meminfo": machine, "proc/self/cgroup": "2:memory:/\n", "sys/fs/cgroup/memory/memory.limit_in_bytes": "9223372036854771712\n",
		}, 16 << 30},
	} {
		files := fstest.MapFS{}
		for path, text := range test.files {
			files[path] = &fstest.MapFile{Data: []byte(text)}
		}
		if got := main.MemoryLimit(files, math.MaxInt64); got != test.want {
			t.Errorf("%s: got %d, want %d", name, got, test.want)
		}
	}
}

// TestBodyMemoryOfConfig: 0 is a quarter of the memory, with room for four of the largest bodies; less than that is refused.
func TestBodyMemoryOfConfig(t *testing.T) {
	t.Parallel()
	cfg := config.Default()
	for limit, want := range map[int64]int64{8 << 30: 2 << 30, 512 << 20: 256 << 20} {
		if got := config.Relay.BodyMemory(cfg.Relay, limit); got != want {
			t.Errorf("of %d: got %d, want %d", limit, got, want)
		}
	}
	cfg.Relay.MaxBodyMemory = 300 << 20
	if got := config.Relay.BodyMemory(cfg.Relay, 8<<30); got != 300<<20 {
		t.Errorf("configured: got %d", got)
	}
	_, stderr, code := run(t, nil, "config", "check", "--config", writeFile(t, "gateway.yaml", "relay: {max_body: 64MiB, max_body_memory: 100MiB}\n"))
	if code != 2 || !strings.Contains(stderr, "relay.max_body_memory") || !strings.Contains(stderr, "256MiB") {
		t.Errorf("too little: code %d: %s", code, stderr)
	}
}
