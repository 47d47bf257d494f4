package translate_test

import (
	"encoding/json"
	"strings"
	"testing"

	"modelrelay/providers/translate"
)

// between returns the peers of two names.
func between(t *testing.T, client, upstream string) (from, to peer) {
	t.Helper()
	others(func(a, b peer) {
		if a.name == client && b.name == upstream {
			from, to = a, b
		}
	})
	return from, to
}

// sentTo is the body that an upstream gets of a client's call, and what of it was changed.
func sentTo(t *testing.T, client, upstream, model, body string) (sent string, changed []string) {
	t.Helper()
	from, to := between(t, client, upstream)
	tr, fault := ask(t, new(translate.Translator), from, to, model, body, false)
	if fault != nil {
		t.Fatalf("%s to %s: %+v", client, upstream, fault)
	}
	for _, piece := range tr.Call.Pieces {
		sent += string(piece)
	}
	header := make(map[string][]string)
	tr.Header(header)
	return sent, header["X-Relay-Changed"]
}

// TestRepeatedCallIDs: an upstream that gives calls of tools the ids of earlier calls, or one id to several, makes unique calls for the
// client.
func TestRepeatedCallIDs(t *testing.T) {
	t.Parallel()
	from, to := between(t, "messages", "chat")
	const history = `{"model":"m","max_tokens":100,"tools":[{"name":"f","input_schema":{"type":"object"}}],"messages":[{"role":"user","content":"x"},` +
		`{"role":"assistant","content":[{"type":"tool_use","id":"call_0","name":"f","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_0","content":"1"}]}]}`
	tr, fault := ask(t, new(translate.Translator), from, to, to.models[0], history, false)
	if fault != nil {
		t.Fatal(fault)
	}
	answer := read(t, tr, `{"choices":[{"index":0,"finish_reason":"tool_calls","message":{"role":"assistant","content":null,"tool_calls":[`+
		`{"id":"call_0","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}},`+
		`{"id":"call_1","type":"function","function":{"name":"f","arguments":"{}"}}]}}]}`, false)
	var message struct{ Content []struct{ Type, ID string } }
	if err := json.Unmarshal([]byte(answer), &message); err != nil {
		t.Fatal(err)
	}
	seen := map[string]bool{"call_0": true}
	for _, block := range message.Content {
		if block.Type != "tool_use" || block.ID == "" || seen[block.ID] {
			t.Errorf("got %+v", message.Content)
		}
		seen[block.ID] = true
	}
	if len(message.Content) != 3 || !seen["call_1"] {
		t.Errorf("got %s", answer)
	}
}

// TestObjectInPlaceOfAnArray: Gemini clients that write one part, or one content, as an object are understood.
func TestObjectInPlaceOfAnArray(t *testing.T) {
	t.Parallel()
	sent, _ := sentTo(t, "gemini", "chat", "gpt-4o",
		`{"systemInstruction":{"parts":{"text":"be brief"}},"contents":{"role":"user","parts":{"text":"hello"}}}`)
	if !strings.Contains(sent, "be brief") || !strings.Contains(sent, "hello") {
		t.Errorf("sent %s", sent)
	}
	from, to := between(t, "gemini", "chat")
	_, fault := ask(t, new(translate.Translator), from, to, "gpt-4o",
		`{"systemInstruction":{"parts":"be brief"},"contents":[{"parts":[{"text":"hello"}]}]}`, false)
	if fault == nil || fault.Param != "systemInstruction.parts" {
		t.Errorf("a text in place of an array: %+v", fault)
	}
}

// TestDoneWithBlanks: white space behind the last word of a stream breaks nothing.
func TestDoneWithBlanks(t *testing.T) {
	t.Parallel()
	from, to := between(t, "messages", "chat")
	tr, fault := ask(t, new(translate.Translator), from, to, to.models[0], leastCall("messages")+"}", true)
	if fault != nil {
		t.Fatal(fault)
	}
	got := read(t, tr, `data: {"choices":[{"index":0,"delta":{"content":"Hi"},"finish_reason":"stop"}]}`+"\n\ndata: [DONE] \t\n\n", true)
	if !strings.Contains(got, "message_stop") || strings.Contains(got, "error") {
		t.Errorf("got %s", got)
	}
}

// TestPrefillEndsWithoutBlanks: Claude refuses the beginning of an answer that ends in white space.
func TestPrefillEndsWithoutBlanks(t *testing.T) {
	t.Parallel()
	for prefill, want := range map[string]string{
		`{ \n`: `"text":"{"}]}]`, ` \n`: `"role":"user","content":[{"type":"text","text":"x"}]}]`,
		`{`: `"text":"{"}]}]`,
	} {
		sent, changed := sentTo(t, "chat", "messages", "claude-sonnet-4-5",
			`{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","content":"`+prefill+`"}]}`)
		if !strings.Contains(sent, want) || (len(changed) > 0) != (prefill == `{ \n`) {
			t.Errorf("%q: sent %s, changed %v", prefill, sent, changed)
		}
	}
}

// TestImageJPG: the type image/jpg, which no vendor takes, goes out as image/jpeg.
func TestImageJPG(t *testing.T) {
	t.Parallel()
	for _, upstream := range []string{"gemini", "messages"} {
		sent, _ := sentTo(t, "chat", upstream, map[string]string{"gemini": "gemini-2.5-flash", "messages": "claude-sonnet-4-5"}[upstream],
			`{"model":"m","messages":[{"role":"user","content":[{"type":"image_url","image_url":{"url":"data:image/jpg;base64,AAAA"}}]}]}`)
		if !strings.Contains(sent, `"image/jpeg"`) || strings.Contains(sent, "image/jpg") {
			t.Errorf("%s: sent %s", upstream, sent)
		}
	}
}

// TestClaudesRefusal: a refusal is the refusal of a chat client, and no content.
func TestClaudesRefusal(t *testing.T) {
	t.Parallel()
	from, to := between(t, "chat", "messages")
	got := answerOf(t, from, to, `{"id":"msg_1","type":"message","role":"assistant","model":"up","content":[{"type":"text","text":"I can't."}],"stop_reason":"refusal","usage":{"input_tokens":1,"output_tokens":2}}`)
	if !strings.Contains(got, `"refusal":"I can't."`) || !strings.Contains(got, `"content":null`) ||
		!strings.Contains(got, `"content_filter"`) {
		t.Errorf("got %s", got)
	}
}

// TestSignedTextReachesMessages: Google's signature of a visible text comes back with it through a Messages client.
func TestSignedTextReachesMessages(t *testing.T) {
	t.Parallel()
	from, to := between(t, "messages", "gemini")
	got := answerOf(t, from, to, `{"candidates":[{"index":0,"content":{"role":"model","parts":[{"text":"Hi","thoughtSignature":"QUJD"}]},"finishReason":"STOP"}],"usageMetadata":{"promptTokenCount":1}}`)
	var message struct{ Content json.RawMessage }
	if err := json.Unmarshal([]byte(got), &message); err != nil {
		t.Fatal(err)
	}
	sent, _ := sentTo(t, "messages", "gemini", "gemini-3-pro-preview",
		`{"model":"m","max_tokens":9,"messages":[{"role":"user","content":"x"},{"role":"assistant","content":`+string(message.Content)+
			`},{"role":"user","content":"y"}]}`)
	if !strings.Contains(sent, `{"text":"Hi","thoughtSignature":"QUJD"}`) {
		t.Errorf("got %s, sent %s", message.Content, sent)
	}
}
