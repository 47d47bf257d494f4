package tokens_test

import (
	"errors"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"modelrelay/providers/secret"
	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

// TestUpdateToken: what changes holds here at once, elsewhere within a second, and nothing else moves.
func TestUpdateToken(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	here, there := newTokens(t, client, nil), newTokens(t, client, nil)
	made, key, err := here.Create(ctx, tokens.Token{
		Name: "anna", Group: "default", Models: []string{"gpt-*"}, Limits: tokens.Limits{RequestsPerMinute: 5}, WebhookURL: "https://a.example/",
		WebhookSecret: "whsec_1",
	})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := there.Authenticate(ctx, key); err != nil { // so that it is known there
		t.Fatal(err)
	}
	expires := time.Now().Add(time.Hour).UTC().Truncate(time.Second)
	updated, err := here.Update(ctx, "anna", func(token *tokens.Token) error {
		token.Models, token.Networks, token.Operations = []string{"sora-*"}, []string{"10.0.0.0/8"}, []string{"video"}
		token.RequestsPerMinute, token.Expires, token.WebhookURL, token.WebhookSecret = 7, expires, "https://b.example/", "whsec_2"
		token.ID, token.Name, token.Seeded, token.Revoked, token.Hint = "x", "y", true, true, "z"
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if updated.ID != made.ID || updated.Name != "anna" || updated.Hint != made.Hint || updated.Seeded || updated.Revoked ||
		!updated.CreatedAt.Equal(made.CreatedAt) {
		t.Errorf("got %+v, made %+v", updated, made)
	}
	got, err := here.Authenticate(ctx, key)
	if err != nil || !slices.Equal(got.Models, []string{"sora-*"}) || got.RequestsPerMinute != 7 || !got.Expires.Equal(expires) ||
		got.Group != "default" {
		t.Errorf("here: %+v, %v", got, err)
	}
	testwait.Eventually(t, "the change is seen elsewhere", storagetest.Patience, func() bool {
		got, err := there.Authenticate(ctx, key)
		return err == nil && got.WebhookURL == "https://b.example/" && slices.Equal(got.Operations, []string{"video"})
	})
	webhook, err := there.Webhook(ctx, made.ID)
	if err != nil || !slices.Equal(webhook.Secrets, []secret.Text{"whsec_2", "whsec_1"}) {
		t.Errorf("%d secrets sign, %v; want both", len(webhook.Secrets), err)
	}

	refuse := errors.New("not so")
	if _, err := here.Update(ctx, made.ID, func(token *tokens.Token) error {
		token.Group = "other"
		return refuse
	}); !errors.Is(err, refuse) {
		t.Errorf("a refused change: %v", err)
	}
	if found, err := here.Find(ctx, "anna"); err != nil || found.Group != "default" {
		t.Errorf("after a refused change: %+v, %v", found, err)
	}
}

// TestUpdateTokensAtOnce: changes that meet lose nothing.
func TestUpdateTokensAtOnce(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	store := newTokens(t, client, nil)
	if _, _, err := store.Create(ctx, tokens.Token{Name: "anna"}); err != nil {
		t.Fatal(err)
	}
	var writers sync.WaitGroup
	for range 3 {
		writers.Go(func() {
			_, err := store.Update(ctx, "anna", func(token *tokens.Token) error {
				token.MaxTasks++
				return nil
			})
			if err != nil {
				t.Error(err)
			}
		})
	}
	writers.Wait()
	if got, err := store.Find(ctx, "anna"); err != nil || got.MaxTasks != 3 {
		t.Errorf("max tasks %d, %v; want 3", got.MaxTasks, err)
	}
}

func TestUpdateTokenRefusals(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	store := newTokens(t, client, nil)
	if err := store.Seed(ctx, []tokens.Seed{{Token: tokens.Token{Name: "file"}, Key: "sk-file"}}); err != nil {
		t.Fatal(err)
	}
	gone, _, err := store.Create(ctx, tokens.Token{Name: "gone"})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Revoke(ctx, "gone"); err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]error{"file": tokens.ErrSeeded, gone.ID: tokens.ErrRevoked, "unknown": storage.ErrNotFound} {
		_, err := store.Update(ctx, name, func(*tokens.Token) error {
			t.Errorf("%s: change is asked", name)
			return nil
		})
		if !errors.Is(err, want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: got %v, want %v", name, err, want)
		}
	}
	// A disabled token is not gone: it can be enabled again.
	_, key, err := store.Create(ctx, tokens.Token{Name: "sleepy", Disabled: true})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Update(ctx, "sleepy", func(token *tokens.Token) error { token.Disabled = false; return nil }); err != nil {
		t.Fatal(err)
	}
	if token, err := store.Authenticate(ctx, key); err != nil || token.Usable(time.Now()) != nil {
		t.Errorf("enabled again: %+v, %v", token, err)
	}
}
