package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"log/slog"
	"slices"
	"strings"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/api/admin"
	"modelrelay/cmd/gateway/internal/config"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/secret"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/ledger"
	"modelrelay/storage/slots"
	"modelrelay/storage/tokens"
)

// Token is gateway token. It works on Redis directly, so it needs no running gateway.
type Token struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token and print its key, once."`
	List   tokenListCmd   `cmd:"" help:"List all tokens."`
	Show   tokenShowCmd   `cmd:"" help:"Show one token."`
	Update tokenUpdateCmd `cmd:"" help:"Change a token's limits, permissions or webhook, within a second."`
	Revoke tokenRevokeCmd `cmd:"" help:"End a token for good, within a second."`
	Rotate tokenRotateCmd `cmd:"" help:"Give a token a new key or webhook secret and print it, once."`
	Groups tokenGroupsCmd `cmd:"" help:"List the groups of tokens, with their limits in the configuration file."`
}

type tokenCreateCmd struct {
	Name string `required:"" help:"Name for people; unique."`
	tokenChange
}

// newToken is a token as the store prints it, with what is shown this once.
type newToken struct {
	tokens.Token

	InForce shownLimits `json:"in_force"`
	Key     string      `json:"key,omitempty"`
	// NewWebhookSecret stands here only when the gateway made it.
	NewWebhookSecret string `json:"new_webhook_secret,omitempty"`
}

// Run makes the token.
func (c *tokenCreateCmd) Run(ctx context.Context, p *Program) error {
	change, err := c.read(time.Now())
	if err != nil {
		return err
	}
	cfg, err := p.Load()
	if err != nil {
		return err
	}
	made := newToken{NewWebhookSecret: change.made}
	token := tokens.Token{Name: c.Name, Group: config.DefaultGroup, Weight: 1, Lane: slots.LaneNormal}
	if err := change.apply(nil, &token, cfg); err != nil {
		return err
	}
	return p.withTokens(func(store *tokens.Store, client redis.UniversalClient) error {
		plain := tokens.Token{Group: config.DefaultGroup, Weight: 1, Lane: slots.LaneNormal}
		made.Token, made.Key, err = store.Create(ctx, token)
		err = note(ctx, client, "create_token", cmp.Or(made.ID, c.Name), admin.TokenChanges(plain, made.Token), err)
		if errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("a token named %q exists already", c.Name)
		}
		if err != nil {
			return err
		}
		return p.printNewToken(made)
	})
}

type tokenListCmd struct {
	Group string `help:"Tokens of this group." placeholder:"NAME"`
	State string `help:"Tokens in this state: active, disabled, expired, revoked." enum:",active,disabled,expired,revoked" default:""`
}

// Run lists tokens.
func (c *tokenListCmd) Run(ctx context.Context, p *Program) error {
	return p.withTokens(func(store *tokens.Store, _ redis.UniversalClient) error {
		list, err := store.List(ctx)
		if err != nil {
			return err
		}
		list = slices.DeleteFunc(list, func(t tokens.Token) bool {
			return c.Group != "" && t.Group != c.Group || c.State != "" && !strings.HasPrefix(standing(t, time.Now()), c.State)
		})
		return printList(p, append([]tokens.Token{}, list...), []string{"NAME", "ID", "KEY", "GROUP", "MODELS", "STATE", "CREATED"}, func(t tokens.Token) []string {
			return []string{t.Name, t.ID, t.Hint, t.Group, orAll(t.Models), standing(t, time.Now()), moment(t.CreatedAt)}
		})
	})
}

type tokenShowCmd struct {
	Token string `arg:"" help:"Name or id."`
}

// Run shows one token.
func (c *tokenShowCmd) Run(ctx context.Context, p *Program) error {
	cfg, err := p.Load()
	if err != nil {
		return err
	}
	return p.withTokens(func(store *tokens.Store, client redis.UniversalClient) error {
		t, err := store.Find(ctx, c.Token)
		if err != nil {
			return tokenError(c.Token, err)
		}
		inForce := cfg.GroupLimits()[t.Group].InForce(t)
		shown := shownToken{Token: t, InForce: shownLimits{inForce.Limits, inForce.Budget}}
		if shown.InForce.Budget > 0 {
			balance, err := ledger.NewBudgets(client, nil).Balance(ctx, t.ID)
			if err != nil {
				return err
			}
			shown.Spent, shown.Reserved = new(pricing.Money(balance.Spent)), new(pricing.Money(balance.Reserved))
		}
		return p.showFields(shown, shown.fields())
	})
}

// shownToken is a token with the limits that hold for it, and what it spent and reserved of its budget, nil without one.
type shownToken struct {
	tokens.Token

	InForce  shownLimits    `json:"in_force"`
	Spent    *pricing.Money `json:"spent,omitempty"`
	Reserved *pricing.Money `json:"reserved,omitempty"`
}

func (t shownToken) fields() fields {
	list := tokenFields(t.Token, t.InForce)
	if t.Spent != nil {
		list = append(list, [2]string{"spent", t.Spent.String()}, [2]string{"reserved", t.Reserved.String()})
	}
	return list
}

type tokenRevokeCmd struct {
	Token string `arg:"" help:"Name or id."`
}

// Run revokes the token.
func (c *tokenRevokeCmd) Run(ctx context.Context, p *Program) error {
	return p.withTokens(func(store *tokens.Store, client redis.UniversalClient) error {
		t, err := store.Find(ctx, c.Token)
		if err == nil {
			err = store.Revoke(ctx, c.Token)
		}
		ended := t
		ended.Disabled, ended.Revoked = true, true
		err = note(ctx, client, "revoke_token", cmp.Or(t.ID, c.Token), admin.TokenChanges(t, ended), err)
		if err != nil {
			return tokenError(c.Token, err)
		}
		if p.JSON {
			return printJSON(p.Stdout, map[string]any{"id": t.ID, "name": t.Name, "revoked": true})
		}
		if _, err = fmt.Fprintf(p.Stdout, "revoked %s (%s)\n", providers.Shown(t.Name), t.ID); err == nil && t.Seeded {
			_, err = fmt.Fprintln(p.Stderr, "It stands in the configuration file: take it out there, or give it another key, with which it works again.")
		}
		return err
	})
}

type tokenRotateCmd struct {
	Token         string        `arg:"" help:"Name or id."`
	WebhookSecret bool          `help:"Rotate the webhook secret instead of the key."`
	Overlap       time.Duration `help:"How long the webhook secret before goes on signing beside the new one." default:"24h"`
}

// Run gives the token a new key or a new webhook secret.
func (c *tokenRotateCmd) Run(ctx context.Context, p *Program) error {
	if c.Overlap < 0 {
		return &UsageError{Err: errors.New("--overlap: is negative")}
	}
	return p.withTokens(func(store *tokens.Store, client redis.UniversalClient) error {
		var (
			made   newToken
			secret secret.Text
			err    error
		)
		if c.WebhookSecret {
			made.Token, secret, err = store.RotateWebhookSecret(ctx, c.Token, c.Overlap)
			made.NewWebhookSecret = secret.Reveal()
			err = note(ctx, client, "rotate_webhook_secret", cmp.Or(made.ID, c.Token), nil, err)
		} else {
			made.Token, made.Key, err = store.Rotate(ctx, c.Token)
			err = note(ctx, client, "rotate_token", cmp.Or(made.ID, c.Token), []audit.Change{audit.Set("hint", made.Hint)}, err)
		}
		if err != nil {
			return tokenError(c.Token, err)
		}
		return p.printNewToken(made)
	})
}

// withTokens opens the token store of the configuration for one piece of work, and its Redis, where what is done is noted.
func (p *Program) withTokens(work func(*tokens.Store, redis.UniversalClient) error) error {
	cfg, err := p.Load()
	if err != nil {
		return err
	}
	client, err := storage.OpenRedis(cfg.Redis.URL.Reveal(), cfg.Redis.Options())
	if err != nil {
		return fmt.Errorf("open redis: %w", err)
	}
	p.OnClose(client.Close)
	store := openTokens(client)
	defer store.Close()
	return work(store, client)
}

// openTokens opens the token store for one piece of work; a command tells itself what goes wrong.
func openTokens(client redis.UniversalClient) *tokens.Store {
	return tokens.New(client, &tokens.Options{Log: slog.New(slog.DiscardHandler)})
}

// findToken finds a token by its id or name.
func findToken(ctx context.Context, client redis.UniversalClient, idOrName string) (tokens.Token, error) {
	store := openTokens(client)
	defer store.Close()
	found, err := store.Find(ctx, idOrName)
	return found, tokenError(idOrName, err)
}

func tokenError(name string, err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("there is no token %q", name)
	}
	return err // it says what was being done
}
