package main

import (
	"net/http"

	"modelrelay/api/admin"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/cmd/gateway/internal/buildinfo"
	"modelrelay/cmd/gateway/internal/cli"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/storage/ledger"
	"modelrelay/storage/taskindex"
	"modelrelay/storage/tokens"
)

// admin returns the dependencies of the operations under /admin.
func (p *parts) admin(store *tokens.Store) admin.Options {
	return admin.Options{
		Operators: p.operators,
		Service: operator.New(operator.Options{
			Tokens: store, CheckToken: p.checkToken, Groups: func() map[string]operator.GroupRules { return tokenGroups(p.current()) },
			Tasks:  p.operator,
			Ledger: ledger.NewReader(p.redis), Money: p.budgets(), Prices: p.prices, Logs: p.callLogs(), Audit: p.audit,
			Router: p.router, Channels: p.health, Tester: p.tester(), Durations: taskindex.NewDurations(p.redis),
			Checks: p.setup().Running(), Version: buildinfo.Read().Version,
		}),
	}
}

// checkToken checks a token against the rules of the current file.
func (p *parts) checkToken(was *tokens.Token, token tokens.Token) (tokens.Token, error) {
	checked, problem := p.current().CheckToken(was, token)
	if problem != nil {
		return token, providers.InvalidField(problem.Key, "Invalid request: '%s' %s.", problem.Key, problem.Message)
	}
	return checked, nil
}

func tokenGroups(cfg config.Config) map[string]operator.GroupRules {
	groups, limits := make(map[string]operator.GroupRules), cfg.GroupLimits()
	for _, name := range cfg.GroupNames() {
		groups[name] = operator.GroupRules{GroupLimits: limits[name], Forbid: cfg.Forbids(name), Channels: cfg.ChannelsOf(name)}
	}
	return groups
}

func operatorKeys(cfg config.Config) []admin.OperatorKey {
	all := cfg.AllOperators()
	keys := make([]admin.OperatorKey, len(all))
	for i, o := range all {
		keys[i] = admin.OperatorKey{Name: o.Name, Role: edge.Role(o.Role), Key: o.Key}
	}
	return keys
}

// open returns the dependencies of the operator's commands for a configuration file.
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
		Config: cfg, Redis: p.redis, Index: p.index(), Operator: p.operator,
		InProcess: func() (http.RoundTripper, error) { return p.inProcess(m) },
		Connect:   p.setup().Before(),
	}, nil
}
