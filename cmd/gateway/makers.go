package main

import (
	"context"
	"strings"

	"modelrelay/providers"
	"modelrelay/storage"
)

// makers keeps the keys that made answers in the store.
type makers struct{ store *storage.Makers }

// Remember implements relay.Makers.
func (m makers) Remember(answer string, by providers.KeyRef) {
	m.store.Remember(answer, by.Fingerprint+" "+by.Channel)
}

// Find implements relay.Makers.
func (m makers) Find(ctx context.Context, answer string) providers.KeyRef {
	fingerprint, channel, _ := strings.Cut(m.store.Find(ctx, answer), " ")
	return providers.KeyRef{Channel: channel, Fingerprint: fingerprint}
}
