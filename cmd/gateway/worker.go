package main

import (
	"context"
	"log/slog"
	"sync"

	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/workflows"
)

type workerCmd struct{}

// Run works on video tasks until ctx ends, then lets running submits come to their answer.
func (workerCmd) Run(ctx context.Context, m *Main, g *cli.Globals) error {
	p, watch, err := m.start(ctx, g)
	if err != nil {
		return err
	}
	defer p.spareCollections(m.Env)()
	countTasks, closeMetrics, err := p.measure(ctx)
	if err != nil {
		return err
	}
	defer closeMetrics()
	var background sync.WaitGroup
	defer background.Wait()
	background.Go(func() { p.attend(ctx, watch, nil, countTasks) })
	p.log.Info("working", "task_queue", p.cfg.Temporal.TaskQueue, "channels", len(p.cfg.Channels))
	runWorker(ctx, p.worker(p.openTokens(m)), p.log)
	return nil
}

// runWorker works until ctx ends. A worker that Temporal turned away is started again.
func runWorker(ctx context.Context, worker *workflows.Worker, log *slog.Logger) {
	for {
		err := worker.Run(ctx)
		if ctx.Err() != nil {
			return
		}
		log.Error("worker stopped, it is started again", "error", err, "after", retryAfter.String())
		if cli.Sleep(ctx, retryAfter) != nil {
			return
		}
	}
}
