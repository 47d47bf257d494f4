package main

import (
	"modelrelay/api"
	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/storage"
	"modelrelay/workflows"
)

// admin is what the operations under /admin work with: the functions of the operator's commands.
func (p *parts) admin(tokens *storage.Tokens, tasks *workflows.Client) api.Admin {
	return api.Admin{
		Key:    p.adminKey,
		Tokens: tokens,
		CheckToken: func(t storage.Token) (storage.Token, error) {
			checked, problem := config.CheckToken(t, p.cfg.Webhooks)
			if problem != nil {
				return t, providers.InvalidField(problem.Key, "Invalid request: '%s' %s.", problem.Key, problem.Message)
			}
			return checked, nil
		},
		Tasks:    workflows.NewOperator(p.temporal, p.cfg.Temporal.Namespace),
		Webhooks: tasks,
		Usage:    storage.NewUsageReader(p.redis),
		Money:    p.settler(),
		Channels: p.health.States,
	}
}

// open puts together what the operator's commands work with, from the configuration file.
func (m *Main) open(file string) (*cli.Services, error) {
	cfg, err := m.loadConfig(file)
	if err != nil {
		return nil, err
	}
	p, err := m.wire(cfg)
	if err != nil {
		return nil, err
	}
	return &cli.Services{
		Config: cfg, Redis: p.redis, Prices: p.prices, Index: p.index(), Tasks: p.tasks(),
		Operator: workflows.NewOperator(p.temporal, cfg.Temporal.Namespace), Unsettled: p.settler(), Channels: p.health.States,
	}, nil
}
