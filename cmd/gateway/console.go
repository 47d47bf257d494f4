package main

import (
	"context"
	"errors"
	"net/http"
	"time"

	"modelrelay/api/console"
	"modelrelay/api/edge"
	"modelrelay/api/operator"
	"modelrelay/cmd/gateway/internal/buildinfo"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/sessions"
	"modelrelay/storage/tokens"
)

// console returns what makes the console; nil where it is switched off.
func (p *parts) console(store *tokens.Store, service *operator.Service) func(console.Backend) http.Handler {
	if !p.cfg.Console.Enabled {
		return nil
	}
	people := &people{parts: p, tokens: store}
	return func(backend console.Backend) http.Handler {
		return console.New(console.Options{
			Backend: backend, Operator: service, Token: people.find, Key: people.key, Wrong: people.wrong, Lookup: people.lookup, Opened: p.operators.Any,
			Note:     people.note,
			Sessions: consoleSessions{sessions.New(p.redis, p.cfg.Console.Idle)},
			URL:      p.cfg.ConsoleURL(), TraceURL: p.cfg.Console.TraceURL, TemporalURL: p.cfg.Temporal.UIOrigin, Currency: p.cfg.Currency,
			Version: buildinfo.Read().Version, Log: p.log,
		})
	}
}

// people are the operators and the holders of tokens that may sign in.
type people struct {
	*parts

	tokens *tokens.Store
}

// find returns a token by its id.
func (p *people) find(ctx context.Context, id string) (*tokens.Token, error) {
	token, _, err := p.tokens.Credential(ctx, id)
	if err != nil {
		return nil, err
	}
	return &token, nil
}

// key finds whose a key is. It asks for both kinds whatever the first one says.
func (p *people) key(r *http.Request, key string) (console.Who, error) {
	operator, isOperator := p.operators.ByKey(key)
	token, err := p.tokens.Authenticate(r.Context(), key)
	if err == nil {
		err = token.Usable(time.Now())
	}
	switch {
	case isOperator && key != "":
		return ofOperator(operator), nil
	case err == nil:
		return ofToken(*token, tokens.Fingerprint(key)), nil
	case errors.Is(err, storage.ErrUnavailable):
		return console.Who{}, console.ErrAway
	}
	return console.Who{}, console.ErrUnknown
}

// wrong counts a wrong key or link against its network.
func (p *people) wrong(r *http.Request) time.Duration {
	return p.operators.Wrong(edge.Of(r.Context()).Source())
}

// lookup finds who an owner is now.
func (p *people) lookup(ctx context.Context, kind, owner string) (console.Who, error) {
	switch kind {
	case console.OperatorKind:
		if operator, ok := p.operators.ByName(owner); ok {
			return ofOperator(operator), nil
		}
	case console.TokenKind:
		token, fingerprint, err := p.tokens.Credential(ctx, owner)
		if err == nil {
			err = token.Usable(time.Now())
		}
		switch {
		case err == nil:
			return ofToken(token, fingerprint), nil
		case errors.Is(err, storage.ErrUnavailable):
			return console.Who{}, console.ErrAway
		}
	}
	return console.Who{}, console.ErrUnknown
}

// note writes an act into the audit log.
func (p *people) note(r *http.Request, act console.Act) {
	x := edge.Of(r.Context())
	entry := audit.Entry{Who: act.Who.Owner, What: act.What, Subject: act.Subject, Reason: act.Refused, RequestID: x.ID}
	switch act.Who.Kind {
	case console.OperatorKind:
		entry.By = audit.Operator
	case console.TokenKind:
		entry.By = audit.Token
	default:
		entry.By = audit.Nobody
	}
	if source := x.Source(); source.IsValid() {
		entry.From = source.String()
	}
	p.audit.Record(r.Context(), entry)
}

func ofOperator(o edge.Operator) console.Who {
	return console.Who{Kind: console.OperatorKind, Owner: o.Name, Name: o.Name, Role: console.Role(o.Role), Fingerprint: o.Key}
}

func ofToken(t tokens.Token, fingerprint string) console.Who {
	return console.Who{Kind: console.TokenKind, Owner: t.ID, Name: t.Name, Role: console.Holder, Fingerprint: fingerprint}
}

// consoleSessions are the sessions in Redis as the console asks for them. It implements console.Sessions.
type consoleSessions struct{ store *sessions.Store }

// forConsole is an error of the store in the console's words.
func forConsole(err error) error {
	tooMany := (*sessions.TooManyError)(nil)
	switch {
	case errors.As(err, &tooMany):
		return &console.WaitError{For: tooMany.For}
	case errors.Is(err, storage.ErrNotFound):
		return console.ErrUnknown
	case errors.Is(err, storage.ErrUnavailable):
		return console.ErrAway
	default:
		return err
	}
}

// Begin starts a session.
func (c consoleSessions) Begin(ctx context.Context, s console.Session) (string, error) {
	secret, _, err := c.store.Begin(ctx, sessions.Session(s))
	return secret, forConsole(err)
}

// Find returns the session of a browser's secret.
func (c consoleSessions) Find(ctx context.Context, secret string) (console.Session, error) {
	s, err := c.store.Find(ctx, secret)
	return console.Session(s), forConsole(err)
}

// List returns an owner's sessions.
func (c consoleSessions) List(ctx context.Context, kind, owner string) ([]console.Session, error) {
	list, err := c.store.List(ctx, kind, owner)
	if err != nil {
		return nil, forConsole(err)
	}
	shown := make([]console.Session, len(list))
	for i, s := range list {
		shown[i] = console.Session(s)
	}
	return shown, nil
}

// End ends one of an owner's sessions.
func (c consoleSessions) End(ctx context.Context, kind, owner, id string) error {
	return forConsole(c.store.End(ctx, kind, owner, id))
}

// EndAll ends all of an owner's sessions.
func (c consoleSessions) EndAll(ctx context.Context, kind, owner string) error {
	return forConsole(c.store.EndAll(ctx, kind, owner))
}

// Offer makes a link's code.
func (c consoleSessions) Offer(ctx context.Context, kind, owner string, lasts time.Duration) (string, error) {
	code, err := c.store.Offer(ctx, sessions.Link{Kind: kind, Owner: owner}, lasts)
	return code, forConsole(err)
}

// Peek returns the person that a code admits.
func (c consoleSessions) Peek(ctx context.Context, code string) (kind, owner string, err error) {
	link, err := c.store.Peek(ctx, code)
	return link.Kind, link.Owner, forConsole(err)
}

// Take uses a code up.
func (c consoleSessions) Take(ctx context.Context, code string) (kind, owner string, err error) {
	link, err := c.store.Take(ctx, code)
	return link.Kind, link.Owner, forConsole(err)
}

// Once reports whether a word comes for the first time.
func (c consoleSessions) Once(ctx context.Context, kind, owner, word string) (bool, error) {
	first, err := c.store.Once(ctx, kind, owner, word)
	return first, forConsole(err)
}
