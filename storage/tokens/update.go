package tokens

import (
	"context"
	"slices"
	"time"
)

// Change is an operator's change of a token; a nil field leaves the value unchanged. It defines the commands' flags and the document of
// /admin: doc is the text of both, placeholder and type are for the flag parser.
type Change struct {
	Group      *string   `json:"group,omitempty" minLength:"1" placeholder:"NAME" doc:"Group of channels that the token may use; for a new token: default"`
	Models     *[]string `json:"models,omitempty" type:"list" placeholder:"LIST" doc:"Public model names with * patterns; empty: every model of the group"`
	Operations *[]string `json:"operations,omitempty" type:"list" placeholder:"LIST" doc:"Operations of the token: relay (calls, also in the background), video (videos), realtime; empty: all"`
	Networks   *[]string `json:"networks,omitempty" type:"list" placeholder:"LIST" doc:"Addresses or CIDR ranges from which the token may be used; empty: any"`
	LimitChange
	Budget     *float64 `json:"budget,omitempty" placeholder:"N" doc:"Money that the token may spend in total, in the currency of prices; 0: no limit"`
	Weight     *int     `json:"weight,omitempty" placeholder:"N" doc:"Share of the video jobs of a full channel, and of the background calls of a full worker, among the waiting tokens of a lane; for a new token: 1"`
	Lane       *string  `json:"lane,omitempty" placeholder:"LANE" doc:"high, normal or low; a task waits while tasks of a higher lane wait. For a new token: normal"`
	WebhookURL *string  `json:"webhook_url,omitempty" name:"webhook-url" placeholder:"URL" doc:"URL that receives the events of its tasks; empty: none"`
	Disabled   *bool    `json:"disabled,omitempty" placeholder:"BOOL" doc:"Refuse it (true) or accept it again (false)"`
}

// Apply applies the change to the token without checks. The token then shares the change's lists.
func (c Change) Apply(t *Token) {
	set(&t.Group, c.Group)
	set(&t.Models, c.Models)
	set(&t.Operations, c.Operations)
	set(&t.Networks, c.Networks)
	applyLimits(c.LimitChange, &t.Limits)
	set(&t.Budget, c.Budget)
	set(&t.Weight, c.Weight)
	set(&t.Lane, c.Lane)
	set(&t.WebhookURL, c.WebhookURL)
	set(&t.Disabled, c.Disabled)
}

// set assigns value unless it is nil.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Update stores what change does to a token's fields of Change, expiry and webhook secret, and discards other changes. This process applies
// it at once, all others within a second. change is called again if another process was faster; its error ends Update. A replaced
// webhook secret signs with its successor for SecretOverlap. ErrSeeded: the token is in the configuration file. ErrRevoked: it is revoked.
func (t *Store) Update(ctx context.Context, idOrName string, change func(*Token) error) (Token, error) {
	return t.edit(ctx, "change token", idOrName, func(next *replacement) error {
		token, old := &next.token, next.old.token
		if err := token.changeable(); err != nil {
			return err
		}
		token.Models, token.Networks, token.Operations = slices.Clone(token.Models), slices.Clone(token.Networks), slices.Clone(token.Operations)
		if err := change(token); err != nil {
			return err
		}
		token.ID, token.Name, token.Hint, token.CreatedAt = old.ID, old.Name, old.Hint, old.CreatedAt
		token.Seeded, token.Revoked, token.OldWebhookSecrets = false, false, old.OldWebhookSecrets
		if token.WebhookSecret != old.WebhookSecret {
			now := time.Now()
			token.succeed(old, now, now.Add(SecretOverlap))
		}
		return nil
	})
}
