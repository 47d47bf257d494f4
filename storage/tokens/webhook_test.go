package tokens_test

import (
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"modelrelay/providers/secret"
	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

func TestWebhookSecretKey(t *testing.T) {
	t.Parallel()
	of := func(n int) secret.Text {
		return secret.Text("whsec_" + base64.StdEncoding.EncodeToString(make([]byte, n)))
	}
	for secret, want := range map[secret.Text]int{
		of(23): 0, of(24): 24, of(64): 64, of(65): 0, "": 0, "whsec_": 0, "whsec_hidden": 0, of(24)[6:]: 0, of(24) + "\n": 0,
		"whsec_" + secret.Text(base64.RawStdEncoding.EncodeToString(make([]byte, 25))): 0, tokens.NewWebhookSecret(): 32,
	} {
		key, err := tokens.WebhookKey(secret)
		if len(key) != want || (err == nil) != (want > 0) || err != nil && strings.Contains(err.Error(), "hidden") {
			t.Errorf("%q: %d bytes, %v; want %d", secret.Reveal(), len(key), err, want)
		}
	}
	if one, two := tokens.NewWebhookSecret(), tokens.NewWebhookSecret(); one == two {
		t.Error("two secrets are the same")
	}
}

func TestRotateWebhookSecret(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	store, other := newTokens(t, client, nil), newTokens(t, client, nil)
	made, key, err := store.Create(ctx, tokens.Token{Name: "anna", WebhookURL: "https://client.example/"})
	if err != nil {
		t.Fatal(err)
	}
	signed := func(want ...secret.Text) {
		t.Helper()
		got, err := other.Webhook(ctx, made.ID)
		if err != nil || got.URL != "https://client.example/" || !slices.Equal(got.Secrets, want) {
			t.Errorf("webhook = %d secrets, %v; want %d", len(got.Secrets), err, len(want))
		}
	}
	rotate := func(overlap time.Duration) secret.Text {
		t.Helper()
		rotated, secret, err := store.RotateWebhookSecret(ctx, "anna", overlap)
		if err != nil || rotated.ID != made.ID || rotated.WebhookSecret != secret {
			t.Fatalf("rotate: %+v, %v", rotated, err)
		}
		return secret
	}
	signed()
	first := rotate(time.Hour)
	signed(first)
	second := rotate(time.Hour)
	signed(second, first)
	third := rotate(0) // the second signs no more, the first still has its time
	signed(third, first)
	fourth := rotate(time.Second)
	signed(fourth, third, first)
	testwait.Eventually(t, "the third secret's time is over", storagetest.Patience, func() bool {
		got, err := other.Webhook(ctx, made.ID)
		return err == nil && slices.Equal(got.Secrets, []secret.Text{fourth, first})
	})
	for range 5 {
		rotate(time.Hour)
	}
	if got, err := other.Webhook(ctx, made.ID); err != nil || len(got.Secrets) != 4 {
		t.Errorf("%d secrets sign, %v; want 4", len(got.Secrets), err)
	}

	found, err := store.Find(ctx, "anna")
	if err != nil || len(found.OldWebhookSecrets) != 3 {
		t.Fatalf("found %+v, %v", found, err)
	}
	text, _ := json.Marshal(found)
	if shown := string(text) + fmt.Sprintf("%v %+v %#v", found, found, found); strings.Contains(shown, "whsec_") {
		t.Errorf("a secret is shown: %s", shown)
	}
	if _, err := store.Authenticate(ctx, key); err != nil {
		t.Errorf("the key after a rotation of the secret: %v", err)
	}

	if _, err := store.Webhook(ctx, "anna"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("by name: got %v, want ErrNotFound", err)
	}
	if err := store.Revoke(ctx, "anna"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Webhook(ctx, made.ID); !errors.Is(err, tokens.ErrRevoked) {
		t.Errorf("revoked: got %v, want ErrRevoked", err)
	}
	if _, _, err := store.RotateWebhookSecret(ctx, made.ID, 0); !errors.Is(err, tokens.ErrRevoked) {
		t.Errorf("rotate a revoked token's: got %v, want ErrRevoked", err)
	}
}

// TestSeededWebhook: a secret that changed in the file signs with its successor, and the file's webhook is
// known while Redis is away.
func TestSeededWebhook(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := storagetest.NewServer(t)
	store := newTokens(t, server.Client(t), nil)
	first, second := tokens.NewWebhookSecret(), tokens.NewWebhookSecret()
	seed := func(key string, secret secret.Text) {
		t.Helper()
		token := tokens.Token{Name: "demo", WebhookURL: "https://client.example/", WebhookSecret: secret}
		if err := store.Seed(ctx, []tokens.Seed{{Token: token, Key: key}}); err != nil {
			t.Fatal(err)
		}
	}
	signed := func(what string, want ...secret.Text) {
		t.Helper()
		got, err := store.Webhook(ctx, "demo")
		if err != nil || got.URL != "https://client.example/" || !slices.Equal(got.Secrets, want) {
			t.Errorf("%s: %d secrets, %v; want %d", what, len(got.Secrets), err, len(want))
		}
	}
	seed("sk-1", first)
	signed("seeded", first)
	seed("sk-1", second)
	signed("another secret", second, first)
	seed("sk-2", second)
	signed("another key", second, first)
	seed("sk-2", first)
	signed("taken back", first, second)
	if _, _, err := store.RotateWebhookSecret(ctx, "demo", 0); !errors.Is(err, tokens.ErrSeeded) {
		t.Errorf("rotate a seeded token's: got %v, want ErrSeeded", err)
	}
	server.Leave()
	signed("redis does not answer", first)
	if _, err := store.Webhook(ctx, "tok_unknown"); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("another token while redis does not answer: got %v, want ErrUnavailable", err)
	}
}
