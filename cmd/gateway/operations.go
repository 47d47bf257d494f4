package main

import (
	"context"
	"io"
	"log/slog"
	"net/http"

	"modelrelay/api/console/inprocess"
	"modelrelay/api/edge"
	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/storage/audit"
)

// inside makes the server's operations for a command, which calls them as an operator called cli and listens nowhere.
// Its log is for what goes wrong: a command says itself what it did. Main's Close ends what it starts.
func (p *parts) inside(m *Main) (inprocess.API, error) {
	log := slog.New(slog.NewTextHandler(m.Stderr, &slog.HandlerOptions{Level: slog.LevelError}))
	p.log, p.audit = log, audit.New(p.redis, log)
	server, err := p.server(m, p.openTokens(m), p.tasks())
	if err != nil {
		return inprocess.API{}, err
	}
	return inprocess.API{Handler: server.InsideHandler()}, nil
}

// asCommand lets a call of the operations act for the command line.
func asCommand(ctx context.Context) context.Context {
	return edge.WithInsider(ctx, &edge.Insider{Operator: string(audit.CLI), Role: edge.RoleOperator})
}

// operations are the server's operations for a command.
func operations(api inprocess.API, err error) (cli.Operation, error) {
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, method, path string, body, into any) error {
		return api.Do(asCommand(ctx), nil, method, path, body, into)
	}, nil
}

// content are the server's operations for a command that wants bytes.
func content(api inprocess.API, err error) (cli.Content, error) {
	if err != nil {
		return nil, err
	}
	return func(ctx context.Context, path string, header http.Header, begin func(http.Header) (io.Writer, error)) (int64, error) {
		return api.Fetch(asCommand(ctx), path, header, begin)
	}, nil
}
