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

// inside makes the server's operations for a command, which calls them as an operator called cli and listens nowhere. The server logs
// only what goes wrong: a command prints what it did. Main's Close ends what it starts.
func (p *parts) inside(m *Main) (http.RoundTripper, error) {
	log := slog.New(slog.NewTextHandler(m.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	p.log, p.audit = log, audit.New(p.redis, log)
	server, err := p.server(m, p.openTokens(m), p.tasks())
	if err != nil {
		return nil, err
	}
	host, _ := os.Hostname() // "" where the system does not say
	return inprocess.Transport{Handler: server.InsideHandler(), As: func(ctx context.Context) context.Context {
		return edge.WithInternalCaller(ctx, &edge.InternalCaller{Operator: string(audit.CLI), Role: edge.RoleOperator, From: host})
	}}, nil
}
