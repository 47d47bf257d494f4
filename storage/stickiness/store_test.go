package stickiness_test

import (
	"testing"
	"testing/synctest"
	"time"

	"modelrelay/storage/stickiness"
	"modelrelay/storage/storagetest"
	"modelrelay/storage/testwait"
)

func TestStore(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	client := storagetest.Client(t, "redis://"+server.Addr())
	here, there := stickiness.New(client, nil), stickiness.New(client, nil)
	t.Cleanup(there.Close)
	here.Remember("resp_1", "key channel")
	if got := here.Find(t.Context(), "resp_1")[0]; got != "key channel" {
		t.Errorf("got %q in the process that recorded it", got)
	}
	testwait.Eventually(t, "the maker in another process", storagetest.Patience,
		func() bool { return there.Find(t.Context(), "resp_1")[0] == "key channel" })
	for _, name := range []string{"resp_2", "", string(make([]byte, 10_000))} {
		if got := there.Find(t.Context(), name)[0]; got != "" {
			t.Errorf("got %q for an unknown answer", got)
		}
	}
	there.Remember("resp_1", "another") // the first entry stays
	here.Remember("resp_4", "own")
	if got := here.Find(t.Context(), "resp_4", "resp_2", "resp_1"); len(got) != 3 || got[0] != "own" || got[1] != "" ||
		got[2] != "key channel" {
		t.Errorf("got %q for several", got)
	}
	here.Remember("resp_3", "last words")
	here.Close() // writes them
	if got := there.Find(t.Context(), "resp_3")[0]; got != "last words" {
		t.Errorf("got %q of a process that has ended", got)
	}
	server.FastForward(25 * time.Hour)
	late := stickiness.New(client, nil)
	t.Cleanup(late.Close)
	if got := late.Find(t.Context(), "resp_1")[0]; got != "" {
		t.Errorf("got %q after a day", got)
	}
	server.Close()
	if got := there.Find(t.Context(), "resp_1")[0]; got != "key channel" {
		t.Errorf("got %q with redis away", got)
	}
	for range 30_000 { // more than the cache holds: it removes the oldest entries
		there.Remember("other", "x")
	}
	there.Remember("young", "y")
	if got := there.Find(t.Context(), "young")[0]; got != "y" {
		t.Errorf("got %q", got)
	}
}

// TestFindIsFastWithoutRedis: without Redis, Find returns "" at once for an answer that this process does not know.
func TestFindIsFastWithoutRedis(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		server := storagetest.NewServer(t)
		store := stickiness.New(server.Client(t), nil)
		t.Cleanup(store.Close)
		server.Leave()
		began := time.Now()
		for range 100 {
			if got := store.Find(t.Context(), "resp_9")[0]; got != "" {
				t.Errorf("got %q for an unknown answer", got)
			}
		}
		if took := time.Since(began); took > time.Second {
			t.Errorf("100 questions took %s", took)
		}
	})
}
