package relay_test

import (
	"io"
	"strings"
	"testing"

	"modelrelay/providers"
)

// TestMergedUsage: the numbers of a stream's events merge by member, and a later zero erases nothing. Imitators count in a choice, and
// have names of their own for what came from a cache.
func TestMergedUsage(t *testing.T) {
	t.Parallel()
	const stop = "data: {\"type\":\"message_stop\"}\n\n"
	event := func(data string) string { return "data: " + data + "\n\n" }
	for name, tc := range map[string]struct {
		at     providers.Endpoint
		stream string
		want   providers.Usage
	}{
		"messages, zeros in the delta": {
			messagesEndpoint,
			event(`{"type":"message_start","message":{"usage":{"input_tokens":9,"cache_read_input_tokens":5,"cache_creation_input_tokens":2,"output_tokens":1}}}`) +
				event(`{"type":"message_delta","delta":{},"usage":{"input_tokens":0,"cache_read_input_tokens":0,"cache_creation_input_tokens":0,"output_tokens":12}}`) + stop,
			providers.Usage{Input: 16, Cached: 5, Output: 12},
		},
		"messages, the delta repeats one": {
			messagesEndpoint,
			event(`{"type":"message_start","message":{"usage":{"input_tokens":100,"cache_read_input_tokens":5000,"output_tokens":1}}}`) +
				event(`{"type":"message_delta","delta":{},"usage":{"input_tokens":100,"output_tokens":12}}`) + stop,
			providers.Usage{Input: 5100, Cached: 5000, Output: 12},
		},
		"messages, the delta corrects": {
			messagesEndpoint,
			event(`{"type":"message_start","message":{"usage":{"input_tokens":1,"output_tokens":1}}}`) +
				event(`{"type":"message_delta","delta":{},"usage":{"input_tokens":7,"output_tokens":12}}`) + stop,
			providers.Usage{Input: 7, Output: 12},
		},
		"chat, in the choice": {chatEndpoint, chunk1 +
			event(`{"choices":[{"index":0,"delta":{},"finish_reason":"stop","usage":{"prompt_tokens":7,"completion_tokens":2,"cached_tokens":3}}]}`) + lastWord, providers.Usage{Input: 7, Cached: 3, Output: 2}},
		"chat, hits": {chatEndpoint, chunk1 +
			event(`{"choices":[],"usage":{"prompt_tokens":7,"completion_tokens":2,"prompt_cache_hit_tokens":3,"prompt_tokens_details":{"cached_tokens":3}}}`) + lastWord, providers.Usage{Input: 7, Cached: 3, Output: 2}},
		"chat, a null behind": {chatEndpoint, event(`{"choices":[{"delta":{},"usage":{"prompt_tokens":7,"completion_tokens":2}}],"usage":null}`) +
			event(`{"choices":[{"delta":{}}],"usage":null}`) + lastWord, providers.Usage{Input: 7, Output: 2}},
		"gemini, a zero behind": {geminiEndpoint, event(`{"candidates":[{"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":2}}`) +
			event(`{"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":0}}`), providers.Usage{Input: 7, Output: 2}},
	} {
		for _, hide := range []bool{false, true} {
			r, _ := inMemory(nil, says("text/event-stream", strings.NewReader(tc.stream)))
			answer, err := r.Do(t.Context(), "default", chatCall(streamed, func(c *providers.Call) { c.Endpoint, c.HideUsage = tc.at, hide }))
			if err != nil {
				t.Fatal(err)
			}
			got, err := io.ReadAll(answer.Body)
			_ = answer.Body.Close()
			if used, _ := answer.Usage(); used != tc.want || err != nil {
				t.Errorf("%s: got %+v, %v, want %+v", name, used, err, tc.want)
			}
			if len(got) < len(tc.stream) && (!hide || name != "chat, hits") {
				t.Errorf("%s, hide %v: got %q of %q", name, hide, got, tc.stream)
			}
		}
	}
}
