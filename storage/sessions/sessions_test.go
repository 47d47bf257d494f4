package sessions_test

import (
	"errors"
	"strings"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/sessions"
	"modelrelay/storage/storagetest"
)

func TestSession(t *testing.T) {
	t.Parallel()
	ctx, client := t.Context(), storagetest.Redis(t)
	store := sessions.New(client, time.Minute)
	secret, begun, err := store.Begin(ctx, sessions.Session{Kind: "operator", Owner: "anna", Fingerprint: "f1", Agent: "browser"})
	if err != nil {
		t.Fatal(err)
	}
	found, err := store.Find(ctx, secret)
	if err != nil || found != begun || found.Owner != "anna" || found.Fingerprint != "f1" || found.Since.IsZero() {
		t.Fatalf("got %+v, %v; want %+v", found, err, begun)
	}
	for _, wrong := range []string{"", begun.ID, secret + "x", strings.Repeat("x", 1000)} {
		if _, err := store.Find(ctx, wrong); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%.20q: got %v, want ErrNotFound", wrong, err)
		}
	}
	keys, err := client.Keys(ctx, "*").Result()
	if err != nil {
		t.Fatal(err)
	}
	for _, key := range keys { // what Redis holds opens nothing
		value, _ := client.Get(ctx, key).Result()
		if strings.Contains(key+value, secret) {
			t.Errorf("%s holds the browser's secret", key)
		}
	}
	other, _, err := store.Begin(ctx, sessions.Session{Kind: "operator", Owner: "anna"})
	if err != nil {
		t.Fatal(err)
	}
	if list, err := store.List(ctx, "operator", "anna"); err != nil || len(list) != 2 {
		t.Errorf("list: got %+v, %v; want two", list, err)
	}
	if err := store.End(ctx, "token", "anna", begun.ID); err != nil { // not that owner's
		t.Fatal(err)
	}
	if _, err := store.Find(ctx, secret); err != nil {
		t.Errorf("another owner ended it: %v", err)
	}
	if err := store.End(ctx, "operator", "anna", begun.ID); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Find(ctx, secret); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("after its end: got %v, want ErrNotFound", err)
	}
	if err := store.EndAll(ctx, "operator", "anna"); err != nil {
		t.Fatal(err)
	}
	if _, err := store.Find(ctx, other); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("after the end of all: got %v, want ErrNotFound", err)
	}
	if list, err := store.List(ctx, "operator", "anna"); err != nil || len(list) != 0 {
		t.Errorf("list: got %+v, %v; want none", list, err)
	}
}

// A session that nobody uses ends, and one that is used ends as well, later.
func TestSessionEnds(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	store := sessions.New(client, 30*time.Minute)
	secret, begun, err := store.Begin(t.Context(), sessions.Session{Kind: "token", Owner: "tok_a"})
	if err != nil {
		t.Fatal(err)
	}
	server.FastForward(29 * time.Minute)
	if _, err := store.Find(t.Context(), secret); err != nil {
		t.Fatalf("within the idle time: %v", err)
	}
	server.FastForward(2 * time.Minute)
	if _, err := store.Find(t.Context(), secret); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("past the idle time: got %v, want ErrNotFound", err)
	}
	// The age stands in the record: Redis may have been told of a use a moment ago.
	_, begun, err = store.Begin(t.Context(), begun)
	if err != nil {
		t.Fatal(err)
	}
	old := strings.Replace(mustGet(t, server, "mr:session:"+begun.ID), `"since":"20`, `"since":"19`, 1)
	_ = server.Set("mr:session:"+begun.ID, old)
	if list, err := store.List(t.Context(), "token", "tok_a"); err != nil || len(list) != 0 {
		t.Errorf("past its age: got %+v, %v; want none", list, err)
	}
}

func mustGet(t *testing.T, server interface{ Get(string) (string, error) }, key string) string {
	t.Helper()
	value, err := server.Get(key)
	if err != nil {
		t.Fatal(err)
	}
	return value
}

func TestLink(t *testing.T) {
	t.Parallel()
	server, stop := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	store := sessions.New(client, 0)
	code, err := store.Offer(t.Context(), sessions.Link{Kind: "operator", Owner: "anna"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	for range 2 { // looking uses nothing up
		if link, err := store.Peek(t.Context(), code); err != nil || link.Owner != "anna" {
			t.Fatalf("peek: got %+v, %v", link, err)
		}
	}
	if link, err := store.Take(t.Context(), code); err != nil || link != (sessions.Link{Kind: "operator", Owner: "anna"}) {
		t.Fatalf("take: got %+v, %v", link, err)
	}
	if _, err := store.Take(t.Context(), code); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("twice: got %v, want ErrNotFound", err)
	}
	code, err = store.Offer(t.Context(), sessions.Link{Kind: "token", Owner: "demo"}, time.Minute)
	if err != nil {
		t.Fatal(err)
	}
	server.FastForward(2 * time.Minute)
	if _, err := store.Take(t.Context(), code); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("too old: got %v, want ErrNotFound", err)
	}
	stop()
	if _, err := store.Take(t.Context(), code); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("away: got %v, want ErrUnavailable", err)
	}
}
