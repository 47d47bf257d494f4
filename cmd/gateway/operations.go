package main

import (
	"context"
	"log/slog"
	"net/http"
	"os"

	"modelrelay/api/console/inprocess"
	"modelrelay/api/edge"
	"modelrelay/storage/audit"
)

// inProcess returns the server's operations for a command, which calls them as an operator named cli. It does not listen. The server logs
// only errors, because a command prints its result. Main's Close releases everything.
func (p *parts) inProcess(m *Main) (http.RoundTripper, error) {
	log := slog.New(slog.NewTextHandler(m.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	p.log, p.audit = log, audit.New(p.redis, log)
	server, err := p.server(m, p.openTokens(m), p.tasks())
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // "" if the system does not report it
	return inprocess.Transport{Handler: server.InternalHandler(), As: func(ctx context.Context) context.Context {
		return edge.WithInternalCaller(ctx, &edge.InternalCaller{Operator: string(audit.CLI), Role: edge.RoleOperator, From: host})
	}}, nil
}
