package main

import (
	"context"
	"fmt"
	"io"
	"log/slog"
	"sync"
	"time"

	"modelrelay/cmd/gateway/internal/buildinfo"
	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/cmd/gateway/internal/metrics"
	"modelrelay/storage"
	"modelrelay/storage/slots"
	"modelrelay/storage/tokens"
)

// start reads the configuration and makes the components.
func (m *Main) start(ctx context.Context, g *cli.Globals) (*parts, *watcher, error) {
	cfg, text, err := config.Load(g.Config, m.Env, vendorTable())
	if err != nil {
		return nil, nil, err
	}
	tracer, flush, err := metrics.OpenTracing(ctx, m.Env, buildinfo.Read().Version, newLogger(m.Stderr, cfg.Log))
	if err != nil {
		return nil, nil, err
	}
	if tracer != nil {
		m.tracer = tracer
		m.onClose(flush)
	}
	p, err := m.wire(cfg)
	if err != nil {
		return nil, nil, err
	}
	return p, newWatcher(m, g, p, text), nil
}

// measure serves the metrics until closeMetrics is called. countTasks counts tasks until its context ends.
func (p *parts) measure(ctx context.Context) (countTasks func(context.Context), closeMetrics func(), err error) {
	if p.cfg.Metrics.Listen == "" {
		return func(context.Context) {}, func() {}, nil
	}
	if closeMetrics, err = p.metrics.Listen(ctx, p.cfg.Metrics.Listen); err != nil {
		return nil, nil, err
	}
	if countTasks, err = p.metrics.CountTasks(p.operator, slots.New(p.redis)); err != nil {
		closeMetrics()
		return nil, nil, err
	}
	return countTasks, closeMetrics, nil
}

// attend runs the background work of both API and worker until ctx ends. It creates the bucket, watches the configuration file, shares the
// health of channels, and counts tasks. tokens is nil in a process without API.
func (p *parts) attend(ctx context.Context, watch *watcher, tokens *tokens.Store, countTasks func(context.Context)) {
	var all sync.WaitGroup
	defer all.Wait()
	all.Go(func() { p.prepareArchive(ctx) })
	all.Go(func() { watch.run(ctx, tokens) })
	all.Go(func() { p.health.Run(ctx) })
	all.Go(func() { countTasks(ctx) })
	all.Go(func() { p.flushAudit(ctx) })
}

// auditEvery is the interval of retries for entries of the audit log that Redis did not accept.
const auditEvery = 5 * time.Second

// flushAudit retries such entries until ctx ends, and once more then.
func (p *parts) flushAudit(ctx context.Context) {
	for storage.Sleep(ctx, auditEvery) == nil {
		_ = p.audit.Flush(ctx) // Record has reported it
	}
	_ = p.audit.Flush(context.WithoutCancel(ctx))
}

// retryAfter is the wait before the retry of a failed background job. Such a failure never ends the process.
const retryAfter = 5 * time.Second

// prepareArchive creates the bucket as soon as the store answers.
func (p *parts) prepareArchive(ctx context.Context) {
	for reported := false; ; reported = true {
		err := p.archive.EnsureBucket(ctx)
		if err == nil || ctx.Err() != nil {
			return
		}
		if !reported {
			p.log.Warn("archive is not ready, waiting", "error", err)
		}
		if storage.Sleep(ctx, retryAfter) != nil {
			return
		}
	}
}

// newLogger returns the process's logger. Invalid values mean info and JSON; Validate refuses them.
func newLogger(w io.Writer, cfg config.Log) *slog.Logger {
	var level slog.Level
	if err := level.UnmarshalText([]byte(cfg.Level)); err != nil {
		level = slog.LevelInfo
	}
	options := &slog.HandlerOptions{Level: level}
	if cfg.Format == "text" {
		return slog.New(slog.NewTextHandler(w, options))
	}
	return slog.New(slog.NewJSONHandler(w, options))
}

// mostWarnings is the maximum number of warnings in one line of the log: a file may have thousands of tokens.
const mostWarnings = 20

// logWarnings logs what the configuration does that is probably not intended.
func logWarnings(log *slog.Logger, warnings []config.Problem) {
	if len(warnings) == 0 {
		return
	}
	lines := config.LinesOf(warnings[:min(len(warnings), mostWarnings)])
	if more := len(warnings) - mostWarnings; more > 0 {
		lines = append(lines, fmt.Sprintf("and %d more", more))
	}
	log.Warn("the configuration is valid and may not be what is wanted", "warnings", lines)
}
