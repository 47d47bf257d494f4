package translate_test

import (
	"bytes"
	"context"
	"slices"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate"
	"modelrelay/providers/translate/form"
)

// TestRemembersWhatIsTheCalls: the memory of a chat client's call has what its upstream wants back with it: not what is another
// part's, not what is in the client's own format already, and no more than 64 KiB. Which part a signature is of:
// https://ai.google.dev/gemini-api/docs/thought-signatures.
func TestRemembersWhatIsTheCalls(t *testing.T) {
	t.Parallel()
	const call = `{"functionCall":{"id":"c","name":"get_weather","args":{}}}`
	for name, test := range map[string]struct {
		parts string
		kept  bool
	}{
		"a call's":                    {`{"functionCall":{"id":"c","name":"get_weather","args":{}},"thoughtSignature":"QQ=="}`, true},
		"a thought's before the call": {`{"text":"hm","thought":true,"thoughtSignature":"QQ=="},` + call, true},
		"a text's":                    {`{"text":"a","thoughtSignature":"QQ=="},` + call, false},
		"a text's, in front of it":    {`{"text":"","thoughtSignature":"QQ=="},{"text":"a"},` + call, false},
		"none":                        {`{"text":"a"},` + call, false},
		"a call's that is too long": {`{"functionCall":{"id":"c","name":"get_weather","args":{}},"thoughtSignature":"` +
			strings.Repeat("QUJD", 16<<10) + `"}`, false},
		"a call's that is hardly long": {`{"functionCall":{"id":"c","name":"get_weather","args":{}},"thoughtSignature":"` +
			strings.Repeat("QUJD", 8<<10) + `"}`, true},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			kept := new(memory)
			begin := begins()["chat"]
			tr, fault := ask(t, &translate.Translator{Signatures: kept}, peers()[0], peers()[3], "gemini-3-flash-preview",
				begin[0]+begin[1], false)
			if fault != nil {
				t.Fatal(fault)
			}
			read(t, tr, `{"candidates":[{"content":{"parts":[`+test.parts+`]},"finishReason":"STOP"}]}`, false)
			if _, got := kept.kept["c"]; got != test.kept {
				t.Errorf("kept %t: %.100q", got, kept.kept)
			}
		})
	}
	// Two calls of one answer have each their own.
	kept := new(memory)
	begin := begins()["chat"]
	tr, fault := ask(t, &translate.Translator{Signatures: kept}, peers()[0], peers()[3], "gemini-3-flash-preview",
		begin[0]+begin[1], false)
	if fault != nil {
		t.Fatal(fault)
	}
	read(t, tr, `{"candidates":[{"content":{"parts":[`+strings.Replace(call, "}}}", `}},"thoughtSignature":"QQ=="}`, 1)+","+
		strings.Replace(call, `"c"`, `"d"`, 1)+`]},"finishReason":"STOP"}]}`, false)
	if _, got := kept.kept["d"]; got {
		t.Errorf("the second call has the state of the first: %q", kept.kept)
	}
}

// asked notes which names a memory was asked for.
type asked struct {
	*memory
	names []string
}

func (a *asked) Find(ctx context.Context, caller translate.Caller, names []string) map[string][]byte {
	a.names = append(a.names, names...)
	return a.memory.Find(ctx, caller, names)
}

// TestInlineComesBeforeMemory: what a client brings back by itself is not asked for again, and stands once.
func TestInlineComesBeforeMemory(t *testing.T) {
	t.Parallel()
	kept := &memory{kept: map[string][]byte{"c": []byte(form.State{Kind: form.StateGemini, Data: []byte("T0xE")}.Envelope())}}
	history := func(extra string) string {
		return `{"model":"m","messages":[{"role":"user","content":"x"},{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"f","arguments":"{}"}` + extra +
			`}]},{"role":"tool","tool_call_id":"c","content":"y"}],"tools":[{"type":"function","function":{"name":"f"}}]}`
	}
	for extra, want := range map[string]string{`,"extra_content":{"google":{"thought_signature":"TkVX"}}`: "TkVX", "": "T0xE"} {
		recall := &asked{memory: kept}
		tr, fault := ask(t, &translate.Translator{Signatures: recall}, peers()[0], peers()[3], "gemini-3-flash-preview",
			history(extra), false)
		if fault != nil {
			t.Fatal(fault)
		}
		if got := len(recall.names) == 0; got != (extra != "") {
			t.Errorf("with %q it is asked for %q", extra, recall.names)
		}
		if call := string(bytes.Join(tr.Call.Pieces, nil)); strings.Count(call, "thoughtSignature") != 1 ||
			!strings.Contains(call, `"thoughtSignature":"`+want+`"`) {
			t.Errorf("want the signature %s once: %s", want, call)
		}
	}
}

// TestWithoutRows: whichever of a vendor's own endpoints a conversation goes to, what answers of others left in it stays behind, with
// the comma on its side. Fields of Gemini's format may be in either case: https://protobuf.dev/programming-guides/json.
func TestWithoutRows(t *testing.T) {
	t.Parallel()
	at := func(format providers.Format, operation providers.Operation) providers.Endpoint {
		return providers.Endpoint{Format: format, Operation: operation}
	}
	const (
		turns   = `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"b"},{"type":"thinking","thinking":"","signature":"mr1.p.x"}]}]}`
		without = `{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"text","text":"b"}]}]}`
		parts   = `{"contents":[{"role":"model","parts":[{"functionCall":{"name":"f"},"KEY":"bXIxLmEueA=="}]}]}`
	)
	google := func(body, key, signature string) string {
		return strings.NewReplacer("KEY", key, "bXIxLmEueA==", signature).Replace(body)
	}
	const standIn = "skip_thought_signature_validator"
	for name, test := range map[string]struct {
		endpoint   providers.Endpoint
		body, want string
	}{
		"a count of messages": {at(providers.Anthropic, providers.CountTokens), turns, without},
		"a turn of nothing else": {
			at(providers.Anthropic, providers.Messages),
			`{"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"mr1.p.x"}]}]}`,
			`{"messages":[{"role":"user","content":"x"}]}`,
		},
		"the only item": {
			at(providers.OpenAI, providers.Responses), `{"input":[{"type":"reasoning","encrypted_content":"mr1.a.x"}]}`,
			`{"input":[]}`,
		},
		"items to compact": {
			at(providers.OpenAI, providers.CompactResponse),
			`{"input":[{"role":"user","content":"x"},{"type":"reasoning","encrypted_content":"mr1.a.x"}]}`,
			`{"input":[{"role":"user","content":"x"}]}`,
		},
		"a whole answer": {
			at(providers.Gemini, providers.GenerateContent), google(parts, "thoughtSignature", "bXIxLmEueA=="),
			google(parts, "thoughtSignature", standIn),
		},
		"a stream": {
			at(providers.Gemini, providers.StreamContent), google(parts, "thoughtSignature", "bXIxLmEueA=="),
			google(parts, "thoughtSignature", standIn),
		},
		"a field in the other case": {
			at(providers.Gemini, providers.StreamContent), google(parts, "thought_signature", "bXIxLmEueA=="),
			google(parts, "thought_signature", standIn),
		},
		"a count of contents": {
			at(providers.Gemini, providers.CountTokens), google(parts, "thoughtSignature", "bXIxLmEueA=="),
			google(parts, "thoughtSignature", standIn),
		},
		"a count of a whole call": {
			at(providers.Gemini, providers.CountTokens), `{"generateContentRequest":` + google(parts, "thoughtSignature", "bXIxLmEueA==") + `}`,
			`{"generateContentRequest":` + google(parts, "thoughtSignature", standIn) + `}`,
		},
	} {
		call := &providers.Call{Endpoint: test.endpoint, Model: "m", Content: providers.Content{Body: []byte(test.body)}}
		call.Edits = translate.Without(call)
		if got := string(slices.Concat(call.Payload("m")...)); got != test.want {
			t.Errorf("%s: got %s, want %s", name, got, test.want)
		}
	}
}
