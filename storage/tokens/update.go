package tokens

import (
	"context"
	"fmt"
	"slices"
	"time"
)

// Change is what an operator may set of a token; what is nil stays as it is. The forms in which operators name
// changes, a document and the flags of a command, have these fields, these types and this order: they are converted.
type Change struct {
	Group      *string
	Models     *[]string
	Operations *[]string
	Networks   *[]string
	LimitChange
	Budget     *float64
	Weight     *int
	Lane       *string
	WebhookURL *string
	Disabled   *bool
}

// Apply puts what is there into the token. It checks nothing, and the token's lists are the change's afterwards.
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

// set takes a value that is there.
func set[T any](field, value *T) {
	if value != nil {
		*field = *value
	}
}

// Update changes a token as change says: what a Change holds, its expiry and its webhook secret. It holds here at once and everywhere within a second. Key, id, name and the rest stay,
// whatever change does to them; it is called again when somebody else was faster, and its error ends the matter. A
// webhook secret that is replaced goes on signing beside its successor for SecretOverlap. ErrSeeded: the token stands in
// the configuration file. ErrRevoked: it is revoked.
func (t *Store) Update(ctx context.Context, idOrName string, change func(*Token) error) (Token, error) {
	updated, err := t.edit(ctx, idOrName, func(r record) (replacement, error) {
		switch {
		case r.token.Revoked:
			return replacement{}, ErrRevoked
		case r.token.Seeded:
			return replacement{}, ErrSeeded
		}
		token := r.token
		token.Models, token.Networks, token.Operations = slices.Clone(token.Models), slices.Clone(token.Networks), slices.Clone(token.Operations)
		if err := change(&token); err != nil {
			return replacement{}, err
		}
		token.ID, token.Name, token.Hint, token.CreatedAt = r.token.ID, r.token.Name, r.token.Hint, r.token.CreatedAt
		token.Seeded, token.Revoked, token.OldWebhookSecrets = false, false, r.token.OldWebhookSecrets
		if token.WebhookSecret != r.token.WebhookSecret {
			now := time.Now()
			token.succeed(r.token, now, now.Add(SecretOverlap))
		}
		return replacement{old: r, index: r.sum.String(), sum: r.sum, token: token}, nil
	})
	if err != nil {
		return Token{}, fmt.Errorf("change token %q: %w", idOrName, err)
	}
	return updated, nil
}
