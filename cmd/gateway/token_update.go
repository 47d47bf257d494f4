package main

import (
	"context"
	"errors"
	"time"

	"modelrelay/storage"
)

// tokenUpdateCmd changes what is named and leaves the rest.
type tokenUpdateCmd struct {
	Token string `arg:"" help:"Name or id."`
	tokenChange
}

// errNothingToDo says that no flag names a change.
var errNothingToDo = errors.New("nothing to change: name at least one flag")

// Run changes the token.
func (c *tokenUpdateCmd) Run(ctx context.Context, m *Main, g *globals) error {
	if c.tokenChange == (tokenChange{}) {
		return &UsageError{Err: errNothingToDo}
	}
	change, err := c.read(time.Now())
	if err != nil {
		return err
	}
	cfg, err := m.loadConfig(g)
	if err != nil {
		return err
	}
	made := newToken{NewWebhookSecret: change.made}
	return m.withTokens(g, func(tokens *storage.Tokens) error {
		made.Token, err = tokens.Update(ctx, c.Token, func(t *storage.Token) error { return change.apply(t, cfg.Webhooks) })
		if usage := (*UsageError)(nil); errors.As(err, &usage) {
			return usage
		}
		if err != nil {
			return tokenError(c.Token, err)
		}
		return m.printNewToken(g, made)
	})
}
