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
	// SecretOverlap is how long a webhook secret that was replaced signs with its successor, unless the caller
	// sets another time: receivers have a day to take the new one.
	SecretOverlap = 24 * time.Hour
	// maxOldSecrets bounds the signatures of one event; of more replaced secrets the oldest stop signing.
	maxOldSecrets = 3
	// secretPrefix begins every webhook secret.
	secretPrefix = "whsec_"
	// minSecret and maxSecret are the lengths in bytes that Standard Webhooks gives a key.
	minSecret, maxSecret = 24, 64
	// newSecret is the length in bytes of a key made here.
	newSecret = 32
)

// ErrRevoked is returned for a token that an operator ended permanently.
var ErrRevoked = errors.New("token is revoked")

// OldSecret is a webhook secret that was replaced and still signs for a while.
type OldSecret struct {
	Secret secret.Text `json:"secret"`
	Until  time.Time   `json:"until"`
}

// Webhook is where the events of a token's tasks go and what signs them.
type Webhook struct {
	// URL is "" for a token without a webhook of its own; a task may still name one.
	URL string
	// Secrets all sign, the current one first; none: nothing can be signed.
	Secrets []secret.Text
}

// NewWebhookSecret makes a secret: "whsec_" and 32 random bytes in Base64.
func NewWebhookSecret() secret.Text {
	var b [newSecret]byte
	_, _ = rand.Read(b[:]) // never fails: the program ends instead
	return secret.Text(secretPrefix + base64.StdEncoding.EncodeToString(b[:]))
}

// WebhookKey is the key that a webhook secret stands for: "whsec_" and 24 to 64 bytes in Base64. The error does not repeat it.
func WebhookKey(of secret.Text) ([]byte, error) {
	text, ok := strings.CutPrefix(of.Reveal(), secretPrefix)
	if !ok {
		return nil, errors.New("wants whsec_ and 24 to 64 bytes in Base64")
	}
	b, err := base64.StdEncoding.Strict().DecodeString(text)
	// The decoder passes over line ends, which a receiver's library may not.
	if err != nil || len(b) < minSecret || len(b) > maxSecret || base64.StdEncoding.EncodeToString(b) != text {
		return nil, errors.New("wants 24 to 64 bytes in Base64 after whsec_")
	}
	return b, nil
}

// webhook is what the token's record says at a moment.
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

// succeed takes over from what the token was before: its secrets that still sign, and the one that is now replaced,
// which signs until then.
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

// Webhook looks up a token by its stable id, not by its name. A token of the configuration file is known even while
// Redis is away or came back empty; only its replaced secrets are not. A disabled or expired token still has its
// webhook: its tasks go on. storage.ErrNotFound: no such token now. ErrRevoked: an operator ended it. storage.ErrUnavailable: Redis is
// away and the token is not of the file.
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

// RotateWebhookSecret gives a token a new webhook secret and returns it, which is shown nowhere else. The one before
// signs for the overlap as well; 0 ends it at once. A token without a secret gets its first. ErrSeeded: the
// secret is in the configuration file, where a change takes effect in the same way. ErrDisabled,
// ErrRevoked: the token is that.
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
