package tokens_test

import (
	"errors"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

func TestSeed(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	store, other := newTokens(t, client, nil), newTokens(t, client, nil)
	seed := func(name, key string) tokens.Seed {
		return tokens.Seed{Token: tokens.Token{Name: name, Group: "default"}, Key: key}
	}
	usable := func(store *tokens.Store, key string) bool {
		got, err := store.Authenticate(ctx, key)
		return err == nil && got.Usable(time.Now()) == nil
	}

	for _, bad := range [][]tokens.Seed{
		{seed("a", "k1"), seed("a", "k2")},
		{seed("a", "k1"), seed("b", "k1")},
		{seed("", "k1")},
		{seed("a", "")},
		{seed("tok_a", "k1")},
		{seed("a", "k 1")},
	} {
		if err := store.Seed(ctx, bad); err == nil {
			t.Errorf("seed %+v: no error", bad)
		}
	}

	if err := store.Seed(ctx, []tokens.Seed{seed("a", "key-a"), seed("b", "key-b")}); err != nil {
		t.Fatal(err)
	}
	got, err := store.Authenticate(ctx, "key-a")
	if err != nil || got.ID != "a" || !got.Seeded {
		t.Fatalf("seeded token: %+v, %v", got, err)
	}
	if !usable(other, "key-a") {
		t.Error("another process, without the file, does not know the seeded token")
	}
	if _, _, err := store.Rotate(ctx, "a"); !errors.Is(err, tokens.ErrSeeded) {
		t.Errorf("rotate a seeded token: got %v, want ErrSeeded", err)
	}

	// b leaves, a changes its key, c comes.
	if err := store.Seed(ctx, []tokens.Seed{seed("a", "key-a2"), seed("c", "key-c")}); err != nil {
		t.Fatal(err)
	}
	for key, want := range map[string]bool{"key-a": false, "key-a2": true, "key-b": false, "key-c": true} {
		if got := usable(store, key); got != want {
			t.Errorf("%s where it was seeded: usable %v, want %v", key, got, want)
		}
		testwait.Eventually(t, key+" elsewhere", storagetest.Patience, func() bool { return usable(other, key) == want })
	}
	if got, err := other.Find(ctx, "b"); err != nil || !got.Disabled || got.Revoked {
		t.Errorf("token that left the file: %+v, %v", got, err)
	}

	// Keys change places, and b comes back.
	if err := store.Seed(ctx, []tokens.Seed{seed("a", "key-c"), seed("c", "key-a2"), seed("b", "key-b")}); err != nil {
		t.Fatal(err)
	}
	for key, id := range map[string]string{"key-c": "a", "key-a2": "c", "key-b": "b"} {
		testwait.Eventually(t, key+" elsewhere is of "+id, storagetest.Patience, func() bool {
			got, err := other.Authenticate(ctx, key)
			return err == nil && got.ID == id && got.Usable(time.Now()) == nil
		})
	}

	// An operator's revocation outlives a reload, and ends with another key.
	if err := other.Revoke(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	testwait.Eventually(t, "seeded token revoked", storagetest.Patience, func() bool { return !usable(store, "key-b") })
	if err := store.Seed(ctx, []tokens.Seed{seed("b", "key-b")}); err != nil {
		t.Fatal(err)
	}
	if usable(store, "key-b") {
		t.Error("a reload brought a revoked key back")
	}
	if err := newTokens(t, client, nil).Seed(ctx, []tokens.Seed{seed("b", "key-b")}); err != nil || usable(store, "key-b") {
		t.Errorf("a restart brought a revoked key back (%v)", err)
	}
	if err := store.Seed(ctx, []tokens.Seed{seed("b", "key-b2")}); err != nil {
		t.Fatal(err)
	}
	if !usable(store, "key-b2") || usable(store, "key-b") {
		t.Error("another key did not bring the token back")
	}
}

func TestSeedRenamed(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	store := newTokens(t, client, nil)
	for _, name := range []string{"first", "second", "third"} {
		if err := store.Seed(ctx, []tokens.Seed{{Token: tokens.Token{Name: name}, Key: "key-a"}}); err != nil {
			t.Fatal(err)
		}
	}
	listed, err := store.Page(ctx, tokens.PageQuery{Limit: 10})
	if err != nil || len(listed.Tokens) != 1 || listed.Tokens[0].ID != "third" || listed.Tokens[0].Disabled {
		t.Errorf("got %+v, %v, want the third alone", listed, err)
	}
	if got, err := store.Find(ctx, "first"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("the first name finds %+v, %v", got, err)
	}
	if _, _, err := store.Create(ctx, tokens.Token{Name: "second"}); err != nil {
		t.Errorf("the second name is not free: %v", err)
	}

	// A revoked key does not come back under another name, neither at a reload nor at a restart.
	if err := store.Revoke(ctx, "third"); err != nil {
		t.Fatal(err)
	}
	for name, store := range map[string]*tokens.Store{"reload": store, "restart": newTokens(t, client, nil)} {
		if err := store.Seed(ctx, []tokens.Seed{{Token: tokens.Token{Name: "fourth"}, Key: "key-a"}}); err != nil {
			t.Fatal(err)
		}
		if got, err := store.Authenticate(ctx, "key-a"); err != nil || got.Usable(time.Now()) == nil {
			t.Errorf("a %s brought a revoked key back as %+v (%v)", name, got, err)
		}
	}
}

func TestSeedsOutliveRedis(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server := storagetest.NewServer(t)
	client := server.Client(t)
	store := newTokens(t, client, nil)
	server.Leave()
	seeds := []tokens.Seed{{Token: tokens.Token{Name: "demo"}, Key: "sk-demo"}}
	if err := store.Seed(ctx, seeds); err != nil {
		t.Fatalf("seed while redis does not answer: %v", err)
	}
	if _, err := store.Authenticate(ctx, "sk-demo"); err != nil {
		t.Errorf("seeded token while redis does not answer: %v", err)
	}
	if got, err := store.Find(ctx, "demo"); err != nil || got.ID != "demo" {
		t.Errorf("find a seeded token while redis does not answer: %v, %v", got, err)
	}
	server.Return()
	there := func() bool { return client.Exists(ctx, "mr:token:"+hashOf("sk-demo")).Val() == 1 }
	testwait.Eventually(t, "written when redis came", storagetest.Patience, there)
	testwait.Eventually(t, "changes settled", storagetest.Patience, func() bool { return client.LLen(ctx, "mr:token-changes").Val() > 0 })
	server.FlushAll()
	testwait.Eventually(t, "put back into an empty redis", storagetest.Patience, there)
}
