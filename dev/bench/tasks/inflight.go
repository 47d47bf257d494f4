package tasks

import (
	"context"
	"fmt"
	"time"

	"modelrelay/dev/bench/figures"
)

const (
	// submitRate is how many tasks a second a machine is expected to submit before that was measured.
	submitRate = 15
	// submitSlack allows tasks to be submitted more slowly than expected.
	submitSlack = 1.5
	// submitSpare is how long the first job continues after the last was submitted, so that all are at the upstream together.
	submitSpare = 20 * time.Second
)

// longJob is the model of a job that lasts until n tasks, submitted at a rate a second, are at the upstream together.
func longJob(n int, rate float64) string {
	submitted := time.Duration(submitSlack * float64(n) / rate * float64(time.Second))
	return fmt.Sprintf("clip-%ds", int((submitted + submitSpare).Seconds()))
}

// inFlight measures many tasks in flight while clients read them, until all have ended.
func inFlight(ctx context.Context, b *Bench, report *figures.Report) error {
	n, places := b.sizes.InFlight, b.sizes.Places
	d, err := b.deploy(ctx, setting{parts: b.sizes.Parts, apis: 1, workers: 1, places: places})
	if err != nil {
		return err
	}
	h, err := b.herd(d, "in flight", longJob(min(n, places), submitRate))
	if err != nil {
		return err
	}
	defer h.close()
	if err := h.create(ctx, creators, n); err != nil {
		return err
	}
	if err := h.read(ctx); err != nil {
		return err
	}
	if err := h.await(ctx); err != nil {
		return err
	}
	result, err := h.outcome(ctx)
	if err != nil {
		return err
	}
	load := fmt.Sprintf("%d tasks, %d of them at the upstream at a time", n, min(n, places))
	add := func(figure, unit string, value float64, want *figures.Target) {
		report.AddOne(load, figure, unit, value, want)
	}
	add(fmt.Sprintf("status reads, %d readers", readers), "1/s", float64(len(h.reads))/readFor.Seconds(), figures.AtLeast(1000))
	add("status p50 meanwhile", "ms", figures.Milliseconds(figures.Quantile(h.reads, 0.50)), nil)
	add("status p99 meanwhile", "ms", figures.Milliseconds(figures.Quantile(h.reads, 0.99)), nil)
	return h.rows(add, result)
}
