package relay_test

import (
	"io"
	"strings"
	"testing"

	"modelrelay/providers"
)

// TestTranslatedUsage: what an answer used is the same whether it is passed on as it is or translated.
func TestTranslatedUsage(t *testing.T) {
	t.Parallel()
	const geminiPart = `"candidates":[{"content":{"parts":[{"text":"Hi"}],"role":"model"},"finishReason":"STOP","index":0}]`
	messages := func(usage string) string {
		return `{"id":"msg_1","type":"message","role":"assistant","model":"up","stop_reason":"end_turn","stop_sequence":null,"content":[{"type":"text","text":"Hi"}],"usage":` + usage + `}`
	}
	chat := func(usage string) string {
		return `{"id":"c","object":"chat.completion","created":1,"model":"up","choices":[{"index":0,"message":{"role":"assistant","content":"Hi"},"finish_reason":"stop"}],"usage":` + usage + `}`
	}
	for _, test := range []struct {
		name, server, answer string
		stream               bool
		counted              bool
		want                 providers.Usage
	}{
		{
			"all parts", "messages", messages(`{"input_tokens":1,"cache_read_input_tokens":20,"cache_creation_input_tokens":300,"output_tokens":4}`),
			false, true,
			providers.Usage{Input: 321, Cached: 20, Output: 4},
		},
		{"no numbers", "messages", messages(`{"input_tokens":-5,"output_tokens":1e99}`), false, false, providers.Usage{}},
		{"nothing said", "messages", messages(`null`), false, false, providers.Usage{}},
		{"a fraction", "chat", chat(`{"prompt_tokens":7.0,"completion_tokens":2.6}`), false, true, providers.Usage{Input: 7, Output: 3}},
		{"thoughts and tools", "gemini", `{` + geminiPart +
			`,"usageMetadata":{"promptTokenCount":7,"toolUsePromptTokenCount":3,"cachedContentTokenCount":2,"candidatesTokenCount":5,"thoughtsTokenCount":11}}`, false, true, providers.Usage{Input: 10, Cached: 2, Output: 16}},
		{
			"images", "gemini", `{"candidates":[{"content":{"parts":[{"text":"Hi"},{"inlineData":{"mimeType":"image/png","data":"QUJD"}},{"inlineData": {"mimeType": "image/png","data":"QUJD"}}],"role":"model"},"finishReason":"STOP","index":0}],"usageMetadata":{"promptTokenCount":7,"candidatesTokenCount":5}}`,
			false, true,
			providers.Usage{Input: 7, Output: 5, Images: 2},
		},
		{"an answer that breaks off", "messages", strings.TrimSuffix(messagesHi, messagesEnd), true, true, providers.Usage{Input: 7, Output: 1}},
		{"later counts", "gemini", geminiHi, true, true, providers.Usage{Input: 7, Output: 2}},
	} {
		t.Run(test.name, func(t *testing.T) {
			t.Parallel()
			for source, from := range clients() {
				kind := "application/json"
				if test.stream {
					kind = "text/event-stream"
				}
				to := servers()[test.server]
				r, _, _ := translating(t, nil, scripted{
					vendor: to.vendor, answer: says(kind, strings.NewReader(test.answer)), change: func(c *providers.Channel) { c.Dialect = to.dialect },
				})
				call := &providers.Call{
					Endpoint: from.endpoint, Model: "m", Stream: test.stream, Content: providers.Content{Body: []byte(from.body)},
					Token: "t",
				}
				if test.stream && from.streams != (providers.Endpoint{}) {
					call.Endpoint = from.streams
				}
				answer, err := r.Do(t.Context(), "default", call)
				if err != nil {
					t.Fatalf("%s: %v", source, err)
				}
				_, _ = io.Copy(io.Discard, answer.Body) // one of them breaks off
				_ = answer.Body.Close()
				if got, counted := answer.Usage(); got != test.want || counted != test.counted {
					t.Errorf("%s: got %+v, %t, want %+v, %t", source, got, counted, test.want, test.counted)
				}
			}
		})
	}
}
