package storagetest

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"testing"

	"modelrelay/storage/archive"
)

// testClaim: of concurrent owners, one gets the key until it is deleted, and all get the same answer.
func testClaim(t *testing.T, store Store, prefix string) {
	t.Helper()
	for round := range 10 {
		key := fmt.Sprintf("%sclaim/%d", prefix, round)
		var group sync.WaitGroup
		var mu sync.Mutex
		holders := make(map[string]int)
		for i := range 8 {
			group.Go(func() {
				holder, err := store.Claim(t.Context(), key, fmt.Sprint("owner ", i))
				if err != nil {
					t.Error(err)
				}
				mu.Lock()
				defer mu.Unlock()
				holders[holder]++
			})
		}
		group.Wait()
		if len(holders) != 1 {
			t.Errorf("%s is held by %v", key, holders)
		}
		for holder := range holders {
			if again, err := store.Claim(t.Context(), key, holder); err != nil || again != holder {
				t.Errorf("claimed again: %q, %v, want %q", again, err, holder)
			}
		}
	}
	key := prefix + "claim/0"
	if err := store.Delete(t.Context(), key); err != nil {
		t.Fatal(err)
	}
	if holder, err := store.Claim(t.Context(), key, "next"); err != nil || holder != "next" {
		t.Errorf("after a delete: %q, %v", holder, err)
	}
	if _, err := store.Claim(t.Context(), key, ""); err == nil {
		t.Error("nobody holds a key")
	}
	if _, err := store.Claim(t.Context(), "../x", "me"); !errors.Is(err, archive.ErrKey) {
		t.Errorf("a bad key: %v, want ErrKey", err)
	}
	ended, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := store.Claim(ended, prefix+"claim/late", "me"); !errors.Is(err, context.Canceled) {
		t.Errorf("canceled: %v", err)
	}
}
