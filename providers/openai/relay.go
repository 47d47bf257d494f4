// Package openai adapts upstreams with OpenAI's API: its own, and the many compatible ones.
package openai

import (
	"cmp"
	"context"
	"net/http"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Relayer sends calls in OpenAI's format. It is safe for concurrent use.
type Relayer struct {
	client     *http.Client
	operations map[providers.Operation]operation
}

// NewRelayer returns a relayer over the process's client.
func NewRelayer(client *http.Client) *Relayer {
	return &Relayer{client: client, operations: operations()}
}

// Endpoints returns the endpoints that the relayer serves.
func Endpoints() []providers.Endpoint {
	var endpoints []providers.Endpoint
	for name, operation := range operations() {
		if !operation.unasked {
			endpoints = append(endpoints, providers.Endpoint{Format: providers.OpenAI, Operation: name})
		}
	}
	return endpoints
}

// Takes returns the endpoints to which calls of other formats can be translated, best first.
func Takes() []providers.Endpoint {
	return []providers.Endpoint{
		{Format: providers.OpenAI, Operation: providers.Responses},
		{Format: providers.OpenAI, Operation: providers.Chat},
		{Format: providers.OpenAI, Operation: providers.InputTokens},
		{Format: providers.OpenAI, Operation: providers.Embeddings},
	}
}

// Usage returns where the answers of the endpoints contain usage, and the events of a conversation.
func Usage() map[providers.Endpoint]providers.UsageShape {
	shapes := providers.UsageShapes(providers.OpenAI, operations(), func(o operation) providers.UsageShape { return o.usage })
	shapes[providers.RealtimeSession()] = realtimeUsage()
	return shapes
}

// Relay implements providers.Relayer.
func (r *Relayer) Relay(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
	operation, ok := r.operations[call.Endpoint.Operation]
	if !ok || call.Endpoint.Format != providers.OpenAI {
		return nil, providers.Faultf(providers.Internal, "The gateway sent a call to a vendor that does not serve it.")
	}
	req, err := upstream.NewPost(ctx, to.Channel.BaseURL+operation.path, call.Payload(to.Model))
	if err != nil {
		return nil, err
	}
	answers := operation.answers
	if call.Stream && operation.streams != nil {
		answers = operation.streams
	}
	req.Header = upstream.Header(
		"Authorization", "Bearer "+to.Key.Reveal(),
		"Content-Type", cmp.Or(call.ContentType, typeJSON),
		"Accept", strings.Join(answers, ", "),
		"User-Agent", upstream.Agent(r.client),
	)
	// Beta opts into features. Headers for an organization or a project are not sent, because they belong to the client's key.
	if beta := call.Header.Values("OpenAI-Beta"); len(beta) > 0 {
		req.Header["Openai-Beta"] = beta
	}
	resp, err := upstream.SendCall(r.client, req, call, answers...)
	return resp, upstream.Refine(err, providers.OpenAI, classify)
}

// Check implements providers.Checker, with the list of models.
func (r *Relayer) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	return upstream.NewJobs(r.client, upstream.JobVendor{Name: "openai", Classify: classify}).CheckModels(ctx, to, "/models", models)
}
