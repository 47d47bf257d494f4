package main

import (
	"context"
	"net/url"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/storage"
)

// makers keeps who made which answer in the store: "@<token> <fingerprint> <channel>". Older versions, whose entries live for
// a day, left the token out: what they took down belongs to nobody, and whoever names it goes on from it as before.
type makers struct{ store *storage.Makers }

// ownerMark stands in front of the token; no fingerprint begins with it.
const ownerMark = "@"

// Remember implements relay.Makers.
func (m makers) Remember(answer string, by relay.Maker) {
	m.store.Remember(answer, ownerMark+url.QueryEscape(by.Token)+" "+by.Fingerprint+" "+by.Channel)
}

// Find implements relay.Makers.
func (m makers) Find(ctx context.Context, answer string) relay.Maker {
	entry := m.store.Find(ctx, answer)
	var maker relay.Maker
	if rest, owned := strings.CutPrefix(entry, ownerMark); owned {
		token, rest, _ := strings.Cut(rest, " ")
		maker.Token, _ = url.QueryUnescape(token)
		entry = rest
	}
	fingerprint, channel, _ := strings.Cut(entry, " ")
	maker.KeyRef = providers.KeyRef{Channel: channel, Fingerprint: fingerprint}
	return maker
}
