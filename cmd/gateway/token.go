package main

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"strconv"
	"strings"
	"time"

	"modelrelay/providers"
	"modelrelay/storage"
)

// tokenCmd works on Redis directly, so it needs no running gateway.
type tokenCmd struct {
	Create tokenCreateCmd `cmd:"" help:"Make a token and print its key, once."`
	List   tokenListCmd   `cmd:"" help:"List tokens."`
	Show   tokenShowCmd   `cmd:"" help:"Show one token."`
	Revoke tokenRevokeCmd `cmd:"" help:"End a token for good, within a second."`
	Rotate tokenRotateCmd `cmd:"" help:"Give a token a new key and print it, once."`
}

type tokenCreateCmd struct {
	Name              string   `required:"" help:"Name for people; unique."`
	Group             string   `default:"default" help:"Which channels it may use."`
	Models            []string `help:"Public model names with * patterns; none: every model of the group."`
	RequestsPerMinute int      `help:"0: no limit."`
	TokensPerMinute   int      `help:"Model tokens, input and output; 0: no limit."`
	Concurrency       int      `help:"Calls at a time; 0: no limit."`
	MaxTasks          int      `help:"Unfinished video tasks; 0: no limit."`
	MaxSockets        int      `help:"Open realtime connections; 0: no limit."`
	Budget            float64  `help:"Money, in the unit of prices; 0: no limit."`
	Weight            int      `default:"1" help:"Share of video slots among waiting tokens."`
	Lane              string   `default:"normal" help:"Lane of its waiting video tasks."`
	Expires           string   `help:"Date, RFC 3339 time, or duration from now such as 720h; empty: never." placeholder:"WHEN"`
	Networks          []string `help:"Source addresses or CIDR ranges; none: any."`
	Operations        []string `help:"Operations it may call; none: all."`
	WebhookURL        string   `name:"webhook-url" help:"Where its video events go."`
	WebhookSecret     string   `help:"whsec_ key that signs them."`
}

// newToken is a token as the store prints it, with the key that is shown this once.
type newToken struct {
	storage.Token

	Key string `json:"key"`
}

// Run makes the token.
func (c *tokenCreateCmd) Run(ctx context.Context, m *Main, g *globals) error {
	expires, err := parseExpiry(c.Expires, time.Now())
	if err != nil {
		return &UsageError{Err: fmt.Errorf("--expires: %w", err)}
	}
	// The same rules as for a token of the file, except that this key is yet to be made.
	entry := Token{
		Name: c.Name, Key: "sk-later", Group: c.Group, Models: c.Models, RequestsPerMinute: c.RequestsPerMinute,
		TokensPerMinute: c.TokensPerMinute, Concurrency: c.Concurrency, MaxTasks: c.MaxTasks, MaxSockets: c.MaxSockets,
		Budget: c.Budget, Weight: c.Weight, Lane: c.Lane, Expires: expires, Networks: c.Networks, Operations: c.Operations,
		WebhookURL: c.WebhookURL, WebhookSecret: providers.Secret(c.WebhookSecret),
	}

	j := &judge{}
	j.token("", entry)
	if len(j.problems) > 0 {
		flag := strings.ReplaceAll(strings.TrimPrefix(j.problems[0].Key, "."), "_", "-")
		return &UsageError{Err: fmt.Errorf("--%s: %s", flag, j.problems[0].Message)}
	}
	return m.withTokens(g, func(tokens *storage.Tokens) error {
		made, key, err := tokens.Create(ctx, entry.stored())
		if errors.Is(err, storage.ErrExists) {
			return fmt.Errorf("a token named %q exists already", c.Name)
		}
		if err != nil {
			return err
		}
		return m.printNewToken(g, made, key)
	})
}

type tokenListCmd struct{}

// Run lists every token.
func (tokenListCmd) Run(ctx context.Context, m *Main, g *globals) error {
	return m.withTokens(g, func(tokens *storage.Tokens) error {
		list, err := tokens.List(ctx)
		if err != nil {
			return err
		}
		if g.JSON {
			if list == nil {
				list = []storage.Token{}
			}
			return printJSON(m.Stdout, list)
		}
		rows := make([][]string, 0, len(list))
		for _, t := range list {
			rows = append(rows, []string{t.Name, t.ID, t.Hint, t.Group, orAll(t.Models), standing(t, time.Now()), moment(t.CreatedAt)})
		}
		return printTable(m.Stdout, []string{"NAME", "ID", "KEY", "GROUP", "MODELS", "STATE", "CREATED"}, rows)
	})
}

type tokenShowCmd struct {
	Token string `arg:"" help:"Name or id."`
}

// Run shows one token.
func (c *tokenShowCmd) Run(ctx context.Context, m *Main, g *globals) error {
	return m.withTokens(g, func(tokens *storage.Tokens) error {
		t, err := tokens.Find(ctx, c.Token)
		if err != nil {
			return tokenError(c.Token, err)
		}
		if g.JSON {
			return printJSON(m.Stdout, t)
		}
		return printFields(m.Stdout, tokenFields(t))
	})
}

type tokenRevokeCmd struct {
	Token string `arg:"" help:"Name or id."`
}

// Run revokes the token.
func (c *tokenRevokeCmd) Run(ctx context.Context, m *Main, g *globals) error {
	return m.withTokens(g, func(tokens *storage.Tokens) error {
		t, err := tokens.Find(ctx, c.Token)
		if err == nil {
			err = tokens.Revoke(ctx, c.Token)
		}
		if err != nil {
			return tokenError(c.Token, err)
		}
		if g.JSON {
			return printJSON(m.Stdout, map[string]any{"id": t.ID, "name": t.Name, "revoked": true})
		}
		_, err = fmt.Fprintf(m.Stdout, "revoked %s (%s)\n", t.Name, t.ID)
		return err
	})
}

type tokenRotateCmd struct {
	Token string `arg:"" help:"Name or id."`
}

// Run gives the token a new key.
func (c *tokenRotateCmd) Run(ctx context.Context, m *Main, g *globals) error {
	return m.withTokens(g, func(tokens *storage.Tokens) error {
		rotated, key, err := tokens.Rotate(ctx, c.Token)
		if err != nil {
			return tokenError(c.Token, err)
		}
		return m.printNewToken(g, rotated, key)
	})
}

// withTokens opens the token store of the configuration for one piece of work.
func (m *Main) withTokens(g *globals, work func(*storage.Tokens) error) error {
	cfg, err := m.loadConfig(g)
	if err != nil {
		return err
	}
	client, err := storage.OpenRedis(cfg.Redis.URL.Reveal(), nil)
	if err != nil {
		return fmt.Errorf("open redis: %w", err)
	}
	m.onClose(client.Close)
	tokens := storage.NewTokens(client, &storage.TokensOptions{Log: slog.New(slog.DiscardHandler)})
	defer tokens.Close()
	return work(tokens)
}

func (m *Main) printNewToken(g *globals, t storage.Token, key string) error {
	if g.JSON {
		return printJSON(m.Stdout, newToken{Token: t, Key: key})
	}
	if err := printFields(m.Stdout, append(tokenFields(t), [2]string{"key", key})); err != nil {
		return err
	}
	_, err := fmt.Fprintln(m.Stderr, "The key is shown only now; it is stored nowhere.")
	return err
}

func tokenError(name string, err error) error {
	if errors.Is(err, storage.ErrNotFound) {
		return fmt.Errorf("there is no token %q", name)
	}
	return err // it says what was being done
}

func tokenFields(t storage.Token) fields {
	number := func(n int) string {
		if n == 0 {
			return ""
		}
		return strconv.Itoa(n)
	}
	budget := ""
	if t.Budget != 0 {
		budget = strconv.FormatFloat(t.Budget, 'f', -1, 64)
	}
	return fields{
		{"name", t.Name},
		{"id", t.ID},
		{"hint", t.Hint},
		{"state", standing(t, time.Now())},
		{"group", t.Group},
		{"models", orAll(t.Models)},
		{"requests per minute", number(t.RequestsPerMinute)},
		{"tokens per minute", number(t.TokensPerMinute)},
		{"concurrency", number(t.Concurrency)},
		{"max tasks", number(t.MaxTasks)},
		{"max sockets", number(t.MaxSockets)},
		{"budget", budget},
		{"weight", number(t.Weight)},
		{"lane", t.Lane},
		{"expires", moment(t.Expires)},
		{"networks", strings.Join(t.Networks, ", ")},
		{"operations", strings.Join(t.Operations, ", ")},
		{"webhook url", t.WebhookURL},
		{"created", moment(t.CreatedAt)},
	}
}

// standing says in one word whether the token works.
func standing(t storage.Token, now time.Time) string {
	err := t.Usable(now)
	switch {
	case t.Revoked:
		return "revoked"
	case errors.Is(err, storage.ErrExpired):
		return "expired"
	case err != nil:
		return "disabled"
	case t.Seeded:
		return "active (file)"
	default:
		return "active"
	}
}

func orAll(names []string) string {
	if len(names) == 0 {
		return "*"
	}
	return strings.Join(names, ", ")
}

// parseExpiry reads a time as the file does, or a duration from now.
func parseExpiry(text string, now time.Time) (time.Time, error) {
	if d, err := time.ParseDuration(text); err == nil {
		if d <= 0 {
			return time.Time{}, errors.New("lies in the past")
		}
		return now.Add(d).UTC().Truncate(time.Second), nil
	}
	t, err := parseTime(text)
	if err == nil && !t.IsZero() && !t.After(now) {
		return time.Time{}, errors.New("lies in the past")
	}
	return t, err
}
