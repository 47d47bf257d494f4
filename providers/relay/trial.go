package relay

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"io"
	"maps"
	"net/http"
	"slices"
	"time"

	"modelrelay/providers"
	"modelrelay/providers/upstream"
)

const (
	// trialWords bounds what is read of an answer to a trial, in bytes.
	trialWords = 8 << 10
	// trialTokens bounds what a trial may cost. Models that think need some before they say anything. A chat in OpenAI's format
	// has no bound: of its two names for one, each is refused by some upstream.
	trialTokens = 64
	// trialPrompt is what is asked where nobody says it.
	trialPrompt = "Say hello."
)

// Trial is one attempt at one channel: no other channel or key is tried, no token is charged, and nothing of it counts for or
// against the channel.
type Trial struct {
	Channel providers.Channel
	// Key is used in place of the channel's first one, unless it is "".
	Key providers.Secret
	// Model is a public name that the channel serves; "": the first by name.
	Model string
	// Prompt is what the model is asked; "": to say hello.
	Prompt string
	Stream bool
}

// TrialResult is what came of a trial.
type TrialResult struct {
	Endpoint providers.Endpoint
	// Model and Upstream are the public and the upstream's name of the model that was asked.
	Model, Upstream string
	Key             string // the key's fingerprint
	// Status is the upstream's; 0: it has not answered. RequestID is its own name of the request.
	Status    int
	RequestID string
	// Said is what the upstream said, its beginning at least, without the key.
	Said string
	// FirstByte is when its answer began, 0 where it did not.
	FirstByte, Took time.Duration
	// Fault is why there is no answer; nil where there is one.
	Fault *providers.Fault
}

// trialBody is the chat of one format.
type trialBody struct {
	at   providers.Endpoint
	body func(model, prompt string, stream bool) any
}

// trialBodies are the chats that a trial may be, the ones that most upstreams have first.
func trialBodies() []trialBody {
	user := func(prompt string) []any { return []any{map[string]any{"role": "user", "content": prompt}} }
	return []trialBody{
		{providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}, func(model, prompt string, stream bool) any {
			return map[string]any{"model": model, "messages": user(prompt), "stream": stream}
		}},
		{providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}, func(model, prompt string, stream bool) any {
			return map[string]any{"model": model, "messages": user(prompt), "stream": stream, "max_tokens": trialTokens}
		}},
		{providers.Endpoint{Format: providers.OpenAI, Operation: providers.Responses}, func(model, prompt string, stream bool) any {
			return map[string]any{"model": model, "input": prompt, "stream": stream, "max_output_tokens": trialTokens, "store": false}
		}},
		{providers.Endpoint{Format: providers.Gemini, Operation: providers.GenerateContent}, func(_, prompt string, _ bool) any {
			return map[string]any{
				"contents":         []any{map[string]any{"role": "user", "parts": []any{map[string]any{"text": prompt}}}},
				"generationConfig": map[string]any{"maxOutputTokens": trialTokens},
			}
		}},
	}
}

// Try makes the trial. Its error says that there is nothing to try: the channel has no chat, no such model, or no key. What
// the upstream says of it stands in the result.
func (r *Relay) Try(ctx context.Context, trial Trial) (TrialResult, error) {
	vendor := r.catalog[trial.Channel.Vendor]
	bodies := trialBodies()
	at := slices.IndexFunc(bodies, func(b trialBody) bool {
		return vendor.Relay != nil && vendor.Serves(b.at) && trial.Channel.Speaks(b.at)
	})
	if at < 0 {
		return TrialResult{}, providers.Faultf(providers.Invalid, "The channel %q has no chat to test.", trial.Channel.Name)
	}
	result := TrialResult{Endpoint: bodies[at].at, Model: trial.Model}
	if result.Model == "" {
		for _, name := range slices.Sorted(maps.Keys(trial.Channel.Models)) {
			if !providers.IsPattern(name) {
				result.Model = name
				break
			}
		}
	}
	name, known := trial.Channel.UpstreamModel(result.Model)
	if !known || result.Model == "" {
		return result, providers.InvalidField("model", "Invalid request: 'model' must be one that the channel %q serves.", trial.Channel.Name)
	}
	result.Upstream = name
	to := providers.Target{Channel: trial.Channel, Key: trial.Key, Model: name}
	if to.Key == "" && len(trial.Channel.Keys) > 0 {
		to.Key = trial.Channel.Keys[0]
	}
	if to.Key == "" {
		return result, providers.InvalidField("key", "Invalid request: 'key' is required: the channel %q has none.", trial.Channel.Name)
	}
	if to.Channel.BaseURL == "" {
		to.Channel.BaseURL = vendor.BaseURL
	}
	result.Key = to.Key.Fingerprint()
	body, err := json.Marshal(bodies[at].body(result.Upstream, cmp.Or(trial.Prompt, trialPrompt), trial.Stream))
	if err != nil {
		return result, err
	}
	call := providers.Call{
		Endpoint: result.Endpoint, Model: result.Upstream, Stream: trial.Stream, Content: providers.Content{ContentType: "application/json", Body: body}, Header: http.Header{},
	}
	if trial.Stream && result.Endpoint.Format == providers.Gemini {
		call.Endpoint.Operation = providers.StreamContent
	}
	r.try(ctx, to, vendor, call, &result)
	return result, nil
}

// try sends the one request and reads its answer.
func (r *Relay) try(ctx context.Context, to providers.Target, vendor providers.Vendor, call providers.Call, result *TrialResult) {
	ctx, cancel := context.WithTimeout(ctx, r.waits.firstByte)
	defer cancel()
	start := time.Now()
	defer func() { result.Took = time.Since(start) }()
	hide := func(words []byte) string {
		return string(bytes.ReplaceAll(words, []byte(to.Key.Reveal()), []byte(to.Key.String())))
	}
	resp, err := vendor.Relay.Relay(ctx, to, call)
	if err != nil {
		result.Fault = providers.AsFault(err)
		if reply := result.Fault.Upstream; reply != nil {
			result.Status, result.Said, result.FirstByte = reply.Status, hide(reply.Body[:min(len(reply.Body), trialWords)]), time.Since(start)
		}
		return
	}
	defer resp.Body.Close()
	result.Status, result.RequestID = resp.StatusCode, upstream.RequestID(resp.Header)
	words := make([]byte, trialWords)
	n, err := resp.Body.Read(words)
	result.FirstByte = time.Since(start)
	if err == nil {
		var more int
		more, err = io.ReadFull(resp.Body, words[n:])
		n += more
	}
	result.Said = hide(words[:n])
	if n == 0 && err != nil {
		result.Fault = providers.Faultf(providers.Upstream, "The upstream broke off its answer.")
		return
	}
	_, _ = io.CopyN(io.Discard, resp.Body, trialWords) // a short rest lets the connection be used again
}
