package translate_test

import (
	"bytes"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
)

// TestUnsignedThoughts: a thought without a vendor's signature is sent only to upstreams that accept it. Anthropic refuses an empty
// signature. OpenAI searches its stored responses for a thought without encrypted content.
func TestUnsignedThoughts(t *testing.T) {
	t.Parallel()
	chat := providers.Endpoint{Format: providers.OpenAI, Operation: providers.Chat}
	responses := providers.Endpoint{Format: providers.OpenAI, Operation: providers.Responses}
	messages := providers.Endpoint{Format: providers.Anthropic, Operation: providers.Messages}
	const (
		ofMessages = `{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},
			{"role":"assistant","content":[{"type":"thinking","thinking":"hm","signature":"mr1.n."},{"type":"tool_use","id":"c","name":"f","input":{}}]},
			{"role":"user","content":[{"type":"tool_result","tool_use_id":"c","content":"y"}]}],"tools":[{"name":"f","input_schema":{"type":"object"}}]}`
		ofResponses = `{"model":"m","store":false,"input":[{"role":"user","content":"x"},
			{"type":"reasoning","id":"rs_1","summary":[{"type":"summary_text","text":"hm"}],"encrypted_content":"mr1.n."},
			{"type":"function_call","call_id":"c","name":"f","arguments":"{}"},{"type":"function_call_output","call_id":"c","output":"y"}],
			"tools":[{"type":"function","name":"f","parameters":{"type":"object"}}]}`
	)
	for name, test := range map[string]struct {
		from, to providers.Endpoint
		body     string
		holds    bool // the upstream's call holds the thought
	}{
		"messages to chat":      {messages, chat, ofMessages, true},
		"messages to responses": {messages, responses, ofMessages, false},
		"responses to chat":     {responses, chat, ofResponses, true},
		"responses to messages": {responses, messages, ofResponses, false},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			call := &providers.Call{Endpoint: test.from, Model: "m", Content: providers.Content{Body: []byte(test.body)}}
			translation, fault := new(translate.Translator).Translate(t.Context(), call, providers.Target{Model: "up"}, vendorOf(test.to))
			if fault != nil {
				t.Fatal(fault)
			}
			sent := string(bytes.Join(translation.Call.Payload("up"), nil))
			if strings.Contains(sent, "mr1") || strings.Contains(sent, `"hm"`) != test.holds {
				t.Errorf("got %s", sent)
			}
		})
	}
	for endpoint, body := range map[providers.Endpoint]string{messages: ofMessages, responses: ofResponses} {
		call := &providers.Call{Endpoint: endpoint, Model: "m", Content: providers.Content{Body: []byte(body)}}
		call.Edits = translate.Without(call)
		if got := string(slices.Concat(call.Payload("m")...)); strings.Contains(got, "hm") {
			t.Errorf("%v: got %s", endpoint, got)
		}
	}
}
