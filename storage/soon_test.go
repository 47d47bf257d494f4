package storage_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
)

// pass lets time go by: within a bubble at once, and exactly so much.
func pass(d time.Duration) { <-time.NewTimer(d).C }

// TestChangesOfTokensHoldWithinASecond, in every process, and not one moment later.
func TestChangesOfTokensHoldWithinASecond(t *testing.T) {
	t.Parallel()
	synctest.Test(t, changesOfTokensHoldWithinASecond)
}

func changesOfTokensHoldWithinASecond(t *testing.T) {
	ctx, client := t.Context(), storagetest.NewServer(t).Client(t)
	here, there := newTokens(t, client, nil), newTokens(t, client, nil)
	made, key, err := here.Create(ctx, storage.Token{Name: "anna", Group: "first"})
	if err != nil {
		t.Fatal(err)
	}
	after := func(what, key string, in *storage.Tokens, ok func(*storage.Token, error) bool) {
		t.Helper()
		pass(time.Second)
		synctest.Wait()
		if got, err := in.Authenticate(ctx, key); !ok(got, err) {
			t.Errorf("%s: a second later got %+v, %v", what, got, err)
		}
	}
	usable := func(got *storage.Token, err error) bool { return err == nil && got.Usable(time.Now()) == nil }
	unusable := func(got *storage.Token, err error) bool { return err == nil && got.Usable(time.Now()) != nil }
	unknown := func(_ *storage.Token, err error) bool { return errors.Is(err, storage.ErrNotFound) }
	after("created", key, there, usable)

	if _, err := here.Update(ctx, made.ID, func(token *storage.Token) error { token.Group = "second"; return nil }); err != nil {
		t.Fatal(err)
	}
	after("updated", key, there, func(got *storage.Token, err error) bool { return usable(got, err) && got.Group == "second" })

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

	// A key that was tried too early, and one that an operator revokes though it stands in a file.
	after("not yet seeded", "sk-soon", there, unknown)
	if err := here.Seed(ctx, []storage.Seed{{Token: storage.Token{Name: "soon"}, Key: "sk-soon"}}); err != nil {
		t.Fatal(err)
	}
	after("seeded", "sk-soon", there, usable)
	if err := there.Revoke(ctx, "soon"); err != nil {
		t.Fatal(err)
	}
	after("seeded and revoked", "sk-soon", here, unusable)
}

// TestLeases: while its process lives a long call keeps its place, for several lease times; after a crash the place is
// free when the lease is over.
func TestLeases(t *testing.T) {
	t.Parallel()
	synctest.Test(t, leases)
}

func leases(t *testing.T) {
	client := storagetest.NewServer(t).Client(t)
	token := &storage.Token{ID: "a", TokenLimits: storage.TokenLimits{Concurrency: 1}}
	opts := &storage.LimitsOptions{Lease: time.Minute}
	crashed, alive := storage.NewLimits(client, opts), newLimits(t, client, opts)
	if !admit(t, crashed, token, one).Allowed {
		t.Fatal("first call refused")
	}
	for step, began := opts.Lease/10, time.Now(); time.Since(began) < 3*opts.Lease; {
		if admit(t, alive, token, one).Allowed {
			t.Fatalf("place of a running call given away after %v", time.Since(began))
		}
		pass(step)
	}
	if err := crashed.Close(t.Context()); err != nil { // never released
		t.Fatal(err)
	}
	if admit(t, alive, token, one).Allowed {
		t.Error("the place is given away before the lease is over")
	}
	pass(opts.Lease)
	if !admit(t, alive, token, one).Allowed {
		t.Error("the place is not free when the lease is over")
	}
}

// TestReleasesHoldElsewhereAtOnce: the place of a call that ended is free for another process within moments.
func TestReleasesHoldElsewhereAtOnce(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		client := storagetest.NewServer(t).Client(t)
		here, there := newLimits(t, client, nil), newLimits(t, client, nil)
		token := &storage.Token{ID: "a", TokenLimits: storage.TokenLimits{Concurrency: 1}}
		admit(t, here, token, one).Release(-1)
		pass(20 * time.Millisecond)
		if !admit(t, there, token, one).Allowed {
			t.Error("the place is still taken")
		}
	})
}
