package tokens

import (
	"context"
	"crypto/rand"
	"encoding/base64"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"modelrelay/providers/secret"
)

const (
	// SecretOverlap is how long a replaced webhook secret signs with its successor by default: receivers have a day to adopt the new one.
	SecretOverlap = 24 * time.Hour
	// maxOldSecrets bounds the signatures of one event; of more replaced secrets, the oldest stop signing.
	maxOldSecrets = 3
	// secretPrefix begins every webhook secret.
	secretPrefix = "whsec_"
	// minSecret and maxSecret bound the length of a key in bytes, as in Standard Webhooks.
	minSecret, maxSecret = 24, 64
	// newSecret is the length of a new key in bytes.
	newSecret = 32
)

// ErrRevoked reports that an operator has revoked the token.
var ErrRevoked = errors.New("token is revoked")

// OldSecret is a replaced webhook secret that signs until Until.
type OldSecret struct {
	Secret secret.Text `json:"secret"`
	Until  time.Time   `json:"until"`
}

// Webhook is the receiver of the events of a token's tasks, with the secrets that sign them.
type Webhook struct {
	// URL is "" for a token without a webhook; a task may still name one.
	URL string
	// Secrets all sign each event, the current one first; none: nothing can be signed.
	Secrets []secret.Text
}

// NewWebhookSecret makes a secret: "whsec_" and 32 random bytes in Base64.
func NewWebhookSecret() secret.Text {
	var b [newSecret]byte
	_, _ = rand.Read(b[:]) // never fails: the program crashes instead
	return secret.Text(secretPrefix + base64.StdEncoding.EncodeToString(b[:]))
}

// WebhookKey decodes the key of a webhook secret: "whsec_" and 24 to 64 bytes in Base64. The error does not contain the secret.
func WebhookKey(of secret.Text) ([]byte, error) {
	text, ok := strings.CutPrefix(of.Reveal(), secretPrefix)
	if !ok {
		return nil, errors.New("must be whsec_ and 24 to 64 bytes in Base64")
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	// The decoder ignores line breaks; a receiver's library may not.
	if err != nil || len(b) < minSecret || len(b) > maxSecret || base64.StdEncoding.EncodeToString(b) != text {
		return nil, errors.New("must have 24 to 64 bytes in Base64 after whsec_")
	}
	return b, nil
}

// webhook returns the token's webhook at a time.
func (t *Token) webhook(now time.Time) Webhook {
	w := Webhook{URL: t.WebhookURL}
	if t.WebhookSecret != "" {
		w.Secrets = append(w.Secrets, t.WebhookSecret)
	}
	for _, old := range t.OldWebhookSecrets {
		if now.Before(old.Until) {
			w.Secrets = append(w.Secrets, old.Secret)
		}
	}
	return w
}

// succeed sets OldWebhookSecrets: the secret that t has replaced, which signs until then, and the token's old secrets that still sign.
func (t *Token) succeed(before Token, now, until time.Time) {
	var old []OldSecret
	if before.WebhookSecret != "" && until.After(now) {
		old = append(old, OldSecret{Secret: before.WebhookSecret, Until: until.UTC().Truncate(time.Second)})
	}
	old = append(old, before.OldWebhookSecrets...)
	old = slices.DeleteFunc(old, func(o OldSecret) bool { return o.Secret == t.WebhookSecret || !now.Before(o.Until) })
	t.OldWebhookSecrets = old[:min(len(old), maxOldSecrets)]
	if len(old) == 0 {
		t.OldWebhookSecrets = nil
	}
}

// Webhook returns the webhook of a token by its id, not by its name. A token of the configuration file has it even while Redis is
// unavailable or empty, but without replaced secrets. A disabled or expired token still has it, because its tasks continue.
// storage.ErrNotFound: there is no such token. ErrRevoked: it is revoked. storage.ErrUnavailable: Redis is unavailable, and the token is
// not in the file.
func (t *Store) Webhook(ctx context.Context, id string) (Webhook, error) {
	r, err := t.records.byID(ctx, id)
	if err != nil {
		if seed, _, ok := t.seeds.byID(id); ok {
			r.token, err = seed, nil
		}
	}
	if err == nil && r.token.Revoked {
		err = ErrRevoked
	}
	if err != nil {
		return Webhook{}, fmt.Errorf("webhook of token %q: %w", id, err)
	}
	return r.token.webhook(time.Now()), nil
}

// RotateWebhookSecret gives a token a new webhook secret, or its first, and returns it. The previous secret signs too during overlap.
// ErrSeeded: the secret is in the configuration file, and is changed there. ErrDisabled, ErrRevoked: the state of the token.
func (t *Store) RotateWebhookSecret(ctx context.Context, idOrName string, overlap time.Duration) (Token, secret.Text, error) {
	secret := NewWebhookSecret()
	rotated, err := t.edit(ctx, "rotate the webhook secret of token", idOrName, func(next *replacement) error {
		now := time.Now()
		next.token.WebhookSecret = secret
		next.token.succeed(next.old.token, now, now.Add(overlap))
		return next.token.rotatable()
	})
	if err != nil {
		return Token{}, "", err
	}
	return rotated, secret, nil
}
