package bench_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"modelrelay/dev/bench"
)

func TestMost(t *testing.T) {
	t.Parallel()
	for name, c := range map[string]struct {
		times [][2]int64
		want  int
	}{
		"none":                   {nil, 0},
		"one after the other":    {[][2]int64{{0, 5}, {5, 9}, {9, 12}}, 1},
		"two at once":            {[][2]int64{{0, 6}, {5, 9}, {9, 12}}, 2},
		"one within two of them": {[][2]int64{{0, 100}, {50, 60}, {40, 70}, {80, 90}}, 3},
	} {
		if got := bench.Most(c.times); got != c.want {
			t.Errorf("%s: got %d, want %d", name, got, c.want)
		}
	}
}

func TestCrew(t *testing.T) {
	t.Parallel()
	var done atomic.Int64
	seen := make([]atomic.Bool, 100)
	err := bench.Crew(t.Context(), 7, len(seen), func(_ context.Context, i int) error {
		done.Add(1)
		if seen[i].Swap(true) {
			t.Errorf("%d was done twice", i)
		}
		return nil
	})
	if err != nil || done.Load() != 100 {
		t.Errorf("%d of 100 were done, %v", done.Load(), err)
	}
	broken := errors.New("broken")
	if err := bench.Crew(t.Context(), 3, 1_000_000, func(_ context.Context, i int) error {
		if i == 50 {
			return broken
		}
		return nil
	}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the first error", err)
	}
}
