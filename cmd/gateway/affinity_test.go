package main_test

import (
	"testing"

	main "modelrelay/cmd/gateway"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/storage/affinity"
	"modelrelay/storage/storagetest"
)

// What older versions took down of an answer is read as before, and belongs to nobody.
func TestAffinityOfOlderVersions(t *testing.T) {
	t.Parallel()
	store := affinity.New(storagetest.Redis(t), nil)
	t.Cleanup(store.Close)
	makers := main.NewAffinity(store)
	key := providers.KeyRef{Channel: "a channel", Fingerprint: "0123456789ab"}
	store.Remember("resp_old", "0123456789ab a channel")
	makers.Remember("resp_new", relay.Maker{KeyRef: key, Token: "a token@x"})
	for id, want := range map[string]relay.Maker{
		"resp_old": {KeyRef: key}, "resp_new": {KeyRef: key, Token: "a token@x"}, "resp_none": {},
	} {
		if got := makers.Find(t.Context(), id); got != want {
			t.Errorf("%s: got %+v, want %+v", id, got, want)
		}
	}
}
