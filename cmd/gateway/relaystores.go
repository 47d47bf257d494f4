package main

import (
	"context"
	"net/url"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/translate"
	"modelrelay/storage/affinity"
	"modelrelay/storage/recall"
)

// responseAffinity keeps in the store which key made which response, for which token: "@<token> <fingerprint> <channel>". Older
// versions, whose entries live for a day, left the token out: such a response belongs to nobody, and any token may continue it.
type responseAffinity struct{ store *affinity.Store }

// ownerMark stands in front of the token; no fingerprint begins with it.
const ownerMark = "@"

// Remember implements relay.Makers.
func (a responseAffinity) Remember(response string, by relay.Maker) {
	a.store.Remember(response, ownerMark+url.QueryEscape(by.Token)+" "+by.Fingerprint+" "+by.Channel)
}

// Find implements relay.Makers.
func (a responseAffinity) Find(ctx context.Context, response string) relay.Maker {
	entry := a.store.Find(ctx, response)
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
