// Package anthropic adapts upstreams with Anthropic's Messages API.
package anthropic

import (
	"cmp"
	"context"
	"errors"
	"net/http"
	"net/url"
	"slices"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// defaultVersion is the wire version of a call without one. It is that of the vendor's SDKs.
const defaultVersion = "2023-06-01"

// Relayer sends calls in Anthropic's format. It is safe for concurrent use.
type Relayer struct {
	client     *http.Client
	operations map[providers.Operation]operation
}

type operation struct {
	// path follows the channel's base URL, which has no version, as in the SDKs.
	path string
	// usage describes the usage in the answer, streamed or not.
	usage providers.UsageShape
}

func operations() map[providers.Operation]operation {
	return map[providers.Operation]operation{
		providers.Messages: {
			path: "/v1/messages",
			// A stream counts its input in message_start, below "message", and its output in message_delta, which may repeat the
			// input. input_tokens does not include tokens that are read from or written to the cache.
			usage: providers.UsageShape{
				Input: []string{
					"usage.input_tokens|message.usage.input_tokens", "usage.cache_read_input_tokens|message.usage.cache_read_input_tokens",
					"usage.cache_creation_input_tokens|message.usage.cache_creation_input_tokens",
				},
				Cached: []string{"usage.cache_read_input_tokens|message.usage.cache_read_input_tokens"},
				Output: []string{"usage.output_tokens|message.usage.output_tokens"},
				Ends:   []string{`"type":"message_stop"`, `"type":"error"`},
				// The container of executed code. A later call cannot continue a message itself.
				Answer: []string{"container.id", "message.container.id", "delta.container.id"},
				// Files that the code wrote, in the result of its tool. A later call may send one to the model.
				Created:     []string{"content[].content.content[].file_id", "content_block.content.content[].file_id"},
				CreatedMark: `"file_id":`,
			},
		},
		providers.CountTokens: {path: "/v1/messages/count_tokens"},
	}
}

// NewRelayer returns a relayer over the process's client.
func NewRelayer(client *http.Client) *Relayer {
	return &Relayer{client: client, operations: operations()}
}

// Endpoints returns the endpoints that the relayer serves.
func Endpoints() []providers.Endpoint { return providers.Endpoints(providers.Anthropic, operations()) }

// Usage returns where the answers of the endpoints contain usage.
func Usage() map[providers.Endpoint]providers.UsageShape {
	return providers.UsageShapes(providers.Anthropic, operations(), func(o operation) providers.UsageShape { return o.usage })
}

// CheckBaseURL refuses an address that the vendor's SDKs would not accept. The SDK adds the version.
func CheckBaseURL(base *url.URL) error {
	path := strings.TrimRight(base.Path, "/")
	if strings.HasSuffix(path, "/v1") || strings.HasSuffix(path, "/v1/messages") {
		return errors.New("must not end in /v1: this vendor's SDK adds it")
	}
	return nil
}

// Relay implements providers.Relayer.
func (r *Relayer) Relay(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
	operation, ok := r.operations[call.Endpoint.Operation]
	if !ok || call.Endpoint.Format != providers.Anthropic {
		return nil, providers.Faultf(providers.Internal, "The gateway sent a call to a vendor that does not serve it.")
	}
	req, err := upstream.NewPost(ctx, to.Channel.BaseURL+operation.path, call.Payload(to.Model))
	if err != nil {
		return nil, err
	}
	answer := "application/json"
	if call.Stream {
		answer = "text/event-stream"
	}
	req.Header = upstream.Header(
		"X-Api-Key", to.Key.Reveal(),
		"Anthropic-Version", cmp.Or(call.Header.Get("Anthropic-Version"), defaultVersion),
		"Content-Type", "application/json",
		"Accept", answer,
		"User-Agent", upstream.Agent(r.client),
	)
	if beta := call.Header.Values("Anthropic-Beta"); len(beta) > 0 {
		req.Header["Anthropic-Beta"] = slices.Clone(beta)
	}
	resp, err := upstream.SendCall(r.client, req, call, answer)
	return resp, upstream.Refine(err, providers.Anthropic, classify)
}

// Check implements providers.Checker, with the list of models.
func (r *Relayer) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	list := upstream.NewJobs(r.client, upstream.JobVendor{
		Name: "anthropic", Classify: classify,
		Authorize: func(req *http.Request, key providers.Secret) error {
			req.Header["X-Api-Key"], req.Header["Anthropic-Version"] = []string{key.Reveal()}, []string{defaultVersion}
			return nil
		},
	})
	return list.CheckModels(ctx, to, "/v1/models?limit=1000", models)
}
