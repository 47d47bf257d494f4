package cli

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"net/url"
	"strconv"
	"strings"
	"time"

	"modelrelay/api/operator"
	"modelrelay/providers"
	"modelrelay/storage/tokens"
)

// Token is gateway token. It requires no running gateway.
type Token struct {
	Create tokenCreateCmd `cmd:"" help:"Create a token and print its key once."`
	List   tokenListCmd   `cmd:"" help:"List the tokens."`
	Show   tokenShowCmd   `cmd:"" help:"Show one token."`
	Update tokenUpdateCmd `cmd:"" help:"Change a token's limits, permissions or webhook. Takes effect within a second."`
	Revoke tokenRevokeCmd `cmd:"" help:"Revoke a token permanently. Takes effect within a second."`
	Rotate tokenRotateCmd `cmd:"" help:"Give a token a new key or webhook secret and print it once."`
	Groups tokenGroupsCmd `cmd:"" help:"List the groups of tokens, with their limits in the configuration file."`
}

func tokenPath(token string) string { return "/admin/tokens/" + url.PathEscape(token) }

type tokenCreateCmd struct {
	remote

	Name string `required:"" help:"Unique name."`
	operator.TokenChange
}

// Run creates the token.
func (c *tokenCreateCmd) Run(ctx context.Context, p *Program) error {
	return p.changeToken(ctx, http.MethodPost, "/admin/tokens", operator.TokenCreate{Name: c.Name, TokenChange: c.TokenChange})
}

// changeToken changes a token, and prints it with the secrets that are shown only once.
func (p *Program) changeToken(ctx context.Context, method, path string, body any) error {
	var made operator.Token
	return ofFlag(p.callShown(ctx, method, path, body, &made, func() error {
		shown := tokenFields(made)
		var once []string
		for _, secret := range []struct{ name, value string }{{"key", made.Key}, {"webhook secret", made.WebhookSecret}} {
			if secret.value != "" {
				shown, once = append(shown, [2]string{secret.name, secret.value}), append(once, secret.name)
			}
		}
		if err := printFields(p.Stdout, shown); err != nil || len(once) == 0 {
			return err
		}
		_, err := fmt.Fprintf(p.Stderr, "Take note of the %s: shown only now.\n", strings.Join(once, " and "))
		return err
	}))
}

type tokenListCmd struct {
	remote
	operator.TokenQuery

	Limit int `help:"List at most this many tokens; 0: all." default:"0"`
}

// Run lists tokens.
func (c *tokenListCmd) Run(ctx context.Context, p *Program) error {
	return printPages(ctx, p, "/admin/tokens", c.TokenQuery, c.Limit, []string{"NAME", "ID", "KEY", "GROUP", "MODELS", "STATE", "CREATED"},
		func(t operator.Token) []string {
			return []string{t.Name, t.ID, t.Hint, t.Group, orAll(t.Models), stateOf(t), moment(of(t.CreatedAt))}
		})
}

// namedToken is embedded by the commands for one token.
type namedToken struct {
	remote

	Token string `arg:"" help:"Name or id."`
}

type tokenShowCmd struct{ namedToken }

// Run shows one token.
func (c *tokenShowCmd) Run(ctx context.Context, p *Program) error {
	var t operator.Token
	return p.askShown(ctx, tokenPath(c.Token), nil, &t, func() error {
		list := tokenFields(t)
		if t.Spent != nil {
			list = append(list, [2]string{"spent", t.Spent.String()}, [2]string{"reserved", t.Reserved.String()})
		}
		return printFields(p.Stdout, list)
	})
}

// tokenUpdateCmd changes the fields of the given flags.
type tokenUpdateCmd struct {
	namedToken
	operator.TokenChange
}

// errNothingToDo reports that no flag names a change.
var errNothingToDo = errors.New("nothing to change: name at least one flag")

// Run changes the token.
func (c *tokenUpdateCmd) Run(ctx context.Context, p *Program) error {
	if c.TokenChange == (operator.TokenChange{}) {
		return &UsageError{Err: errNothingToDo}
	}
	return p.changeToken(ctx, http.MethodPatch, tokenPath(c.Token), operator.TokenUpdate{TokenChange: c.TokenChange})
}

type tokenRevokeCmd struct{ namedToken }

// Run revokes the token.
func (c *tokenRevokeCmd) Run(ctx context.Context, p *Program) error {
	var t operator.Token
	return p.callShown(ctx, http.MethodDelete, tokenPath(c.Token), nil, &t, func() error {
		_, err := fmt.Fprintf(p.Stdout, "revoked %s (%s)\n", providers.Shown(t.Name), t.ID)
		if err == nil && t.Seeded {
			_, err = fmt.Fprintln(p.Stderr, "The token is in the configuration file: remove it there. With another key there it works again.")
		}
		return err
	})
}

type tokenRotateCmd struct {
	namedToken

	WebhookSecret bool          `help:"Rotate the webhook secret instead of the key."`
	Overlap       time.Duration `help:"How long the previous webhook secret also signs events." default:"24h"`
}

// Run gives the token a new key or a new webhook secret.
func (c *tokenRotateCmd) Run(ctx context.Context, p *Program) error {
	if c.Overlap < 0 {
		return &UsageError{Err: errors.New("--overlap: is negative")}
	}
	if c.WebhookSecret {
		return p.changeToken(ctx, http.MethodPost, tokenPath(c.Token)+"/rotate-webhook-secret",
			operator.SecretRotation{Overlap: new(int(c.Overlap / time.Second))})
	}
	return p.changeToken(ctx, http.MethodPost, tokenPath(c.Token)+"/rotate", nil)
}

// tokenFields returns a token with the limits in force, and marks limits of its group.
func tokenFields(t operator.Token) fields {
	ofGroup := func(text string, is bool) string {
		if is {
			return text + " (group)"
		}
		return text
	}
	budget := ""
	if t.InForce.Budget != 0 {
		budget = ofGroup(strconv.FormatFloat(t.InForce.Budget, 'f', -1, 64), t.Budget != t.InForce.Budget)
	}
	list := fields{{"name", t.Name}, {"id", t.ID}, {"hint", t.Hint}, {"state", stateOf(t)}, {"group", t.Group}, {"models", orAll(t.Models)}}
	own := tokens.ListLimits(t.All())
	for i, limit := range tokens.ListLimits(t.InForce.All()) {
		list = append(list, [2]string{strings.ReplaceAll(limit.Key, "_", " "), ofGroup(limitText(limit), limit.Value != own[i].Value)})
	}
	signers := ""
	if t.WebhookSigned {
		signers = "its secret"
		for _, until := range t.OldSecretsUntil {
			signers += ", one before until " + moment(until)
		}
	}
	return append(list, fields{
		{"budget", budget},
		{"weight", count(t.Weight)},
		{"lane", t.Lane},
		{"expires", moment(of(t.Expires))},
		{"networks", strings.Join(t.Networks, ", ")},
		{"operations", strings.Join(t.Operations, ", ")},
		{"webhook url", t.WebhookURL},
		{"events signed by", signers},
		{"created", moment(of(t.CreatedAt))},
	}...)
}

// limitText formats a limit in force; "" for one that was never set.
func limitText(limit tokens.NamedLimit) string {
	switch {
	case limit.Value == tokens.Unlimited:
		return "no limit"
	case limit.Value == 0 && limit.Default > 0:
		return strconv.Itoa(limit.Default) + " (default)"
	}
	return count(limit.Value)
}

// stateOf returns the token's state, with a mark for tokens of the file.
func stateOf(t operator.Token) string {
	if t.State == "active" && t.Seeded {
		return "active (file)"
	}
	return t.State
}

func orAll(names []string) string {
	if len(names) == 0 {
		return "*"
	}
	return strings.Join(names, ", ")
}

type tokenGroupsCmd struct{ remote }

// Run lists the groups.
func (c *tokenGroupsCmd) Run(ctx context.Context, p *Program) error {
	return printPages(ctx, p, "/admin/groups", nil, 0, []string{"GROUP", "CHANNELS", "DEFAULTS", "CEILINGS", "FORBIDS"},
		func(group operator.Group) []string {
			return []string{
				group.Name, strings.Join(group.Channels, ", "), limitWords(group.Defaults), limitWords(group.Ceilings),
				strings.Join(group.Forbid, ", "),
			}
		})
}

func limitWords(l operator.Limits) string {
	var words []string
	for _, limit := range tokens.ListLimits(l.All()) {
		if limit.Value != 0 {
			words = append(words, limit.Key+" "+strconv.Itoa(limit.Value))
		}
	}
	if l.Budget != 0 {
		words = append(words, "budget "+strconv.FormatFloat(l.Budget, 'f', -1, 64))
	}
	return strings.Join(words, ", ")
}
