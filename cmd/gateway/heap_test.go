package main_test

import (
	"strings"
	"testing"

	main "modelrelay/cmd/gateway"
	"modelrelay/cmd/gateway/internal/config"
)

// TestGrowth: a small heap grows to the floor, by Go's own formula, and a larger one doubles.
func TestGrowth(t *testing.T) {
	t.Parallel()
	const floor = 48 << 20
	for _, test := range []struct{ live, roots, want int64 }{
		{12 << 20, 0, 300},
		{12 << 20, 4 << 20, 225},
		{24 << 20, 0, 100},
		{48 << 20, 16 << 20, 75},
		{500 << 20, 125 << 20, 80},
		{75 << 20, 116 << 20, 39},
		{4 << 20, 0, 1000},
		{0, 0, 1000}, // nothing was collected yet
	} {
		if got := main.Growth(floor, test.live, test.roots); got != test.want {
			t.Errorf("live %d MB, roots %d MB: got %d, want %d", test.live>>20, test.roots>>20, got, test.want)
		}
	}
}

// TestLeastHeapOfConfig: a slip of the unit is refused, with its key and line.
func TestLeastHeapOfConfig(t *testing.T) {
	t.Parallel()
	for text, code := range map[string]int{"0": 0, "64MiB": 0, "64TiB": 2, "-1": 2} {
		_, stderr, got := run(t, nil, "config", "check", "--config", writeFile(t, "gateway.yaml", "memory: {least_heap: "+text+"}\n"))
		if got != code || code != 0 && !strings.Contains(stderr, "memory.least_heap") {
			t.Errorf("%s: code %d: %s", text, got, stderr)
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
	_, stderr, code := run(t, nil, "config", "check", "--config",
		writeFile(t, "gateway.yaml", "relay: {max_body: 64MiB, max_body_memory: 100MiB}\n"))
	if code != 2 || !strings.Contains(stderr, "relay.max_body_memory") || !strings.Contains(stderr, "256MiB") {
		t.Errorf("too little: code %d: %s", code, stderr)
	}
}
