package gemini

import (
	"context"
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Stored implements providers.StoredReader, of interactions.
func (r *Relayer) Stored(ctx context.Context, to providers.Target, request providers.StoredRequest) (*http.Response, error) {
	header := upstream.Header("X-Goog-Api-Key", to.Key.Reveal(), "User-Agent", upstream.Agent(r.client))
	resp, err := upstream.SendStored(ctx, r.client, to.Channel.BaseURL+"/v1beta/interactions", request, header)
	return resp, upstream.Refine(err, providers.Gemini, classify)
}
