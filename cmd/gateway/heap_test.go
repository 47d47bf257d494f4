package main_test

import (
	"strings"
	"testing"

	main "modelrelay/cmd/gateway"
)

// TestGrowth: a small heap grows to the floor, by Go's own formula, and a larger one doubles.
func TestGrowth(t *testing.T) {
	t.Parallel()
	const floor = 48 << 20
	for _, test := range []struct{ live, roots, want int64 }{
		{12 << 20, 0, 300},
		{12 << 20, 4 << 20, 225},
		{24 << 20, 0, 100},
		{40 << 20, 1 << 20, 100},
		{500 << 20, 1 << 20, 100},
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
