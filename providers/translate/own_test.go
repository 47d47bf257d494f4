package translate_test

import (
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
)

// TestWithout: what an answer of another vendor's left in a conversation does not reach the client's own vendor, and everything
// else reaches it byte for byte.
func TestWithout(t *testing.T) {
	t.Parallel()
	openai := func(operation providers.Operation) providers.Endpoint {
		return providers.Endpoint{Format: providers.OpenAI, Operation: operation}
	}
	messages := providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}
	gemini := providers.Endpoint{Format: providers.Gemini, Operation: providers.StreamContent}
	for name, tc := range map[string]struct {
		endpoint   providers.Endpoint
		body, want string
	}{
		"nothing": {messages, `{"messages":[{"role":"user","content":"mr1. is no state"}]}`, ""},
		"a text": {
			messages, `{"messages":[{"role":"user","content":"\"mr1.x"},{"role":"user","content":[{"type":"text","text":"mr1.x"}]}]}`,
			"",
		},
		"first": {
			messages, `{ "messages":[{"role":"assistant","content":[ {"type":"thinking","thinking":"a","signature":"mr1.g.x"} , {"type":"text","text":"b"} ]}] }`,
			`{ "messages":[{"role":"assistant","content":[ {"type":"text","text":"b"} ]}] }`,
		},
		"last and own": {
			messages, `{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"own"},{"type":"thinking","thinking":"","signature":"mr1.p.x"}]}]}`,
			`{"messages":[{"role":"assistant","content":[{"type":"thinking","thinking":"a","signature":"own"}]}]}`,
		},
		"several": {
			messages, `{"messages":[{"content":[{"signature":"mr1.a"},{"signature":"mr1.b"},1,{"signature":"mr1.c"},2,{"signature":"mr1.d"},{"signature":"mr1.e"}]},{"content":[{"signature":"mr1.f"}]}]}`,
			`{"messages":[{"content":[1,2]}]}`,
		},
		"items": {
			openai(providers.Responses), `{"input":[{"type":"reasoning","summary":[],"encrypted_content":"mr1.a.x"},{"type":"function_call","call_id":"c"},{"type":"reasoning","encrypted_content":"gAAA"}]}`,
			`{"input":[{"type":"function_call","call_id":"c"},{"type":"reasoning","encrypted_content":"gAAA"}]}`,
		},
		"a text of input": {openai(providers.Responses), `{"input":"mr1.x"}`, ""},
		"parts": {
			gemini, `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"bXIxLmEueA=="},{"text":"t","thoughtSignature":"own"}]}]}`,
			`{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"},"thoughtSignature":"skip_thought_signature_validator"},{"text":"t","thoughtSignature":"own"}]}]}`,
		},
		"another operation": {openai(providers.Chat), `{"messages":[{"content":"mr1.x"}]}`, ""},
	} {
		body := append(make([]byte, 0, 4096), "  "+tc.body...) // room after it, and space in front
		call := &providers.Call{Endpoint: tc.endpoint, Model: "m", Content: providers.Content{Body: body}}
		call.Edits = translate.Without(call)
		want := tc.want
		if want == "" {
			want = tc.body
		}
		if got := string(slices.Concat(call.Payload("m")...)); got != "  "+want {
			t.Errorf("%s: got %s, want %s", name, strings.TrimSpace(got), want)
		}
	}
}
