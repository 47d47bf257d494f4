package gemini

import (
	"context"
	"net/http"
	"net/url"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Kept implements providers.Keeper, of interactions.
func (r *Relayer) Kept(ctx context.Context, to providers.Target, kept providers.Kept) (*http.Response, error) {
	method, address := http.MethodGet, to.Channel.BaseURL+"/v1beta/interactions/"+url.PathEscape(kept.ID)
	switch kept.Do {
	case providers.KeptCancel:
		method, address = http.MethodPost, address+"/cancel"
	case providers.KeptDelete:
		method = http.MethodDelete
	case providers.KeptGet:
		if len(kept.Query) > 0 {
			address += "?" + kept.Query.Encode()
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, &providers.Fault{
			Kind: providers.Upstream, Message: "The channel's address cannot be used.", Accepted: providers.NotAccepted, Blame: providers.BlameChannel, Err: err,
		}
	}
	answer := "application/json"
	if kept.Stream {
		answer = "text/event-stream"
	}
	req.Header = http.Header{"X-Goog-Api-Key": {to.Key.Reveal()}, "Accept": {answer}, "User-Agent": {upstream.Agent(r.client)}}
	resp, err := upstream.Send(r.client, req)
	return resp, upstream.Refine(err, providers.Gemini, classify)
}
