package tokens

import (
	"context"
	"slices"
	"time"
)

// Change is an operator's change of a token; a nil field leaves the value unchanged. It defines the commands' flags and the document of
// /admin: doc is the text of both, placeholder and type are for the flag parser.
type Change struct {
	Group      *string   `json:"group,omitempty" minLength:"1" placeholder:"NAME" doc:"Which channels it may use; of a new token: default"`
	Models     *[]string `json:"models,omitempty" type:"list" placeholder:"LIST" doc:"Public model names with * patterns; empty: every model of the group"`
	Operations *[]string `json:"operations,omitempty" type:"list" placeholder:"LIST" doc:"What it may do: relay (calls, also in the background), video (videos), realtime; empty: everything"`
	Networks   *[]string `json:"networks,omitempty" type:"list" placeholder:"LIST" doc:"Addresses or CIDR ranges its connections come from; empty: anywhere"`
	LimitChange
	Budget     *float64 `json:"budget,omitempty" placeholder:"N" doc:"Money, in the unit of prices; 0: no limit"`
	Weight     *int     `json:"weight,omitempty" placeholder:"N" doc:"Share of a full channel's video jobs, and of a full worker's background calls, among the tokens of a lane that wait; of a new token: 1"`
	Lane       *string  `json:"lane,omitempty" placeholder:"LANE" doc:"high, normal or low: its tasks wait while a task waits in an earlier lane; of a new token: normal"`
	WebhookURL *string  `json:"webhook_url,omitempty" name:"webhook-url" placeholder:"URL" doc:"Where the events of its tasks go; empty: nowhere"`
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
