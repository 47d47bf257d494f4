package operator

import (
	"context"
	"errors"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/secret"
	"modelrelay/storage"
	"modelrelay/storage/audit"
	"modelrelay/storage/slots"
	"modelrelay/storage/tokens"
)

// TokenStore creates and changes tokens; tokens.Store implements it.
type TokenStore interface {
	Page(ctx context.Context, q tokens.PageQuery) (tokens.Page, error)
	Count(ctx context.Context) (int64, error)
	Find(ctx context.Context, idOrName string) (tokens.Token, error)
	Create(ctx context.Context, token tokens.Token) (tokens.Token, string, error)
	Update(ctx context.Context, idOrName string, change func(*tokens.Token) error) (tokens.Token, error)
	Revoke(ctx context.Context, idOrName string) error
	Rotate(ctx context.Context, idOrName string) (tokens.Token, string, error)
	RotateWebhookSecret(ctx context.Context, idOrName string, overlap time.Duration) (tokens.Token, secret.Text, error)
}

// DefaultGroup is the group of a token without a group.
const DefaultGroup = "default"

// TokenName identifies one token.
type TokenName struct {
	Token string `path:"token" doc:"Id or name"`
}

// CreateToken is the input of Service.CreateToken.
type CreateToken struct{ Body TokenCreate }

// UpdateToken is the input of Service.UpdateToken.
type UpdateToken struct {
	TokenName

	Body TokenUpdate
}

// RotateSecret is the input of Service.RotateWebhookSecret.
type RotateSecret struct {
	TokenName

	Body *SecretRotation
}

// SecretRotation has the options of the replacement of a webhook secret.
type SecretRotation struct {
	Overlap *int     `json:"overlap_seconds,omitempty" minimum:"0" maximum:"2592000" doc:"How long the previous secret signs together with the new one; a day by default"`
	_       struct{} `json:"-" additionalProperties:"false"`
}

// TokenID returns the stable id of a token by id or name. It returns an unknown name unchanged: it may be a former name.
func (s *Service) TokenID(ctx context.Context, idOrName string) (string, error) {
	if idOrName == "" {
		return "", nil
	}
	if err := plainFilters("token", idOrName); err != nil {
		return "", err
	}
	token, err := s.Tokens.Find(ctx, idOrName)
	switch {
	case errors.Is(err, storage.ErrNotFound):
		return idOrName, nil
	case err != nil:
		return "", StoreFault("token", idOrName, err)
	}
	return token.ID, nil
}

// shown returns a token for the actor, or the fault of err, which names the token.
func (s *Service) shown(ctx context.Context, by Actor, name string, token tokens.Token, err error) (Token, error) {
	if err != nil {
		return Token{}, StoreFault("token", name, err)
	}
	one := []Token{s.Groups()[token.Group].shown(token, time.Now())}
	_ = s.complete(ctx, by, one) // the action is done; its result does not depend on this
	return one[0], nil
}

// Token returns a token.
func (s *Service) Token(ctx context.Context, by Actor, in *TokenName) (Token, error) {
	if err := reads(by, nil); err != nil {
		return Token{}, err
	}
	token, err := s.Tokens.Find(ctx, in.Token)
	return s.shown(ctx, by, in.Token, token, err)
}

// CreateToken creates a token. The result has its key.
func (s *Service) CreateToken(ctx context.Context, by Actor, in *CreateToken) (Token, error) {
	return change(ctx, s, by, "create_token", in.Body.Name, in, func(entry *audit.Entry) (Token, error) {
		made := in.Body.secret()
		token := tokens.Token{Name: in.Body.Name, Group: DefaultGroup, Weight: 1, Lane: slots.LaneNormal}
		plain := token
		err := in.Body.apply(&token, made)
		if err == nil {
			token, err = s.CheckToken(nil, token)
		}
		var key string
		if err == nil {
			if token, key, err = s.Tokens.Create(ctx, token); err == nil {
				entry.Subject, entry.Changes = token.ID, tokenChanges(plain, token)
			}
		}
		shown, err := s.shown(ctx, by, in.Body.Name, token, err)
		shown.Key, shown.WebhookSecret = key, made
		return shown, err
	})
}

// UpdateToken changes a token, in every process within a second.
func (s *Service) UpdateToken(ctx context.Context, by Actor, in *UpdateToken) (Token, error) {
	return change(ctx, s, by, "update_token", in.Token, in, func(entry *audit.Entry) (Token, error) {
		made := in.Body.secret()
		var before tokens.Token
		token, err := s.Tokens.Update(ctx, in.Token, func(token *tokens.Token) error {
			before = *token
			err := in.Body.madeFrom(*token)
			if err == nil {
				err = in.Body.apply(token, made)
			}
			if err == nil {
				*token, err = s.CheckToken(&before, *token)
			}
			return err
		})
		if err == nil {
			entry.Subject, entry.Changes = token.ID, tokenChanges(before, token)
		}
		shown, err := s.shown(ctx, by, in.Token, token, err)
		shown.WebhookSecret = made
		return shown, err
	})
}

// RevokeToken ends a token permanently, in every process within a second.
func (s *Service) RevokeToken(ctx context.Context, by Actor, in *TokenName) (Token, error) {
	return change(ctx, s, by, "revoke_token", in.Token, nil, func(entry *audit.Entry) (Token, error) {
		token, err := s.Tokens.Find(ctx, in.Token)
		if err == nil {
			err = s.Tokens.Revoke(ctx, token.ID)
			before := token
			token.Disabled, token.Revoked = true, true
			entry.Subject, entry.Changes = token.ID, tokenChanges(before, token)
		}
		return s.shown(ctx, by, in.Token, token, err)
	})
}

// RotateToken gives a token a new key, which is in the result. The old key is invalid within a second.
func (s *Service) RotateToken(ctx context.Context, by Actor, in *TokenName) (Token, error) {
	return change(ctx, s, by, "rotate_token", in.Token, nil, func(entry *audit.Entry) (Token, error) {
		token, key, err := s.Tokens.Rotate(ctx, in.Token)
		if err == nil {
			entry.Subject, entry.Changes = token.ID, []audit.Change{audit.Set("hint", token.Hint)}
		}
		shown, err := s.shown(ctx, by, in.Token, token, err)
		shown.Key = key
		return shown, err
	})
}

// RotateWebhookSecret gives a token a new webhook secret, which is in the result.
func (s *Service) RotateWebhookSecret(ctx context.Context, by Actor, in *RotateSecret) (Token, error) {
	return change(ctx, s, by, "rotate_webhook_secret", in.Token, in, func(entry *audit.Entry) (Token, error) {
		overlap := tokens.SecretOverlap
		if in.Body != nil && in.Body.Overlap != nil {
			overlap = time.Duration(*in.Body.Overlap) * time.Second
		}
		token, made, err := s.Tokens.RotateWebhookSecret(ctx, in.Token, overlap)
		if err == nil {
			entry.Subject = token.ID
		}
		shown, err := s.shown(ctx, by, in.Token, token, err)
		shown.WebhookSecret = made.Reveal()
		return shown, err
	})
}

// tokenChanges returns the changed fields of a token for the audit log, without secrets and without the path of a webhook's address.
func tokenChanges(before, after tokens.Token) []audit.Change {
	now := time.Now()
	plain := func(t tokens.Token) Token {
		t.WebhookURL, t.OldWebhookSecrets = receiverHost(t.WebhookURL), nil
		return newToken(t, now)
	}
	var changes []audit.Change
	for _, c := range audit.Diff(plain(before), plain(after)) {
		if c.Field != "version" && c.Field != "created_at" { // the entry has its own time
			changes = append(changes, c)
		}
	}
	if before.WebhookSecret != after.WebhookSecret {
		changes = append(changes, audit.Set("webhook_secret", "changed"))
	}
	return changes
}

// madeFrom returns nil if the token still has the version on which the change is based.
func (c *TokenUpdate) madeFrom(from tokens.Token) error {
	if c.Version == nil || *c.Version == from.Version {
		return nil
	}
	return providers.Faultf(providers.Conflict, "The token %q was changed meanwhile: it has version %d now, and this change was made from version %d. Read it and change it again.",
		from.Name, from.Version, *c.Version)
}
