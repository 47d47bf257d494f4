package tokens_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
)

// pass lets time go by: within a bubble at once, and exactly so much.
func pass(d time.Duration) { <-time.NewTimer(d).C }

// TestChangesOfTokensHoldWithinASecond: a change of a token applies in every process within a second.
func TestChangesOfTokensHoldWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, changesOfTokensHoldWithinASecond)
}

func changesOfTokensHoldWithinASecond(t *testing.T) {
	ctx, client := t.Context(), storagetest.NewServer(t).Client(t)
	here, there := newTokens(t, client, nil), newTokens(t, client, nil)
	made, key, err := here.Create(ctx, tokens.Token{Name: "anna", Group: "first"})
	if err != nil {
		t.Fatal(err)
	}
	after := func(what, key string, in *tokens.Store, ok func(*tokens.Token, error) bool) {
		t.Helper()
		pass(time.Second)
		synctest.Wait()
		if got, err := in.Authenticate(ctx, key); !ok(got, err) {
			t.Errorf("%s: a second later got %+v, %v", what, got, err)
		}
	}
	usable := func(got *tokens.Token, err error) bool { return err == nil && got.Usable(time.Now()) == nil }
	unusable := func(got *tokens.Token, err error) bool { return err == nil && got.Usable(time.Now()) != nil }
	unknown := func(_ *tokens.Token, err error) bool { return errors.Is(err, storage.ErrNotFound) }
	after("created", key, there, usable)

	if _, err := here.Update(ctx, made.ID, func(token *tokens.Token) error { token.Group = "second"; return nil }); err != nil {
		t.Fatal(err)
	}
	after("updated", key, there, func(got *tokens.Token, err error) bool { return usable(got, err) && got.Group == "second" })

	_, newKey, err := here.Rotate(ctx, made.ID)
	if err != nil {
		t.Fatal(err)
	}
	after("rotated", key, there, unknown)
	after("its new key", newKey, there, usable)

	if err := here.Revoke(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	after("revoked", newKey, there, unusable)

	// A key that was tried too early, and one that an operator revokes though it is in a file.
	after("not yet seeded", "sk-soon", there, unknown)
	if err := here.Seed(ctx, []tokens.Seed{{Token: tokens.Token{Name: "soon"}, Key: "sk-soon"}}); err != nil {
		t.Fatal(err)
	}
	after("seeded", "sk-soon", there, usable)
	if err := there.Revoke(ctx, "soon"); err != nil {
		t.Fatal(err)
	}
	after("seeded and revoked", "sk-soon", here, unusable)
}
