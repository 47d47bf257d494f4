package stage

import (
	"context"
	"time"

	"golang.org/x/sync/errgroup"
)

// Crew calls do for 0 to n-1, at most workers of them at the same time. It returns the first error and then starts no
// further call.
func Crew(ctx context.Context, workers, n int, do func(ctx context.Context, i int) error) error {
	group, within := errgroup.WithContext(ctx)
	group.SetLimit(workers)
	for i := range n {
		if within.Err() != nil {
			break
		}
		group.Go(func() error { return do(within, i) })
	}
	if err := group.Wait(); err != nil {
		return err
	}
	return ctx.Err()
}

// Pause waits for a time.
func Pause(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}
