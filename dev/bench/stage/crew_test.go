package stage_test

import (
	"context"
	"errors"
	"sync/atomic"
	"testing"

	"modelrelay/dev/bench/stage"
)

func TestCrew(t *testing.T) {
	t.Parallel()
	var done atomic.Int64
	seen := make([]atomic.Bool, 100)
	err := stage.Crew(t.Context(), 7, len(seen), func(_ context.Context, i int) error {
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
	if err := stage.Crew(t.Context(), 3, 1_000_000, func(_ context.Context, i int) error {
		if i == 50 {
			return broken
		}
		return nil
	}); !errors.Is(err, broken) {
		t.Errorf("got %v, want the first error", err)
	}
}
