package tokens_test

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/tokens"
)

// names walks all pages and returns the names on them, and how long each page was.
func names(t *testing.T, store *tokens.Store, limit int, wanted func(*tokens.Token) bool) (all []string, lengths []int) {
	t.Helper()
	for after := ""; ; {
		page, err := store.Page(t.Context(), tokens.PageQuery{After: after, Limit: limit, Wanted: wanted})
		if err != nil {
			t.Fatal(err)
		}
		for _, token := range page.Tokens {
			all = append(all, token.Name)
		}
		lengths = append(lengths, len(page.Tokens))
		if after = page.Next; after == "" {
			return all, lengths
		}
	}
}

// TestPageOfTokens: the pages list each token once by name, also revoked ones, and also if tokens change between two pages.
func TestPageOfTokens(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	store := newTokens(t, client, nil)
	if all, lengths := names(t, store, 3, nil); len(all) != 0 || len(lengths) != 1 {
		t.Errorf("of nothing: %v on %v", all, lengths)
	}
	for _, name := range []string{"d", "b", "a/1", "café", "a", "e"} {
		if _, _, err := store.Create(ctx, tokens.Token{Name: name, Group: name[:1]}); err != nil {
			t.Fatal(err)
		}
	}
	if err := store.Revoke(ctx, "b"); err != nil {
		t.Fatal(err)
	}
	if _, _, err := store.Create(ctx, tokens.Token{Name: "b"}); err != nil {
		t.Fatal(err)
	}
	if err := store.Seed(ctx, []tokens.Seed{{Token: tokens.Token{Name: "file"}, Key: "sk-file"}}); err != nil {
		t.Fatal(err)
	}
	want := []string{"a", "a/1", "b", "b", "café", "d", "e", "file"}
	for limit, lengths := range map[int][]int{1: {1, 1, 1, 1, 1, 1, 1, 1}, 3: {3, 3, 2}, 4: {4, 4}, 100: {8}} {
		if got, on := names(t, store, limit, nil); !slices.Equal(got, want) || !slices.Equal(on, lengths) {
			t.Errorf("by %d: %q on %v", limit, got, on)
		}
	}
	if got, _ := names(t, store, 2, func(token *tokens.Token) bool { return token.Group == "a" }); !slices.Equal(got, []string{"a", "a/1"}) {
		t.Errorf("of a group: %q", got)
	}
	if _, _, err := store.Rotate(ctx, "d"); err != nil {
		t.Fatal(err)
	}
	if got, _ := names(t, store, 5, nil); !slices.Equal(got, want) {
		t.Errorf("after a rotation: %q", got)
	}
	// A key of the file that changes replaces the token.
	if err := store.Seed(ctx, []tokens.Seed{{Token: tokens.Token{Name: "file"}, Key: "sk-other"}}); err != nil {
		t.Fatal(err)
	}
	if got, _ := names(t, store, 5, nil); !slices.Equal(got, want) {
		t.Errorf("after the file's key changed: %q", got)
	}
	if n, err := store.Count(ctx); err != nil || n != int64(len(want)) {
		t.Errorf("counted %d, %v", n, err)
	}
}

// TestPageIsBounded: one page of a filter that matches few tokens reads so many and returns where to continue; a name that no token
// has is looked up without reading all tokens, even where one of them has no record.
func TestPageIsBounded(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	ctx := t.Context()
	store := newTokens(t, client, nil)
	made, _, err := store.Create(ctx, tokens.Token{Name: "zz"})
	if err != nil {
		t.Fatal(err)
	}
	raw, err := client.Keys(ctx, storage.Prefix+"token:*").Result()
	if err != nil || len(raw) != 1 {
		t.Fatal(raw, err)
	}
	record, _ := server.Get(raw[0])
	const many = tokens.PageReads + 700
	var (
		records, hashes []any
		index           []redis.Z
	)
	for i := range many { // as the store writes them; one by one it would take a minute
		id, name, hash := fmt.Sprintf("tok_%05d", i), fmt.Sprintf("app%05d", i), fmt.Sprintf("%064x", i)
		records = append(records, storage.Prefix+"token:"+hash, strings.NewReplacer(made.ID, id, `"zz"`, `"`+name+`"`).Replace(record))
		hashes = append(hashes, id, hash)
		index = append(index, redis.Z{Member: name + "\x00" + id})
	}
	hashes = append(hashes, "tok_lost", fmt.Sprintf("%064x", many)) // its record is gone
	if err := errors.Join(client.MSet(ctx, records...).Err(), client.HSet(ctx, storage.Prefix+"tokens", hashes...).Err(),
		client.ZAdd(ctx, storage.Prefix+"token-index", index...).Err()); err != nil {
		t.Fatal(err)
	}
	page, err := store.Page(ctx, tokens.PageQuery{Limit: 10, Wanted: func(token *tokens.Token) bool { return token.Name == "zz" }})
	if err != nil || len(page.Tokens) != 0 || page.Next == "" {
		t.Fatalf("first page: %d tokens, next %q, %v", len(page.Tokens), page.Next, err)
	}
	page, err = store.Page(ctx, tokens.PageQuery{
		After: page.Next, Limit: 10,
		Wanted: func(token *tokens.Token) bool { return token.Name == "zz" },
	})
	if err != nil || len(page.Tokens) != 1 || page.Next != "" {
		t.Errorf("second page: %d tokens, next %q, %v", len(page.Tokens), page.Next, err)
	}
	before := server.CommandCount()
	if _, err := store.Find(ctx, "unknown"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("find: %v", err)
	}
	if asked := server.CommandCount() - before; asked > 10 { // those of the goroutine that follows changes among them
		t.Errorf("an unknown name took %d commands", asked)
	}
}

// TestVersionOfAToken: the version of a token grows by one with each change by any process.
func TestVersionOfAToken(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	store := newTokens(t, client, nil)
	made, _, err := store.Create(ctx, tokens.Token{Name: "anna", Version: 7})
	if err != nil || made.Version != 1 {
		t.Fatalf("made version %d, %v", made.Version, err)
	}
	changed, err := store.Update(ctx, "anna", func(token *tokens.Token) error { token.Version = 99; return nil })
	if err != nil || changed.Version != 2 {
		t.Errorf("changed to version %d, %v", changed.Version, err)
	}
	if rotated, _, err := store.Rotate(ctx, "anna"); err != nil || rotated.Version != 3 {
		t.Errorf("rotated to version %d, %v", rotated.Version, err)
	}
	if err := store.Revoke(ctx, "anna"); err != nil {
		t.Fatal(err)
	}
	if found, err := store.Find(ctx, made.ID); err != nil || found.Version != 4 {
		t.Errorf("revoked: version %d, %v", found.Version, err)
	}
}
