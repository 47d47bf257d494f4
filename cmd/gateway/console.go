package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"modelrelay/api/console"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/storage"
	"modelrelay/storage/sessions"
	"modelrelay/storage/tokens"
)

// console returns the function that makes the console; nil if it is disabled.
func (p *parts) console(store *tokens.Store, service *operator.Service) func(console.Backend) http.Handler {
	if !p.cfg.Console.Enabled {
		return nil
	}
	people := &people{parts: p, tokens: store}
	return func(backend console.Backend) http.Handler {
		return console.New(console.Options{
			Backend: backend, Operator: service, Token: people.find, Key: people.key, Wrong: people.wrong, Lookup: people.lookup,
			Opened:   p.operators.Any,
			Sessions: sessions.New(p.redis, p.cfg.Console.Idle),
			URL:      p.cfg.ConsoleURL(), TraceURL: p.cfg.Console.TraceURL, TemporalURL: p.cfg.Temporal.UIOrigin, Currency: p.cfg.Currency,
			Log: p.log,
		})
	}
}

// people finds those that may sign in: operators and holders of tokens.
type people struct {
	*parts

	tokens *tokens.Store
}

func (p *people) find(ctx context.Context, id string) (*tokens.Token, error) {
	token, _, err := p.tokens.Credential(ctx, id)
	if err != nil {
		return nil, err
	}
	return &token, nil
}

// key finds the owner of a key. It always checks both kinds.
func (p *people) key(r *http.Request, key string) (console.User, error) {
	operator, isOperator := p.operators.ByKey(key)
	token, err := p.tokens.Authenticate(r.Context(), key)
	if isOperator && key != "" {
		return ofOperator(operator), nil
	}
	if err != nil {
		token = new(tokens.Token)
	}
	return ofToken(*token, tokens.Fingerprint(key), err)
}

func (p *people) wrong(r *http.Request) time.Duration {
	return p.operators.Wrong(edge.Of(r.Context()).Source())
}

func (p *people) lookup(ctx context.Context, kind, owner string) (console.User, error) {
	switch kind {
	case console.OperatorKind:
		if operator, ok := p.operators.ByName(owner); ok {
			return ofOperator(operator), nil
		}
	case console.TokenKind:
		token, fingerprint, err := p.tokens.Credential(ctx, owner)
		return ofToken(token, fingerprint, err)
	}
	return console.User{}, storage.ErrNotFound
}

func ofOperator(o edge.Operator) console.User {
	return console.User{Kind: console.OperatorKind, Owner: o.Name, Name: o.Name, Role: o.Role, Fingerprint: o.Key}
}

// ofToken returns the holder of a token that may be used now; err is the error of finding it.
func ofToken(t tokens.Token, fingerprint string, err error) (console.User, error) {
	if err == nil {
		err = t.Usable(time.Now())
	}
	switch {
	case err == nil:
		return console.User{Kind: console.TokenKind, Owner: t.ID, Name: t.Name, Role: console.Holder, Fingerprint: fingerprint}, nil
	case errors.Is(err, storage.ErrUnavailable):
		return console.User{}, storage.ErrUnavailable
	}
	return console.User{}, storage.ErrNotFound
}
