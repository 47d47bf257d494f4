package main

import (
	"context"
	"encoding/json"
	"os"
	"slices"

	"modelrelay/api/setup"
	"modelrelay/cmd/gateway/internal/buildinfo"
	"modelrelay/cmd/gateway/internal/engine"
	"modelrelay/storage/ledger"
)

func (p *parts) setup() *setup.Setup {
	version := p.temporal.Version(p.cfg)
	return &setup.Setup{
		Config: p.setupConfig,
		Redis:  p.redis,
		Temporal: setup.Temporal{
			Reach: p.temporal.Reach, Misconfigured: engine.Misconfigured, Version: version,
			Namespace: func(ctx context.Context) error { return p.temporal.Namespace.Check(ctx, p.cfg.Video.Retention) },
			Current:   func(ctx context.Context) (bool, error) { return version.Current(ctx, p.temporal) },
		},
		Archive:   p.archive,
		Tasks:     p.operator,
		Usage:     ledger.NewReader(p.redis),
		Router:    p.router,
		Prices:    p.prices,
		Processes: p.health,
		Channels:  p.tester(),
	}
}

func (p *parts) setupConfig() setup.Config {
	cfg := p.current()
	all := setup.Config{
		RedisGrace: cfg.Relay.RedisGrace, ArchiveDeadline: cfg.Video.ArchiveDeadline,
		Bucket: cfg.Archive.Bucket, Namespace: cfg.Temporal.Namespace, TaskQueue: cfg.Temporal.TaskQueue,
		Tokens: len(cfg.Tokens), Models: slices.Collect(cfg.Named()), Priced: len(cfg.Prices) > 0,
		Console: cfg.Console.Enabled, ConsoleURL: cfg.ConsoleURL(), Operators: len(cfg.AllOperators()) > 0,
	}
	for _, channel := range cfg.Channels {
		if !channel.Disabled {
			all.Channels = append(all.Channels, channel.Name)
		}
	}
	for _, warning := range cfg.Warnings(p.catalog) {
		all.Warnings = append(all.Warnings, setup.Finding{
			Status: setup.Warning, Code: warning.Code, Values: warning.Values,
			Fix: "gateway config check",
		})
	}
	return all
}

// introduction is what this process reports about itself to operators, as JSON.
func introduction() []byte {
	build := buildinfo.Read()
	host, _ := os.Hostname() // "" if the system does not report it
	text, _ := json.Marshal(setup.About{Version: build.Version, Commit: build.Commit, Host: host, PID: os.Getpid()})
	return text
}
