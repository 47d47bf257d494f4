package main

import (
	"context"

	"modelrelay/providers/translate"
	"modelrelay/storage/recall"
)

// recollections keep in the store what upstreams of other formats want back of chat clients.
type recollections struct{ store *recall.Store }

func ownerOf(caller translate.Caller) recall.Owner {
	return recall.Owner{ID: caller.ID, Key: caller.Key.Reveal()}
}

// Keep implements translate.Recall.
func (m recollections) Keep(caller translate.Caller, name string, entry []byte) {
	m.store.Keep(ownerOf(caller), name, entry)
}

// Find implements translate.Recall.
func (m recollections) Find(ctx context.Context, caller translate.Caller, names []string) map[string][]byte {
	return m.store.Find(ctx, ownerOf(caller), names)
}
