package signatures_test

import (
	"bytes"
	"fmt"
	"strings"
	"testing"
	"time"

	"modelrelay/storage/signatures"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

func TestStore(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	here, there := signatures.New(client, nil), signatures.New(client, nil)
	t.Cleanup(there.Close)
	mine := signatures.Owner{ID: "tok_1", Key: "sk-mine"}
	here.Keep(mine, "call_1", []byte("my state"))
	here.Keep(mine, "call_2", []byte("more"))
	if got := here.Find(t.Context(), mine, []string{"call_0", "call_1"}); len(got) != 1 || string(got["call_1"]) != "my state" {
		t.Errorf("got %q in the process that keeps it", got)
	}
	testwait.Eventually(t, "the entries in another process", storagetest.Patience, func() bool {
		got := there.Find(t.Context(), mine, []string{"call_1", "call_2", "call_3"})
		return len(got) == 2 && string(got["call_2"]) == "more"
	})
	for _, other := range []signatures.Owner{{ID: "tok_1", Key: "sk-rotated"}, {ID: "tok_2", Key: "sk-mine"}, {ID: "tok_1"}, {}} {
		for _, store := range []*signatures.Store{here, there} {
			if got := store.Find(t.Context(), other, []string{"call_1"}); len(got) != 0 {
				t.Errorf("%+v reads %q", other, got)
			}
		}
	}
	if dump := server.Dump(); strings.Contains(dump, "my state") || strings.Contains(dump, "sk-mine") || strings.Contains(dump, "call_1") {
		t.Errorf("redis shows the stored text: %s", dump)
	}
	here.Keep(mine, "call_3", []byte("last words"))
	here.Close() // writes them
	if got := there.Find(t.Context(), mine, []string{"call_3"}); string(got["call_3"]) != "last words" {
		t.Errorf("got %q of a process that has ended", got)
	}
	server.FastForward(25 * time.Hour)
	if got := there.Find(t.Context(), mine, []string{"call_1", "call_3"}); len(got) != 0 {
		t.Errorf("got %q after a day", got)
	}
	server.Close()
	if got := there.Find(t.Context(), mine, []string{"call_1"}); len(got) != 0 {
		t.Errorf("got %q with redis away", got)
	}
	there.Keep(mine, "call_4", []byte("here"))
}

// TestManyNames: of more names than one call may look for the last are found, in several round trips.
func TestManyNames(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	here, there := signatures.New(client, nil), signatures.New(client, nil)
	t.Cleanup(there.Close)
	mine := signatures.Owner{ID: "tok_1", Key: "sk-mine"}
	var names []string
	for i := range 20_000 {
		names = append(names, fmt.Sprint("call_", i))
	}
	for _, name := range []string{names[0], names[19_000], names[19_800], names[19_999]} {
		here.Keep(mine, name, []byte(name))
	}
	here.Close()
	if got := there.Find(t.Context(), mine, names); len(got) != 2 || string(got["call_19800"]) != "call_19800" ||
		string(got["call_19999"]) != "call_19999" {
		t.Errorf("got %q", got)
	}
}

// TestEachDayEnds: an entry of a day ago is not found, although later entries of its token keep it in Redis.
func TestEachDayEnds(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	mine := signatures.Owner{ID: "tok_1", Key: "sk-mine"}
	store := signatures.New(client, nil)
	store.Keep(mine, "old", []byte("old"))
	store.Close()
	for _, key := range server.Keys() {
		if names, err := server.ZMembers(key); err == nil {
			if _, err := server.ZAdd(key, float64(time.Now().Add(-24*time.Hour-time.Second).UnixMilli()), names[0]); err != nil {
				t.Fatal(err)
			}
		}
	}
	store = signatures.New(client, nil)
	t.Cleanup(store.Close)
	store.Keep(mine, "new", []byte("new"))
	if got := store.Find(t.Context(), mine, []string{"old", "new"}); len(got) != 1 || string(got["new"]) != "new" {
		t.Errorf("got %q, want the entry of today", got)
	}
}

// TestOldestMakesRoom: what one token keeps is bounded, and the newest stays.
func TestOldestMakesRoom(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	mine := signatures.Owner{ID: "tok_1", Key: "sk-mine"}
	entry := bytes.Repeat([]byte("x"), 1<<20)
	for i := range 20 {
		store := signatures.New(client, nil)
		store.Keep(mine, fmt.Sprint(i), entry)
		store.Close()
	}
	store := signatures.New(client, nil)
	t.Cleanup(store.Close)
	for i := range 20 { // one by one: what takes longer than a moment is not found
		name := fmt.Sprint(i)
		if got := store.Find(t.Context(), mine, []string{name}); (got[name] != nil) != (i >= 5) {
			t.Errorf("%d. entry of 1 MiB is found: %t; want the last 15 of 16 MiB with their seals", i+1, got[name] != nil)
		}
	}
}
