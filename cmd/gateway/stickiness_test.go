package main_test

import (
	"testing"

	main "modelrelay/cmd/gateway"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/storage/stickiness"
	"modelrelay/storage/storagetest"
)

// TestStickiness: what is stored about an answer is read back.
func TestStickiness(t *testing.T) {
	t.Parallel()
	store := stickiness.New(storagetest.Redis(t), nil)
	t.Cleanup(store.Close)
	makers := main.NewStickiness(store)
	key := providers.KeyRef{Channel: "a channel", Fingerprint: "0123456789ab"}
	makers.Remember("resp_1", relay.Origin{KeyRef: key, Token: "a token@x"})
	for id, want := range map[string]relay.Origin{
		"resp_1": {KeyRef: key, Token: "a token@x"}, "resp_none": {},
	} {
		if got := makers.Find(t.Context(), id)[0]; got != want {
			t.Errorf("%s: got %+v, want %+v", id, got, want)
		}
	}
}
