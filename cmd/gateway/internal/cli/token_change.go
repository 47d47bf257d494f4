package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/api/admin"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers/secret"
	"modelrelay/storage/tokens"
)

// tokenChange is what the flags of a command say of a token.
type tokenChange struct {
	tokens.Change
	Expires       *string `help:"Date, RFC 3339 time, or duration from now such as 720h; empty: never." placeholder:"WHEN"`
	WebhookSecret *string `help:"Secret that signs them, whsec_… or \"new\" for one that is made and printed, once; the one before signs beside it for a day." placeholder:"SECRET"`
}

// madeHere asks for a webhook secret of the gateway's making.
const madeHere = "new"

// readChange is a tokenChange that can be applied.
type readChange struct {
	fields  tokens.Change
	expires *time.Time   // nil: as it is
	secret  *secret.Text // nil: as it is
	made    string       // the secret, where it was made here
}

// read makes the secret and the moments that the flags ask for. The error is a *UsageError.
func (c *tokenChange) read(now time.Time) (readChange, error) {
	change := readChange{fields: c.Change}
	if c.Expires != nil {
		expires, err := parseExpiry(*c.Expires, now)
		if err != nil {
			return readChange{}, &UsageError{Err: fmt.Errorf("--expires: %w", err)}
		}
		change.expires = &expires
	}
	switch {
	case c.WebhookSecret == nil:
	case *c.WebhookSecret == madeHere:
		secret := tokens.NewWebhookSecret()
		change.secret, change.made = &secret, secret.Reveal()
	default:
		change.secret = new(secret.Text(*c.WebhookSecret))
	}
	return change, nil
}

// apply puts the change into a token and checks the outcome; was is the token as it was, nil for a new one. The error is a *UsageError.
func (c readChange) apply(was, t *tokens.Token, cfg config.Config) error {
	c.fields.Apply(t)
	if c.expires != nil {
		t.Expires = *c.expires
	}
	if c.secret != nil {
		t.WebhookSecret = *c.secret
	}
	checked, problem := cfg.CheckToken(was, *t)
	if problem != nil {
		return flagError(problem)
	}
	*t = checked
	return nil
}

// flagError is a problem of a token's field as the flag's.
func flagError(problem *config.Problem) error {
	return &UsageError{Err: fmt.Errorf("--%s: %s", strings.ReplaceAll(problem.Key, "_", "-"), problem.Message)}
}

// tokenUpdateCmd changes what is named and leaves the rest.
type tokenUpdateCmd struct {
	Token string `arg:"" help:"Name or id."`
	tokenChange
}

// errNothingToDo says that no flag names a change.
var errNothingToDo = errors.New("nothing to change: name at least one flag")

// Run changes the token.
func (c *tokenUpdateCmd) Run(ctx context.Context, p *Program) error {
	if c.tokenChange == (tokenChange{}) {
		return &UsageError{Err: errNothingToDo}
	}
	change, err := c.read(time.Now())
	if err != nil {
		return err
	}
	cfg, err := p.Load()
	if err != nil {
		return err
	}
	made := newToken{NewWebhookSecret: change.made}
	return p.withTokens(func(store *tokens.Store, client redis.UniversalClient) error {
		var before tokens.Token
		made.Token, err = store.Update(ctx, c.Token, func(t *tokens.Token) error {
			before = *t
			return change.apply(&before, t, cfg)
		})
		err = note(ctx, client, "update_token", cmp.Or(made.ID, c.Token), admin.TokenChanges(before, made.Token), err)
		if usage := (*UsageError)(nil); errors.As(err, &usage) {
			return usage
		}
		if err != nil {
			return tokenError(c.Token, err)
		}
		return p.printNewToken(made)
	})
}
