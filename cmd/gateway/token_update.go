package main

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"time"

	"modelrelay/storage"
)

// tokenUpdateCmd changes what is named and leaves the rest.
type tokenUpdateCmd struct {
	Token             string   `arg:"" help:"Name or id."`
	Group             *string  `help:"Which channels it may use." placeholder:"NAME"`
	Models            *string  `help:"Public model names with * patterns and commas between; empty: every model of the group." placeholder:"LIST"`
	RequestsPerMinute *int     `help:"0: no limit." placeholder:"N"`
	TokensPerMinute   *int     `help:"Model tokens, input and output; 0: no limit." placeholder:"N"`
	Concurrency       *int     `help:"Calls at a time; 0: no limit." placeholder:"N"`
	MaxTasks          *int     `help:"Unfinished video tasks; 0: no limit." placeholder:"N"`
	MaxSockets        *int     `help:"Open realtime connections; 0: no limit." placeholder:"N"`
	Budget            *float64 `help:"Money, in the unit of prices; 0: no limit." placeholder:"N"`
	Weight            *int     `help:"Share of a full channel's video jobs among the tokens of a lane that wait." placeholder:"N"`
	Lane              *string  `help:"high, normal or low." placeholder:"LANE"`
	Expires           *string  `help:"Date, RFC 3339 time, or duration from now such as 720h; empty: never." placeholder:"WHEN"`
	Networks          *string  `help:"Source addresses or CIDR ranges with commas between; empty: any." placeholder:"LIST"`
	Operations        *string  `help:"relay, video, realtime, with commas between; empty: everything." placeholder:"LIST"`
	WebhookURL        *string  `name:"webhook-url" help:"Where its video events go; empty: nowhere." placeholder:"URL"`
	WebhookSecret     *string  `help:"Secret that signs them, whsec_… or \"new\"; the one before signs beside it for a day." placeholder:"SECRET"`
	Disabled          *bool    `help:"--disabled=true refuses it from now on, --disabled=false takes it again." placeholder:"BOOL"`
}

// errNothingToDo says that no flag names a change.
var errNothingToDo = errors.New("nothing to change: name at least one flag")

// Run changes the token.
func (c *tokenUpdateCmd) Run(ctx context.Context, m *Main, g *globals) error {
	if *c == (tokenUpdateCmd{Token: c.Token}) {
		return &UsageError{Err: errNothingToDo}
	}
	cfg, err := m.loadConfig(g)
	if err != nil {
		return err
	}
	made := newToken{}
	if c.WebhookSecret != nil && *c.WebhookSecret == madeHere {
		made.NewWebhookSecret = storage.NewWebhookSecret().Reveal()
		c.WebhookSecret = &made.NewWebhookSecret
	}
	var expires time.Time
	if c.Expires != nil {
		if expires, err = parseExpiry(*c.Expires, time.Now()); err != nil {
			return &UsageError{Err: fmt.Errorf("--expires: %w", err)}
		}
	}
	return m.withTokens(g, func(tokens *storage.Tokens) error {
		made.Token, err = tokens.Update(ctx, c.Token, func(t *storage.Token) error {
			c.apply(t, expires)
			checked, problem := checkToken(*t, cfg.Webhooks)
			if problem != nil {
				return flagError(problem)
			}
			*t = checked
			return nil
		})
		if usage := (*UsageError)(nil); errors.As(err, &usage) {
			return usage
		}
		if err != nil {
			return tokenError(c.Token, err)
		}
		return m.printNewToken(g, made)
	})
}

// apply puts what the flags say into the token.
func (c *tokenUpdateCmd) apply(t *storage.Token, expires time.Time) {
	set(&t.Group, c.Group)
	set(&t.RequestsPerMinute, c.RequestsPerMinute)
	set(&t.TokensPerMinute, c.TokensPerMinute)
	set(&t.Concurrency, c.Concurrency)
	set(&t.MaxTasks, c.MaxTasks)
	set(&t.MaxSockets, c.MaxSockets)
	set(&t.Budget, c.Budget)
	set(&t.Weight, c.Weight)
	set(&t.Lane, c.Lane)
	set(&t.WebhookURL, c.WebhookURL)
	set(&t.Disabled, c.Disabled)
	if c.Expires != nil {
		t.Expires = expires
	}
	if c.WebhookSecret != nil {
		t.WebhookSecret = storage.Secret(*c.WebhookSecret)
	}
	setList(&t.Models, c.Models)
	setList(&t.Networks, c.Networks)
	setList(&t.Operations, c.Operations)
}

// set takes a flag's value, if the flag was given.
func set[T any](field, flag *T) {
	if flag != nil {
		*field = *flag
	}
}

func setList(field *[]string, flag *string) {
	switch {
	case flag == nil:
	case strings.TrimSpace(*flag) == "":
		*field = nil
	default:
		*field = strings.Split(*flag, ",")
		for i, item := range *field {
			(*field)[i] = strings.TrimSpace(item)
		}
	}
}

// flagError is a problem of a token's field as the flag's.
func flagError(problem *Problem) error {
	return &UsageError{Err: fmt.Errorf("--%s: %s", strings.ReplaceAll(problem.Key, "_", "-"), problem.Message)}
}
