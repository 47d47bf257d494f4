// Package openai adapts upstreams that speak OpenAI's API: its own, and the many that copy it.
//
// It must not import anything of the product but providers.
package openai

import (
	"cmp"
	"context"
	"net/http"
	"slices"

	"modelrelay/providers"
)

// Relayer sends calls in OpenAI's format. It is safe for concurrent use.
type Relayer struct {
	client     *http.Client
	operations map[providers.Operation]operation
}

// operation is how one operation is called.
type operation struct {
	// path follows the channel's base URL.
	path string
	// answers are the media types of an answer that is not streamed.
	answers []string
	// usage says where the answer counts tokens, streamed or not.
	usage providers.UsageShape
}

// operations is the table of what this vendor serves.
func operations() map[providers.Operation]operation {
	return map[providers.Operation]operation{
		providers.Chat: {
			path:    "/chat/completions",
			answers: []string{"application/json"},
			usage: providers.UsageShape{
				Input:   []string{"usage.prompt_tokens"},
				Cached:  []string{"usage.prompt_tokens_details.cached_tokens"},
				Output:  []string{"usage.completion_tokens"},
				Content: "choices",
			},
		},
	}
}

// NewRelayer returns a relayer that sends through the process's client to upstreams.
func NewRelayer(client *http.Client) *Relayer {
	return &Relayer{client: client, operations: operations()}
}

// Endpoints are what the relayer takes.
func Endpoints() []providers.Endpoint {
	var endpoints []providers.Endpoint
	for name := range operations() {
		endpoints = append(endpoints, providers.Endpoint{Format: providers.OpenAI, Operation: name})
	}
	return endpoints
}

// Usage says where the answers of the endpoints count tokens.
func Usage() map[providers.Endpoint]providers.UsageShape {
	shapes := make(map[providers.Endpoint]providers.UsageShape)
	for name, operation := range operations() {
		shapes[providers.Endpoint{Format: providers.OpenAI, Operation: name}] = operation.usage
	}
	return shapes
}

// Relay implements providers.Relayer.
func (r *Relayer) Relay(ctx context.Context, to providers.Target, call providers.Call) (*http.Response, error) {
	operation, ok := r.operations[call.Endpoint.Operation]
	if !ok || call.Endpoint.Format != providers.OpenAI {
		return nil, providers.Faultf(providers.Internal, "The gateway sent a call to a vendor that does not serve it.")
	}
	payload := call.Payload(to.Model)
	req, err := http.NewRequestWithContext(ctx, http.MethodPost, to.Channel.BaseURL+operation.path, payload.Reader())
	if err != nil {
		return nil, &providers.Fault{
			Kind: providers.Upstream, Message: "The channel's address cannot be used.",
			Taken: providers.TakenNo, Blame: providers.BlameChannel, Err: err,
		}
	}
	req.ContentLength = payload.Len()
	answers := operation.answers
	if call.Stream {
		answers = []string{"text/event-stream"}
	}
	req.Header = http.Header{
		"Authorization": {"Bearer " + to.Key.Reveal()},
		"Content-Type":  {cmp.Or(call.ContentType, "application/json")},
		"Accept":        answers,
		"User-Agent":    {providers.Agent},
	}
	// Beta opts into features. What names an organization or a project belongs to the key, which is not the client's.
	if beta := call.Header.Values("OpenAI-Beta"); len(beta) > 0 {
		req.Header["Openai-Beta"] = beta
	}
	resp, err := providers.Send(r.client, req)
	if err != nil {
		return nil, refine(err)
	}
	if !slices.Contains(answers, providers.MediaType(resp.Header)) {
		_ = resp.Body.Close() // the answer is of no use
		return nil, &providers.Fault{
			Kind: providers.Upstream, Message: "The upstream answered with a content type that is not the operation's.",
			Blame: providers.BlameChannel,
		}
	}
	return resp, nil
}
