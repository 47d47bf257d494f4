package main

import (
	"context"
	"log/slog"

	"modelrelay/api/console/inprocess"
	"modelrelay/api/edge"
	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/storage/audit"
)

// operations makes the server's operations for a command, which calls them as an operator called cli and listens nowhere.
// Its log is for what goes wrong: a command says itself what it did. Main's Close ends what it starts.
func (p *parts) operations(m *Main) (cli.Operation, error) {
	log := slog.New(slog.NewTextHandler(m.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	p.log, p.audit = log, audit.New(p.redis, log)
	server, err := p.server(m, p.openTokens(m), p.tasks())
	if err != nil {
		return nil, err
	}
	api := inprocess.API{Handler: server.InsideHandler()}
	return func(ctx context.Context, method, path string, body, into any) error {
		who := &edge.Insider{Operator: string(audit.CLI), Role: edge.RoleOperator}
		return api.Do(edge.WithInsider(ctx, who), nil, method, path, body, into)
	}, nil
}
