package tokens_test

import (
	"bytes"
	"context"
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/redis/go-redis/v9"

	"modelrelay/storage"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
	"modelrelay/storage/tokens"
)

func newTokens(tb testing.TB, client redis.UniversalClient, opts *tokens.Options) *tokens.Store {
	tb.Helper()
	store := tokens.New(client, opts)
	tb.Cleanup(store.Close)
	return store
}

func TestTokensLife(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	here, there := newTokens(t, client, nil), newTokens(t, client, nil)

	made, key, err := here.Create(ctx, tokens.Token{Name: "anna", Group: "default", Models: []string{"gpt-*"}, WebhookSecret: "whsec_1"})
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasPrefix(made.ID, "tok_") || len(key) != 51 || made.Hint != "sk-…"+key[47:] || made.CreatedAt.IsZero() {
		t.Errorf("created %+v with key of %d characters", made, len(key))
	}
	for _, store := range []*tokens.Store{here, there, here, there} {
		got, err := store.Authenticate(ctx, key)
		if err != nil {
			t.Fatal(err)
		}
		if got.ID != made.ID || got.Group != "default" || got.WebhookSecret != "whsec_1" || !got.Allows("gpt-4o") || got.Allows("sora-2") {
			t.Errorf("authenticated %+v", got)
		}
	}
	if _, _, err := there.Create(ctx, tokens.Token{Name: "anna"}); !errors.Is(err, storage.ErrExists) {
		t.Errorf("second anna: got %v, want ErrExists", err)
	}

	rotated, newKey, err := there.Rotate(ctx, "anna")
	if err != nil {
		t.Fatal(err)
	}
	if rotated.ID != made.ID || newKey == key {
		t.Errorf("rotated %q to %q", made.ID, rotated.ID)
	}
	if _, err := there.Authenticate(ctx, key); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("old key where it was rotated: got %v, want ErrNotFound at once", err)
	}
	testwait.Eventually(t, "old key unknown elsewhere", storagetest.Patience, func() bool {
		_, err := here.Authenticate(ctx, key)
		return errors.Is(err, storage.ErrNotFound)
	})
	if got, err := here.Authenticate(ctx, newKey); err != nil || got.ID != made.ID {
		t.Errorf("new key: %v, %v", got, err)
	}

	if err := there.Revoke(ctx, made.ID); err != nil {
		t.Fatal(err)
	}
	if got, _ := there.Authenticate(ctx, newKey); !errors.Is(got.Usable(time.Now()), tokens.ErrDisabled) {
		t.Error("revoked token is usable where it was revoked")
	}
	testwait.Eventually(t, "revoked elsewhere", storagetest.Patience, func() bool {
		got, err := here.Authenticate(ctx, newKey)
		return err == nil && got.Usable(time.Now()) != nil
	})
	if err := here.Revoke(ctx, made.ID); err != nil {
		t.Errorf("revoke again: %v", err)
	}
	if _, _, err := here.Rotate(ctx, made.ID); !errors.Is(err, tokens.ErrRevoked) {
		t.Errorf("rotate a revoked token: got %v, want ErrRevoked", err)
	}
	if got, err := here.Find(ctx, "anna"); err != nil || !got.Revoked {
		t.Errorf("find the revoked anna: %+v, %v", got, err)
	}

	again, _, err := here.Create(ctx, tokens.Token{Name: "anna"})
	if err != nil {
		t.Fatalf("anna again: %v", err)
	}
	if got, err := there.Find(ctx, "anna"); err != nil || got.ID != again.ID {
		t.Errorf("find anna: got %v (%v), want the one not revoked", got.ID, err)
	}
	if list, err := there.Page(ctx, tokens.PageQuery{Limit: 10}); err != nil || len(list.Tokens) != 2 {
		t.Errorf("list: %v, %v", list, err)
	}
	for _, unknown := range []string{"", "unknown", "tok_x"} {
		if _, err := here.Find(ctx, unknown); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("find %q: got %v, want ErrNotFound", unknown, err)
		}
		if err := here.Revoke(ctx, unknown); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("revoke %q: got %v, want ErrNotFound", unknown, err)
		}
	}
}

func TestTokensKeepNoKeyAndShowNoSecret(t *testing.T) {
	t.Parallel()
	ctx := t.Context()
	server, _ := storagetest.Miniredis(t)
	store := newTokens(t, storagetest.Client(t, "redis://"+server.Addr()), nil)
	made, key, err := store.Create(ctx, tokens.Token{Name: "anna", WebhookSecret: "whsec_hidden"})
	if err != nil {
		t.Fatal(err)
	}
	if err := store.Seed(ctx, []tokens.Seed{{Token: tokens.Token{Name: "demo"}, Key: "sk-demo"}}); err != nil {
		t.Fatal(err)
	}
	record, err := server.Get("mr:token:" + hashOf(key))
	if err != nil || !strings.Contains(record, "whsec_hidden") {
		t.Errorf("record by the key's hash lacks the webhook's secret (%v)", err)
	}
	for _, name := range server.Keys() {
		held := name
		switch server.Type(name) {
		case "string":
			value, _ := server.Get(name)
			held += value
		case "list":
			values, _ := server.List(name)
			held += strings.Join(values, "")
		case "hash":
			fields, _ := server.HKeys(name)
			for _, field := range fields {
				held += field + server.HGet(name, field)
			}
		case "zset":
			members, _ := server.ZMembers(name)
			held += strings.Join(members, "")
		case "set":
			members, _ := server.Members(name)
			held += strings.Join(members, "")
		default:
			t.Fatalf("%s is a %s: look into it too", name, server.Type(name))
		}
		if strings.Contains(held, key) || strings.Contains(held, "sk-demo") {
			t.Errorf("%s holds a key in clear", name)
		}
	}

	var log bytes.Buffer
	slog.New(slog.NewJSONHandler(&log, nil)).Info("token", "token", made, "secret", made.WebhookSecret)
	slog.New(slog.NewTextHandler(&log, nil)).Info("token", "token", made, "secret", made.WebhookSecret)
	text, _ := json.Marshal(made)
	shown := log.String() + string(text) + fmt.Sprintf("%v %+v %#v %s", made, made, made, made.WebhookSecret)
	if strings.Contains(shown, "hidden") {
		t.Errorf("secret is shown: %s", shown)
	}
}

func TestAuthenticateWhileRedisIsAway(t *testing.T) {
	t.Parallel()
	synctest.Test(t, authenticateWhileRedisIsAway)
}

func authenticateWhileRedisIsAway(t *testing.T) {
	const grace = 10 * time.Second
	ctx, server := t.Context(), storagetest.NewServer(t)
	var log storagetest.Log
	store := newTokens(t, server.Client(t), &tokens.Options{Grace: grace, Log: slog.New(slog.NewTextHandler(&log, nil))})
	_, key, err := store.Create(ctx, tokens.Token{Name: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	_, unseen, err := store.Create(ctx, tokens.Token{Name: "berta"})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := store.Authenticate(ctx, key); err != nil {
		t.Fatal(err)
	}
	server.Leave()
	for range 3 {
		if _, err := store.Authenticate(ctx, key); err != nil {
			t.Errorf("known key: %v", err)
		}
		if _, err := store.Authenticate(ctx, unseen); !errors.Is(err, storage.ErrUnavailable) || errors.Is(err, storage.ErrNotFound) {
			t.Errorf("unknown key: got %v, want ErrUnavailable", err)
		}
	}
	if _, err := store.Page(ctx, tokens.PageQuery{Limit: 10}); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("list: got %v, want ErrUnavailable", err)
	}
	pass(grace - time.Second)
	if _, err := store.Authenticate(ctx, key); err != nil {
		t.Errorf("known key within the grace: %v", err)
	}
	pass(2 * time.Second)
	if _, err := store.Authenticate(ctx, key); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("known key after the grace: got %v, want ErrUnavailable", err)
	}
	server.Return()
	pass(2 * time.Second)
	for name, key := range map[string]string{"known": key, "unseen": unseen} {
		if _, err := store.Authenticate(ctx, key); err != nil {
			t.Errorf("%s key when redis answers again: %v", name, err)
		}
	}
	if !strings.Contains(log.String(), "redis answers again") {
		t.Error("the return is not logged")
	}
	if n := strings.Count(log.String(), "redis does not answer"); n != 1 {
		t.Errorf("outage logged %d times, want once:\n%s", n, log.String())
	}
	if strings.Contains(log.String(), key) || strings.Contains(log.String(), unseen) {
		t.Error("log holds a key")
	}
}

func TestWrongKeysStayBounded(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		ctx := t.Context()
		server := storagetest.NewServer(t)
		store := newTokens(t, server.Client(t), nil)
		_, key, err := store.Create(ctx, tokens.Token{Name: "anna"})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := store.Authenticate(ctx, key); err != nil {
			t.Fatal(err)
		}
		var flood sync.WaitGroup
		for g := range 16 {
			flood.Go(func() {
				for i := range 1500 {
					if _, err := store.Authenticate(ctx, fmt.Sprintf("sk-wrong-%d-%d", g, i)); !errors.Is(err, storage.ErrNotFound) {
						t.Errorf("wrong key: %v", err)
						return
					}
				}
			})
		}
		flood.Wait()
		before := server.CommandCount()
		for range 100 {
			if _, err := store.Authenticate(ctx, key); err != nil {
				t.Fatalf("the flood evicted a known token: %v", err)
			}
			if _, err := store.Authenticate(ctx, "sk-wrong-0-1499"); !errors.Is(err, storage.ErrNotFound) {
				t.Fatal(err)
			}
		}
		if n := server.CommandCount() - before; n > 0 { // no time has passed, so that no change and no wrong key is asked for again
			t.Errorf("%d commands for keys already asked for", n)
		}
		for _, key := range []string{"", strings.Repeat("k", 513)} {
			if _, err := store.Authenticate(ctx, key); !errors.Is(err, storage.ErrNotFound) {
				t.Errorf("key of %d characters: %v", len(key), err)
			}
		}
	})
}

func TestCreatedElsewhereAfterAWrongTry(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	here, there := newTokens(t, client, nil), newTokens(t, client, nil)
	if _, err := here.Authenticate(ctx, "sk-soon"); !errors.Is(err, storage.ErrNotFound) {
		t.Fatal(err)
	}
	if err := there.Seed(ctx, []tokens.Seed{{Token: tokens.Token{Name: "soon"}, Key: "sk-soon"}}); err != nil {
		t.Fatal(err)
	}
	testwait.Eventually(t, "key known", storagetest.Patience, func() bool {
		_, err := here.Authenticate(ctx, "sk-soon")
		return err == nil
	})
}

func TestConcurrentCreatesTakeANameOnce(t *testing.T) {
	t.Parallel()
	ctx, store := t.Context(), newTokens(t, storagetest.Redis(t), nil)
	var wg sync.WaitGroup
	won := make(chan string, 20)
	for range 20 {
		wg.Go(func() {
			made, _, err := store.Create(ctx, tokens.Token{Name: "anna"})
			if err == nil {
				won <- made.ID
			} else if !errors.Is(err, storage.ErrExists) {
				t.Error(err)
			}
		})
	}
	wg.Wait()
	if len(won) != 1 {
		t.Errorf("%d creates won the name", len(won))
	}
}

func TestAuthenticateIsCanceled(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	store := newTokens(t, client, nil)
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	// One caller's cancellation must not fail the callers that share its round trip, so it fails none.
	if _, err := store.Authenticate(ctx, "sk-x"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("got %v", err)
	}
}

func BenchmarkAuthenticate(b *testing.B) {
	ctx, store := b.Context(), newTokens(b, storagetest.Redis(b), nil)
	_, key, err := store.Create(ctx, tokens.Token{Name: "anna"})
	if err != nil {
		b.Fatal(err)
	}
	b.Run("warm", func(b *testing.B) {
		b.ReportAllocs()
		for b.Loop() {
			if _, err := store.Authenticate(ctx, key); err != nil {
				b.Fatal(err)
			}
		}
	})
	b.Run("hash alone", func(b *testing.B) {
		for b.Loop() {
			hashOf(key)
		}
	})
}

// hashOf is a key as its record's name has it.
func hashOf(key string) string {
	sum := sha256.Sum256([]byte(key))
	return hex.EncodeToString(sum[:])
}
