// Package gemini adapts upstreams with Google's Gemini API.
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

type operation struct {
	// verb follows the model in the path. For the only operation with the model in its body, verb is "" and path is its path.
	verb, path string
	// usage describes the usage in the answer, streamed or not.
	usage providers.UsageShape
}

func operations() map[providers.Operation]operation {
	// The counts of each event include those of earlier events. Thoughts are billed as output.
	generated := providers.UsageShape{
		Input:      []string{"usageMetadata.promptTokenCount", "usageMetadata.toolUsePromptTokenCount"},
		Cached:     []string{"usageMetadata.cachedContentTokenCount"},
		Output:     []string{"usageMetadata.candidatesTokenCount", "usageMetadata.thoughtsTokenCount"},
		MediaTypes: []string{"candidates[].content.parts[].inlineData.mimeType", "candidates[].content.parts[].fileData.mimeType"},
		Ends:       []string{`"finishReason":"`, `"blockReason":"`, `"error":{`},
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

// NewRelayer returns a relayer over the process's client.
func NewRelayer(client *http.Client) *Relayer {
	return &Relayer{client: client, operations: operations()}
}

// Endpoints returns the endpoints that the relayer serves.
func Endpoints() []providers.Endpoint { return providers.Endpoints(providers.Gemini, operations()) }

// Usage returns where the answers of the endpoints contain usage.
func Usage() map[providers.Endpoint]providers.UsageShape {
	return providers.UsageShapes(providers.Gemini, operations(), func(o operation) providers.UsageShape { return o.usage })
}

// CheckBaseURL refuses an address that the vendor's SDK would not accept. The SDK adds the version.
func CheckBaseURL(base *url.URL) error {
	path := strings.TrimRight(base.Path, "/")
	for _, end := range [...]string{"/v1", "/v1beta", "/models"} {
		if strings.HasSuffix(path, end) {
			return errors.New("must not end in " + end + ": this vendor's SDK adds it")
		}
	}
	return nil
}

// Relay implements providers.Relayer. The answer of a streamed call is events; that of a StreamContent call without Stream is a JSON array.
func (r *Relayer) Relay(ctx context.Context, to providers.Target, call *providers.Call) (*http.Response, error) {
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
		if operation.path == "" { // a body with the model also has "stream"
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

// modelPath returns the path of a model: below models/ unless the name has a folder. false: the name would change the path.
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

// Check implements providers.Checker, with the list of models.
func (r *Relayer) Check(ctx context.Context, to providers.Target, models []string) (providers.Checked, error) {
	list := upstream.NewJobs(r.client, upstream.JobVendor{Name: "gemini", Classify: classify, Authorize: upstream.KeyIn("X-Goog-Api-Key", "")})
	return list.CheckModels(ctx, to, "/v1beta/models?pageSize=1000", models)
}
