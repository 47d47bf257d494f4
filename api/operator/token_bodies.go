package operator

import (
	"context"
	"time"

	"github.com/danielgtaylor/huma/v2"

	"modelrelay/api/body"
	"modelrelay/api/edge"
	"modelrelay/providers"
	"modelrelay/providers/pricing"
	"modelrelay/providers/secret"
	"modelrelay/storage/tokens"
)

// Token is a token for operators.
type Token struct {
	Object string `json:"object" enum:"token"`
	ID     string `json:"id" doc:"Stable: rotation does not change it; for a token of the configuration file, its name"`
	Name   string `json:"name"`
	State  string `json:"state" enum:"active,disabled,expired,revoked"`
	Hint   string `json:"hint" doc:"The key's last characters"`

	Group              string     `json:"group"`
	Models             []string   `json:"models" nullable:"false" doc:"Public names with * patterns; none: every model of the group"`
	Operations         []string   `json:"operations" nullable:"false" doc:"Permitted operations; none: all"`
	Networks           []string   `json:"networks" nullable:"false" doc:"Permitted source networks, CIDR; none: every network"`
	Expires            *time.Time `json:"expires" doc:"When the token expires; null: never"`
	tokens.LimitChange            // all are present
	Budget             float64    `json:"budget" doc:"Money that the token may spend in total, in the currency of the prices; 0: no limit"`

	InForce Limits `json:"in_force" doc:"The limits in force: the token's own, otherwise the group's defaults, and never above the group's ceilings"`

	Spent    *pricing.Money `json:"spent,omitempty" doc:"Money spent of the budget, in the currency of the prices; absent without a budget"`
	Reserved *pricing.Money `json:"reserved,omitempty" doc:"Money of the budget that running calls and tasks have reserved, in the currency of the prices; absent without a budget"`

	Weight        int    `json:"weight" doc:"Share of a full channel's video jobs, and of a full worker's background calls, among the waiting tokens of a lane"`
	Lane          string `json:"lane" doc:"high, normal or low"`
	WebhookURL    string `json:"webhook_url" doc:"URL that receives the events of its tasks; empty: none"`
	WebhookSigned bool   `json:"webhook_signed" doc:"The token has a webhook secret"`
	// OldSecretsUntil has the times until which replaced secrets still sign.
	OldSecretsUntil []time.Time `json:"old_webhook_secrets_until,omitempty" doc:"When each previous webhook secret stops signing, the newest first"`

	Disabled  bool       `json:"disabled"`
	Seeded    bool       `json:"seeded" doc:"The token is in the configuration file and changes only there"`
	CreatedAt *time.Time `json:"created_at"`
	LastUsed  *time.Time `json:"last_used" doc:"When the ledger last recorded a call or the end of a task of the token; null: never, or before the gateway recorded this time"`
	Version   int64      `json:"version" doc:"Increases with each change. A change that sends it fails if the token has another version by then"`

	Key           string `json:"key,omitempty" doc:"The key; only in the answer that created it"`
	WebhookSecret string `json:"webhook_secret,omitempty" doc:"The webhook secret; only in the answer that created it"`
}

// TransformSchema declares that all limits of a token are present; in a change they are optional.
func (Token) TransformSchema(_ huma.Registry, s *huma.Schema) *huma.Schema { return withLimits(s) }

// newToken returns a token without the limits of its group.
func newToken(t tokens.Token, now time.Time) Token {
	token := Token{
		Object: "token", ID: t.ID, Name: t.Name, State: t.State(now), Hint: t.Hint, Group: t.Group,
		Models: orNone(t.Models), Operations: orNone(t.Operations), Networks: orNone(t.Networks), Expires: body.OrNull(t.Expires),
		LimitChange: tokens.AllLimits(t.Limits), Budget: t.Budget, Weight: t.Weight, Lane: t.Lane,
		WebhookURL: t.WebhookURL, WebhookSigned: t.WebhookSecret != "", Disabled: t.Disabled, Seeded: t.Seeded,
		CreatedAt: body.OrNull(t.CreatedAt), Version: t.Version,
	}
	for _, old := range t.OldWebhookSecrets {
		if now.Before(old.Until) {
			token.OldSecretsUntil = append(token.OldSecretsUntil, old.Until)
		}
	}
	return token
}

func (g GroupRules) shown(t tokens.Token, now time.Time) Token {
	token, inForce := newToken(t, now), g.InForce(t)
	token.InForce = Limits{tokens.AllLimits(inForce.Limits), inForce.Budget}
	return token
}

// complete adds the last use of tokens, and the money that tokens with a budget have spent and reserved. It hides what viewers must not
// read.
func (s *Service) complete(ctx context.Context, by Actor, tokens []Token) error {
	var all, ids []string
	hide := by.Role == edge.RoleViewer
	for i, token := range tokens {
		if hide {
			tokens[i].WebhookURL = receiverHost(token.WebhookURL)
		}
		all = append(all, token.ID)
		if token.InForce.Budget > 0 {
			ids = append(ids, token.ID)
		}
	}
	used, err := s.Money.LastUsed(ctx, all)
	if err != nil {
		return err
	}
	for i := range tokens {
		tokens[i].LastUsed = body.OrNull(used[tokens[i].ID])
	}
	if len(ids) == 0 {
		return nil
	}
	found, err := s.Money.Balances(ctx, ids)
	if err != nil {
		return err
	}
	for i := range tokens {
		if tokens[i].InForce.Budget > 0 {
			balance := found[tokens[i].ID]
			tokens[i].Spent, tokens[i].Reserved = new(pricing.Money(balance.Spent)), new(pricing.Money(balance.Reserved))
		}
	}
	return nil
}

// TokenChange has the fields of a token that an operator may set. Absent fields do not change.
type TokenChange struct {
	tokens.Change
	Expires       *string  `json:"expires,omitempty" doc:"Date or RFC 3339 time; empty: never" type:"future" placeholder:"WHEN"`
	WebhookSecret *string  `json:"webhook_secret,omitempty" doc:"Secret that signs the events: whsec_ and 24 to 64 bytes in Base64, or new for a generated secret, which is shown once. The previous secret also signs for one more day" placeholder:"SECRET"`
	_             struct{} `json:"-" additionalProperties:"false"`
}

// TokenCreate is a new token.
type TokenCreate struct {
	Name string `json:"name" minLength:"1" doc:"Name of the token; unique"`
	TokenChange
	_ struct{} `json:"-" additionalProperties:"false"`
}

// TokenUpdate is a change of a token, based on a version of it.
type TokenUpdate struct {
	TokenChange
	Version *int64   `json:"version,omitempty" minimum:"0" doc:"The version that the change is based on; the answer is 409 if the token has another version. Absent: any version"`
	_       struct{} `json:"-" additionalProperties:"false"`
}

// NewSecret is the value of WebhookSecret that requests a generated secret.
const NewSecret = "new"

// secret returns a generated webhook secret if the change requests one, else "".
func (c *TokenChange) secret() string {
	if c.WebhookSecret == nil || *c.WebhookSecret != NewSecret {
		return ""
	}
	return tokens.NewWebhookSecret().Reveal()
}

// apply sets the present fields of the token. made is its generated webhook secret, "" for none.
func (c *TokenChange) apply(t *tokens.Token, made string) error {
	c.Apply(t)
	switch {
	case made != "":
		t.WebhookSecret = secret.Text(made)
	case c.WebhookSecret != nil:
		t.WebhookSecret = secret.Text(*c.WebhookSecret)
	}
	if c.Expires == nil {
		return nil
	}
	expires, err := edge.Moment("expires", *c.Expires)
	if err == nil && !expires.IsZero() && !expires.After(time.Now()) {
		err = providers.InvalidField("expires", "Invalid request: 'expires' must be in the future.")
	}
	t.Expires = expires
	return err
}
