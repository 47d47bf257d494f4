// Package gemini adapts upstreams that speak Google's Gemini API.
//
// Of the product it imports providers and providers/upstream alone.
package gemini

import (
	"context"
	"errors"
	"net/http"
	"net/url"
	"strings"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

// Relayer sends calls in Gemini's format. It is safe for concurrent use.
type Relayer struct {
	client     *http.Client
	operations map[providers.Operation]operation
}

// operation is how one operation is called.
type operation struct {
	// verb follows the model in the path; of the one operation whose body names the model it is "", and path is its path.
	verb, path string
	// usage says where the answer counts tokens, streamed or not.
	usage providers.UsageShape
}

// operations is the table of what this vendor serves.
func operations() map[providers.Operation]operation {
	// Each event of a stream counts anew from the start. What was thought is billed as output.
	generated := providers.UsageShape{
		Input:  []string{"usageMetadata.promptTokenCount", "usageMetadata.toolUsePromptTokenCount"},
		Cached: []string{"usageMetadata.cachedContentTokenCount"},
		Output: []string{"usageMetadata.candidatesTokenCount", "usageMetadata.thoughtsTokenCount"},
		// Each part of an image names its type, whether the bytes are in it or elsewhere.
		ImageMark: `"mimeType":"image/`,
		FreeMark:  `"args":{`,
		Ends:      []string{`"finishReason":"`, `"blockReason":"`, `"error":{`},
	}
	embedded := providers.UsageShape{Input: []string{"usageMetadata.promptTokenCount"}}
	return map[providers.Operation]operation{
		providers.GenerateContent: {verb: "generateContent", usage: generated},
		providers.StreamContent:   {verb: "streamGenerateContent", usage: generated},
		providers.CountTokens:     {verb: "countTokens"},
		providers.Embeddings:      {verb: "embedContent", usage: embedded},
		providers.BatchEmbeddings: {verb: "batchEmbedContents", usage: embedded},
		providers.Interactions: {path: "interactions", usage: providers.UsageShape{
			Input: []string{
				"usage.total_input_tokens|interaction.usage.total_input_tokens", "usage.total_tool_use_tokens|interaction.usage.total_tool_use_tokens",
			},
			Cached: []string{"usage.total_cached_tokens|interaction.usage.total_cached_tokens"},
			Output: []string{
				"usage.total_output_tokens|interaction.usage.total_output_tokens", "usage.total_thought_tokens|interaction.usage.total_thought_tokens",
			},
			Answer: []string{"id", "interaction.id"},
		}},
	}
}

// NewRelayer returns a relayer that sends through the process's client to upstreams.
func NewRelayer(client *http.Client) *Relayer {
	return &Relayer{client: client, operations: operations()}
}

// Endpoints are what the relayer takes.
func Endpoints() []providers.Endpoint { return providers.Endpoints(providers.Gemini, operations()) }

// Usage says where the answers of the endpoints count tokens.
func Usage() map[providers.Endpoint]providers.UsageShape {
	return providers.UsageShapes(providers.Gemini, operations(), func(o operation) providers.UsageShape { return o.usage })
}

// CheckBaseURL refuses an address that the vendor's SDK would not take: it adds the version itself.
func CheckBaseURL(base *url.URL) error {
	path := strings.TrimRight(base.Path, "/")
	for _, end := range [...]string{"/v1", "/v1beta", "/models"} {
		if strings.HasSuffix(path, end) {
			return errors.New("wants no " + end + " at its end: this vendor's SDK adds it")
		}
	}
	return nil
}

// Relay implements providers.Relayer. A streamed call gets events; a StreamContent call that is not streamed gets one
// JSON array, element by element.
func (r *Relayer) Relay(ctx context.Context, to providers.Target, call providers.Call) (*http.Response, error) {
	operation, ok := r.operations[call.Endpoint.Operation]
	if !ok || call.Endpoint.Format != providers.Gemini {
		return nil, providers.Faultf(providers.Internal, "The gateway sent a call to a vendor that does not serve it.")
	}
	path := operation.path
	if path == "" {
		model, ok := modelPath(to.Model)
		if !ok {
			return nil, &providers.Fault{
				Kind: providers.ModelNotFound, Message: "No upstream model has such a name.", Param: "model", Accepted: providers.NotAccepted,
			}
		}
		path = model + ":" + operation.verb
	}
	address, answer := to.Channel.BaseURL+"/v1beta/"+path, "application/json"
	if call.Stream {
		answer = "text/event-stream"
		if operation.path == "" { // a body that names its model says that it wants events
			address += "?alt=sse"
		}
	}
	req, err := upstream.NewPost(ctx, address, call.Payload(to.Model))
	if err != nil {
		return nil, err
	}
	req.Header = http.Header{
		"X-Goog-Api-Key": {to.Key.Reveal()},
		"Content-Type":   {"application/json"},
		"Accept":         {answer},
		"User-Agent":     {upstream.Agent(r.client)},
	}
	resp, err := upstream.SendCall(r.client, req, call, answer)
	return resp, upstream.Refine(err, providers.Gemini, classify)
}

// modelPath is where a model stands in a path: below models/ unless its name says otherwise. A name that would lead to
// another place in the upstream's tree has none.
func modelPath(model string) (path string, ok bool) {
	if !strings.HasPrefix(model, "models/") && !strings.HasPrefix(model, "tunedModels/") {
		model = "models/" + model
	}
	segments := strings.Split(model, "/")
	for i, segment := range segments {
		if segment == "" || segment == "." || segment == ".." {
			return "", false
		}
		segments[i] = url.PathEscape(segment)
	}
	return strings.Join(segments, "/"), true
}

// Check implements providers.Checker, by the list of models.
func (r *Relayer) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	list := upstream.NewJobs(r.client, upstream.JobVendor{
		Name: "gemini", Classify: classify,
		Authorize: func(req *http.Request, key providers.Secret) error {
			req.Header["X-Goog-Api-Key"] = []string{key.Reveal()}
			return nil
		},
	})
	return list.CheckModels(ctx, to, "/v1beta/models?pageSize=1000", models)
}
