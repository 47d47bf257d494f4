package tasks

import (
	"context"
	"fmt"
	"slices"
	"time"

	"golang.org/x/sync/errgroup"

	"modelrelay/dev/bench/figures"
	"modelrelay/dev/bench/stage"
)

const (
	// lineJobs is how many jobs the line's channel takes at a time.
	lineJobs = 20
	// lineModel is a job of some seconds: short for a video, long against what the gateway adds.
	lineModel = "sora-2-8s"
	// lateKey is the late tenant's, lateTasks how many tasks it has.
	lateKey   = "sk-bench-late"
	lateTasks = 5
	// lineCreates is how many creates of the first tenant are under way at a time.
	lineCreates = 16
	// statusEvery is how often the late tenant looks at a task.
	statusEvery = 200 * time.Millisecond
)

// line measures how long a tenant waits for its few tasks: alone, and when another one has filled the channel and its
// line before.
func line(ctx context.Context, b *Bench, report *figures.Report) error {
	base, upstream, err := b.whole(ctx, fmt.Sprintf("  - {name: late, key: %s}\n", lateKey), fmt.Sprintf(", max_jobs: %d", lineJobs))
	if err != nil {
		return err
	}
	// The gateway knows how long jobs take from the third on.
	if _, err := b.few(ctx, base, upstream, "before"); err != nil {
		return err
	}
	alone, err := b.few(ctx, base, upstream, "alone")
	if err != nil {
		return err
	}
	many, within := errgroup.WithContext(ctx)
	many.SetLimit(lineCreates)
	for i := range b.sizes.Line {
		many.Go(func() error {
			_, err := b.createTask(within, base, stage.ClientKey, lineModel, fmt.Sprintf("many %d", i))
			return err
		})
	}
	if err := many.Wait(); err != nil {
		return err
	}
	beside, err := b.few(ctx, base, upstream, "beside")
	if err != nil {
		return err
	}
	load := fmt.Sprintf("%d tasks of A, then %d of B, %d at a time, 8 s each", b.sizes.Line, lateTasks, lineJobs)
	seconds := func(d time.Duration) []float64 { return []float64{d.Seconds()} }
	report.Add(load, "B's median until finished: alone (floor), beside A", "s",
		figures.Series{Floor: seconds(alone.finished), Gateway: seconds(beside.finished)}, figures.RatioAtMost(2))
	report.Add(load, "B's median until its job begins: alone (floor), beside A", "s",
		figures.Series{Floor: seconds(alone.begun), Gateway: seconds(beside.begun)}, nil)
	return nil
}

// waits are medians over a tenant's tasks, from the answer to their create.
type waits struct{ begun, finished time.Duration }

// few makes the late tenant's tasks and waits for them.
func (b *Bench) few(ctx context.Context, base, upstream, name string) (waits, error) {
	ctx, cancel := context.WithTimeout(ctx, taskDeadline)
	defer cancel()
	made := make([]time.Time, lateTasks)
	finished := make([]time.Duration, lateTasks)
	tasks, within := errgroup.WithContext(ctx)
	prompt := func(i int) string { return fmt.Sprintf("few %s %d", name, i) }
	for i := range lateTasks {
		id, err := b.createTask(ctx, base, lateKey, lineModel, prompt(i))
		if err != nil {
			return waits{}, err
		}
		made[i] = time.Now()
		tasks.Go(func() error {
			for {
				switch status, err := b.taskStatus(within, base, lateKey, id); {
				case err != nil:
					return err
				case status == "failed":
					return fmt.Errorf("%w: task %s failed", stage.ErrBroken, id)
				case status == "completed":
					finished[i] = time.Since(made[i])
					return nil
				}
				if err := stage.Pause(within, statusEvery); err != nil {
					return fmt.Errorf("task %s is not over: %w", id, err)
				}
			}
		})
	}
	if err := tasks.Wait(); err != nil {
		return waits{}, err
	}
	var begun []time.Duration
	for i := range lateTasks {
		jobs, err := b.jobs(ctx, upstream, prompt(i))
		if err != nil {
			return waits{}, err
		}
		if len(jobs) != 1 {
			return waits{}, fmt.Errorf("%w: the upstream has %d jobs of one task", stage.ErrBroken, len(jobs))
		}
		begun = append(begun, max(0, time.UnixMilli(jobs[0].Created).Sub(made[i])))
	}
	slices.Sort(begun)
	slices.Sort(finished)
	return waits{begun[lateTasks/2], finished[lateTasks/2]}, nil
}
