package openai

import (
	"context"
	"net/http"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Stored implements providers.StoredReader, of responses.
func (r *Relayer) Stored(ctx context.Context, to providers.Target, request providers.StoredRequest) (*http.Response, error) {
	header := upstream.Header("Authorization", "Bearer "+to.Key.Reveal(), "User-Agent", upstream.Agent(r.client))
	resp, err := upstream.SendStored(ctx, r.client, to.Channel.BaseURL+"/responses", request, header)
	return resp, upstream.Refine(err, providers.OpenAI, classify)
}
