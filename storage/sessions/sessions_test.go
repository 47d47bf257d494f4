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

// TestSessionEnds: a session ends after its idle time. A session in use ends at its maximum age.
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
	// The record contains the start of the session, so the maximum age holds although a use renewed the key in Redis.
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

// TestSessionsAreBounded: an owner has a bounded number of sessions, begins them at a bounded rate, and does not affect other owners.
func TestSessionsAreBounded(t *testing.T) {
	t.Parallel()
	const (
		atOnce = 50 // sessions of one
		minute = 20 // sessions that one begins within a minute
	)
	server, _ := storagetest.Miniredis(t)
	store := sessions.New(storagetest.Client(t, "redis://"+server.Addr()), time.Hour)
	mallory := sessions.Session{Kind: "token", Owner: "mallory"}
	if _, _, err := store.Begin(t.Context(), mallory); err != nil {
		t.Fatal(err)
	}
	for n := 1; n < atOnce+5; n++ {
		tooMany := (*sessions.TooManyError)(nil)
		if _, _, err := store.Begin(t.Context(), mallory); errors.As(err, &tooMany) {
			if n%minute != 0 || tooMany.For <= 0 {
				t.Fatalf("session %d was refused: %v", n, err)
			}
			if _, _, err := store.Begin(t.Context(), sessions.Session{Kind: "operator", Owner: "mallory"}); err != nil {
				t.Fatalf("another owner: %v", err)
			}
			server.FastForward(time.Minute)
			if _, _, err := store.Begin(t.Context(), mallory); err != nil {
				t.Fatalf("a minute later: %v", err)
			}
		} else if err != nil || n%minute == 0 {
			t.Fatalf("session %d: got %v", n, err)
		}
	}
	if list, err := store.List(t.Context(), "token", "mallory"); err != nil || len(list) != atOnce {
		t.Errorf("got %d sessions, %v; want %d", len(list), err, atOnce)
	}
	kept := 0
	for _, key := range server.Keys() {
		if strings.HasPrefix(key, "mr:session:") {
			kept++
		}
	}
	if kept != atOnce+2 { // the operator has two
		t.Errorf("Redis has %d sessions, want %d", kept, atOnce+2)
	}
}

// TestOnce: Once reports true for the first use of a word by its owner. Redis keeps a few hundred words of each owner.
func TestOnce(t *testing.T) {
	t.Parallel()
	server, stop := storagetest.Miniredis(t)
	store := sessions.New(storagetest.Client(t, "redis://"+server.Addr()), 0)
	give := func(kind, word string) bool {
		t.Helper()
		first, err := store.Once(t.Context(), kind, "mallory", word)
		if err != nil {
			t.Fatal(err)
		}
		return first
	}
	if !give("token", "a") || give("token", "a") || !give("token", "b") || !give("operator", "a") {
		t.Error("a word did not count once for each owner")
	}
	for n := range 1000 {
		give("token", strings.Repeat("x", n+2))
	}
	if give("token", strings.Repeat("x", 1001)) {
		t.Error("the newest word was forgotten")
	}
	members, err := server.ZMembers("mr:once:token:mallory")
	if err != nil || len(members) != 500 || len(server.Keys()) != 2 {
		t.Errorf("Redis has %d words in %d keys, %v; want 500 in 2", len(members), len(server.Keys()), err)
	}
	server.FastForward(12 * time.Hour)
	if keys := server.Keys(); len(keys) != 0 {
		t.Errorf("after a day's work Redis has %v", keys)
	}
	stop()
	if _, err := store.Once(t.Context(), "token", "mallory", "c"); !errors.Is(err, storage.ErrUnavailable) {
		t.Errorf("away: got %v, want ErrUnavailable", err)
	}
}
