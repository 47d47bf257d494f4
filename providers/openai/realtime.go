package openai

import (
	"context"
	"maps"
	"net/http"
	"net/url"

	"modelrelay/providers"
)

// Realtime opens conversations of the realtime API. It is safe for concurrent use.
type Realtime struct{ client *http.Client }

// NewRealtime returns a dialer that uses the process's client to upstreams.
func NewRealtime(client *http.Client) *Realtime { return &Realtime{client: client} }

// realtimeUsage says where the events of a conversation count tokens: response.done, and the completed transcription of
// the input, which a model of its own makes.
func realtimeUsage() providers.UsageShape {
	return providers.UsageShape{
		Input:  []string{"response.usage.input_tokens", "usage.input_tokens"},
		Cached: []string{"response.usage.input_token_details.cached_tokens"},
		Output: []string{"response.usage.output_tokens", "usage.output_tokens"},
	}
}

// DialRealtime implements providers.Dialer. The key travels as the vendor's own SDK sends it outside of a browser, in
// the header; no subprotocol is offered.
func (r *Realtime) DialRealtime(ctx context.Context, to providers.Target, call providers.RealtimeCall) (*providers.Socket, error) {
	query := make(url.Values, len(call.Query)+1)
	maps.Copy(query, call.Query)
	query.Set("model", to.Model)
	header := http.Header{
		"Authorization": {"Bearer " + to.Key.Reveal()},
		"User-Agent":    {providers.Agent},
	}
	if beta := call.Header.Values("OpenAI-Beta"); len(beta) > 0 {
		header["Openai-Beta"] = beta
	}
	socket, err := providers.DialSocket(ctx, r.client, to.Channel.BaseURL+"/realtime?"+query.Encode(), header)
	if err != nil {
		return nil, refine(err)
	}
	return socket, nil
}
