package responses_test

import (
	"bytes"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"modelrelay/storage"
	"modelrelay/storage/responses"
	"modelrelay/storage/storagetest"
)

const mine, theirs = "tok_1", "tok:{2}"

func response(text string, items ...string) responses.Response {
	r := responses.Response{Object: []byte(`{"output":[]}`), Earlier: []byte(`{"a":1},{"b":2}`), Input: []byte(text)}
	for _, item := range items {
		r.Items = append(r.Items, responses.Item{ID: item, JSON: []byte(`{"id":"` + item + `"}`)})
	}
	return r
}

// anyRoom takes items of any size.
func anyRoom(int) error { return nil }

func save(t *testing.T, store *responses.Store, token, id string, r responses.Response) {
	t.Helper()
	if err := store.Save(t.Context(), token, id, r, time.Hour); err != nil {
		t.Fatalf("save %s: %v", id, err)
	}
}

// items returns the ids of the items that the token has.
func items(t *testing.T, store *responses.Store, token string, ids ...string) (found []string) {
	t.Helper()
	all, err := store.Items(t.Context(), token, ids, anyRoom)
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if all[id] != nil {
			found = append(found, id)
		}
	}
	return found
}

func TestStore(t *testing.T) {
	t.Parallel()
	client := storagetest.Redis(t)
	store, other := responses.New(client, nil), responses.New(client, nil)
	save(t, store, mine, "resp_1", response(`"first"`, "msg_1", "fc_1"))
	save(t, store, mine, "resp_2", response(`"second"`, "msg_2", "not an id", ""))
	save(t, store, theirs, "resp_3", response(`"third"`, "msg_3"))

	got, err := other.Find(t.Context(), mine, "resp_1")
	if err != nil || string(got.Object) != `{"output":[]}` || string(got.Earlier) != `{"a":1},{"b":2}` || string(got.Input) != `"first"` ||
		got.Items != nil {
		t.Errorf("got %+v, %v", got, err)
	}
	if got := items(t, other, mine, "msg_2", "msg_1", "msg_3", "fc_1", "", "not an id"); fmt.Sprint(got) != "[msg_2 msg_1 fc_1]" {
		t.Errorf("found the items %v", got)
	}
	for _, of := range []struct{ token, id string }{
		{mine, "resp_3"},
		{theirs, "resp_1"},
		{mine, "resp_4"},
		{mine, ""},
		{mine, "resp 1"},
		{mine, strings.Repeat("x", 1000)},
	} {
		if _, err := store.Find(t.Context(), of.token, of.id); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s finds %q: %v", of.token, of.id, err)
		}
		if err := store.Delete(t.Context(), of.token, of.id); !errors.Is(err, storage.ErrNotFound) {
			t.Errorf("%s deletes %q: %v", of.token, of.id, err)
		}
	}
	if err := store.Delete(t.Context(), mine, "resp_1"); err != nil {
		t.Error(err)
	}
	if _, err := other.Find(t.Context(), mine, "resp_1"); !errors.Is(err, storage.ErrNotFound) {
		t.Errorf("found after its deletion: %v", err)
	}
	if got := items(t, store, mine, "msg_1", "fc_1", "msg_2"); fmt.Sprint(got) != "[msg_2]" {
		t.Errorf("found the items %v after the deletion", got)
	}
}

// TestRoom: the size is known before items are read, and an error ends the search.
func TestRoom(t *testing.T) {
	t.Parallel()
	store := responses.New(storagetest.Redis(t), nil)
	save(t, store, mine, "resp_1", response("", "msg_1", "msg_2"))
	full, asked := errors.New("full"), 0
	if got, err := store.Items(t.Context(), mine, []string{"msg_1", "msg_2"},
		func(size int) error { asked = size; return full }); got != nil || !errors.Is(err, full) {
		t.Errorf("got %q, %v", got, err)
	}
	if want := 2 * len(`{"id":"msg_1"}`); asked != want {
		t.Errorf("room was asked for %d bytes, want %d", asked, want)
	}
	if got, err := store.Items(t.Context(), mine, []string{"msg_3"}, func(int) error { return full }); len(got) > 0 || err != nil {
		t.Errorf("got %q, %v where nothing is read", got, err)
	}
}

// TestEachExpires: each response and its items have the lifetime that they were saved with, whatever is saved later.
func TestEachExpires(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	now := time.Now()
	server.SetTime(now)
	store := responses.New(storagetest.Client(t, "redis://"+server.Addr()), nil)
	for id, life := range map[string]time.Duration{"resp_1": time.Hour, "resp_48": 48 * time.Hour} {
		if err := store.Save(t.Context(), mine, id, response("", "msg_of_"+id), life); err != nil {
			t.Fatal(err)
		}
	}
	later := func(by time.Duration) {
		now = now.Add(by)
		server.SetTime(now)
		server.FastForward(by)
	}
	later(2 * time.Hour)
	save(t, store, mine, "resp_2", response(""))
	for id, there := range map[string]bool{"resp_1": false, "resp_2": true, "resp_48": true} {
		if _, err := store.Find(t.Context(), mine, id); (err == nil) != there {
			t.Errorf("%s after two hours: %v", id, err)
		}
	}
	if got := items(t, store, mine, "msg_of_resp_1", "msg_of_resp_48"); fmt.Sprint(got) != "[msg_of_resp_48]" {
		t.Errorf("found the items %v after two hours", got)
	}
	if dump := server.Dump(); strings.Contains(dump, "resp_1 ") || strings.Contains(dump, "msg_of_resp_1\n") {
		t.Errorf("redis has what expired:\n%s", dump)
	}
	later(47 * time.Hour)
	if keys := server.Keys(); len(keys) > 0 {
		t.Errorf("%q are left after all expired", keys)
	}
}

// TestBounds: a response has a largest size, and all of a token together have one: those that expire first make room.
func TestBounds(t *testing.T) {
	t.Parallel()
	server, _ := storagetest.Miniredis(t)
	store := responses.New(storagetest.Client(t, "redis://"+server.Addr()), nil)
	large := responses.Response{Object: bytes.Repeat([]byte("x"), responses.MaxSize)}
	if err := store.Save(t.Context(), mine, "resp_large", large, time.Hour); !errors.Is(err, responses.ErrTooLarge) {
		t.Errorf("larger than the bound: %v", err)
	}
	large.Object = large.Object[:responses.MaxSize/2]
	large.Items = []responses.Item{{ID: "msg_1", JSON: large.Object}}
	if err := store.Save(t.Context(), mine, "resp_large", large, time.Hour); !errors.Is(err, responses.ErrTooLarge) {
		t.Errorf("larger than the bound with its items: %v", err)
	}
	large.Items = nil
	save(t, store, theirs, "resp_theirs", response(""))
	const count = 130
	for i := range count {
		if err := store.Save(t.Context(), mine, fmt.Sprint("resp_", i), large, time.Hour+time.Duration(i)*time.Second); err != nil {
			t.Fatal(err)
		}
		save(t, store, mine, "resp_again", response("")) // the same one again takes no more room
	}
	var first int
	for ; first < count; first++ {
		if _, err := store.Find(t.Context(), mine, fmt.Sprint("resp_", first)); err == nil {
			break
		}
	}
	if first != 3 { // 127 of half a MiB and their overhead
		t.Errorf("the first that is left is the %d.", first)
	}
	if _, err := store.Find(t.Context(), theirs, "resp_theirs"); err != nil {
		t.Errorf("another token's response: %v", err)
	}
	for _, key := range server.Keys() {
		if _, id, is := strings.Cut(key, ":h:"); is && id != "resp_theirs" {
			if err := store.Delete(t.Context(), mine, id); err != nil {
				t.Errorf("delete %s: %v", id, err)
			}
		}
	}
	if got := server.HGet(fmt.Sprintf("mr:responses:{%x}", mine), ""); got != "0" {
		t.Errorf("the total is %q without responses", got)
	}
}

// TestAway: while Redis is away, each method returns an error at once.
func TestAway(t *testing.T) {
	t.Parallel()
	server := storagetest.NewServer(t)
	store := responses.New(server.Client(t), nil)
	save(t, store, mine, "resp_1", response("", "msg_1"))
	server.Leave()
	for name, do := range map[string]func() error{
		"save":   func() error { return store.Save(t.Context(), mine, "resp_2", response(""), time.Hour) },
		"find":   func() error { _, err := store.Find(t.Context(), mine, "resp_1"); return err },
		"items":  func() error { _, err := store.Items(t.Context(), mine, []string{"msg_1"}, anyRoom); return err },
		"delete": func() error { return store.Delete(t.Context(), mine, "resp_1") },
	} {
		if err := do(); !errors.Is(err, storage.ErrUnavailable) {
			t.Errorf("%s: %v", name, err)
		}
	}
}
