package gemini

import (
	"context"
	"net/http"
	"net/url"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Stored implements providers.StoredReader, of interactions.
func (r *Relayer) Stored(ctx context.Context, to providers.Target, request providers.StoredRequest) (*http.Response, error) {
	method, address := http.MethodGet, to.Channel.BaseURL+"/v1beta/interactions/"+url.PathEscape(request.ID)
	switch request.Do {
	case providers.StoredCancel:
		method, address = http.MethodPost, address+"/cancel"
	case providers.StoredDelete:
		method = http.MethodDelete
	case providers.StoredGet:
		if len(request.Query) > 0 {
			address += "?" + request.Query.Encode()
		}
	}
	req, err := http.NewRequestWithContext(ctx, method, address, nil)
	if err != nil {
		return nil, &providers.Fault{
			Kind: providers.Upstream, Message: "The channel's address cannot be used.", Accepted: providers.NotAccepted, Blame: providers.BlameChannel, Err: err,
		}
	}
	answer := "application/json"
	if request.Stream {
		answer = "text/event-stream"
	}
	req.Header = http.Header{"X-Goog-Api-Key": {to.Key.Reveal()}, "Accept": {answer}, "User-Agent": {upstream.Agent(r.client)}}
	resp, err := upstream.Send(r.client, req)
	return resp, upstream.Refine(err, providers.Gemini, classify)
}
