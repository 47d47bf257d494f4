package gemini

import (
	"context"
	"net/http"
	"net/url"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/upstream"
)

// Stored implements providers.StoredReader, of interactions.
func (r *Relayer) Stored(ctx context.Context, to providers.Target, request providers.StoredRequest) (*http.Response, error) {
	header := upstream.Header("X-Goog-Api-Key", to.Key.Reveal(), "User-Agent", upstream.Agent(r.client))
	resp, err := upstream.SendStored(ctx, r.client, to.Channel.BaseURL+"/v1beta/interactions", request, header)
	return resp, upstream.Refine(err, providers.Gemini, classify)
}

// Progress implements providers.Ticketer: Interaction and InteractionSSEEvent of @google/genai 3.1.0. An error ends a stream.
func (r *Relayer) Progress(_ http.Header, data []byte) (progress providers.Progress) {
	interaction := rawjson.Trim(data)
	if kind := interaction.Get("event_type").Text(); !kind.Empty() {
		made := interaction.Get("interaction").Get("id").Text()
		return providers.Progress{
			ID: made.String(), Event: interaction.Get("event_id").Text().String(), Ended: kind.Is("interaction.completed") || kind.Is("error"),
			Shown: true,
		}
	}
	status := interaction.Get("status").Text()
	return providers.Progress{
		ID: interaction.Get("id").Text().String(), Shown: !status.Empty(), Ended: !status.Empty() && !status.Is("in_progress") &&
			!status.Is("queued"),
	}
}

// Resume implements providers.Ticketer.
func (r *Relayer) Resume(after string) url.Values {
	query := url.Values{"stream": {"true"}}
	if after != "" {
		query.Set("last_event_id", after)
	}
	return query
}
