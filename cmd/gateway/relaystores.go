package main

import (
	"context"
	"net/url"
	"strings"
	"time"

	"modelrelay/api/openai"
	"modelrelay/providers"
	"modelrelay/providers/relay"
	"modelrelay/providers/translate"
	"modelrelay/storage/responses"
	"modelrelay/storage/signatures"
	"modelrelay/storage/stickiness"
)

// stickyResponses stores the origin of a response, as "<token> <fingerprint> <channel>".
type stickyResponses struct{ store *stickiness.Store }

// Remember implements relay.Origins.
func (a stickyResponses) Remember(response string, by relay.Origin) {
	a.store.Remember(response, url.QueryEscape(by.Token)+" "+by.Fingerprint+" "+by.Channel)
}

// Find implements relay.Origins.
func (a stickyResponses) Find(ctx context.Context, responses ...string) []relay.Origin {
	origins := make([]relay.Origin, len(responses))
	for i, stored := range a.store.Find(ctx, responses...) {
		token, rest, _ := strings.Cut(stored, " ")
		fingerprint, channel, _ := strings.Cut(rest, " ")
		if token, err := url.QueryUnescape(token); err == nil {
			origins[i] = relay.Origin{KeyRef: providers.KeyRef{Channel: channel, Fingerprint: fingerprint}, Token: token}
		}
	}
	return origins
}

// responseStore stores the responses of translated models.
type responseStore struct {
	store     *responses.Store
	retention time.Duration
}

// newResponseStore returns nil if responses are not stored.
func newResponseStore(store *responses.Store, retention time.Duration) translate.ResponseStore {
	if retention <= 0 {
		return nil
	}
	return responseStore{store, retention}
}

// Store implements translate.ResponseStore. The store logs an outage of Redis.
func (a responseStore) Store(ctx context.Context, token string, response translate.Response) bool {
	stored := responses.Response{Object: response.Object, Earlier: response.Earlier, Input: response.Input}
	for id, item := range response.Items() {
		stored.Items = append(stored.Items, responses.Item{ID: id, JSON: item})
	}
	return a.store.Save(ctx, token, response.ID, stored, a.retention) == nil
}

// MaxSize implements translate.ResponseStore.
func (responseStore) MaxSize() int { return responses.MaxSize }

// signatureCache stores what upstreams of other formats require chat clients to send back.
type signatureCache struct{ store *signatures.Store }

func ownerOf(caller translate.Caller) signatures.Owner {
	return signatures.Owner{ID: caller.ID, Key: caller.Key.Reveal()}
}

// Store implements translate.SignatureCache.
func (m signatureCache) Store(caller translate.Caller, name string, entry []byte) {
	m.store.Keep(ownerOf(caller), name, entry)
}

// Find implements translate.SignatureCache.
func (m signatureCache) Find(ctx context.Context, caller translate.Caller, names []string) map[string][]byte {
	return m.store.Find(ctx, ownerOf(caller), names)
}

// saveResponse stores background responses in the same way as those of translated models.
func saveResponse(store translate.ResponseStore) openai.ResponseSaver {
	return func(ctx context.Context, token, id string, object, earlier, input []byte) {
		store.Store(ctx, token, translate.Response{ID: id, Object: object, Earlier: earlier, Input: input})
	}
}
