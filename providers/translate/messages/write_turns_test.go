package messages_test

import (
	"bytes"
	"strings"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/messages"
)

// TestWriteTurns compares the messages that upstreams get.
func TestWriteTurns(t *testing.T) {
	t.Parallel()
	const thinking = `,"thinking":{"type":"enabled","budget_tokens":2000}`
	signed := func(text string) string {
		return `{"type":"thinking","thinking":"` + text + `","signature":"s` + text + `"}`
	}
	gemini := `{"type":"thinking","thinking":"g","signature":"` + form.State{Kind: form.StateGemini, Data: []byte("x")}.Envelope() + `"}`
	call := `{"type":"tool_use","id":"1","name":"f","input":{}}`
	result := `{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"}]}`
	call2, result2 := strings.Replace(call, `"1"`, `"2"`, 1), strings.Replace(result, `"1"`, `"2"`, 1)
	user := `{"role":"user","content":[{"type":"text","text":"x"}]}`
	tests := map[string]struct {
		in, want, rest string
		traits         providers.AnthropicTraits
		set            func(p *form.Prompt)
		thinks         bool
		lost           string
	}{
		"signed thoughts stay as they are": {
			in:     user + `,{"role":"assistant","content":[` + signed("a") + `,{"type":"redacted_thinking","data":"d"},` + call + `]},` + result,
			rest:   thinking,
			traits: budget, thinks: true,
			want: user + `,{"role":"assistant","content":[` + signed("a") + `,{"type":"redacted_thinking","data":"d"},` + call + `]},` + result,
		},
		// BerriAI/litellm #38809, openai/openai-agents-python #4155.
		"a signature alone is a thought": {
			in: user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},` + call + `]},` + result, rest: thinking,
			traits: budget, thinks: true,
			want: user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"","signature":"s"},` + call + `]},` + result,
		},
		// anomalyco/opencode #3077, langgenius/dify #41092: "Expected thinking, found tool_use".
		"thinking is left out when what was thought is gone": {
			in: user + `,{"role":"assistant","content":[{"type":"thinking","thinking":"u"},` + gemini + `,` + call + `]},` + result, rest: thinking,
			traits: budget, lost: "thinking; changed: ",
			want: user + `,{"role":"assistant","content":[` + call + `]},` + result,
		},
		"thinking goes on behind a new question": {
			in: user + `,{"role":"assistant","content":[` + call + `]},` + result + `,{"role":"assistant","content":"y"},` + user, rest: thinking,
			traits: budget, thinks: true,
			want: user + `,{"role":"assistant","content":[` + call + `]},` + result +
				`,{"role":"assistant","content":[{"type":"text","text":"y"}]},` + user,
		},
		"a question with results is part of their turn": {
			in: user + `,{"role":"assistant","content":[` + call + `]},` + result + `,` + user, rest: thinking, traits: budget,
			lost: "thinking; changed: ",
			want: user + `,{"role":"assistant","content":[` + call +
				`]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"r"},{"type":"text","text":"x"}]}`,
		},
		// platform.claude.com/docs/en/build-with-claude/extended-thinking: a model that does not interleave thinks once for all
		// steps of a turn.
		"one thought of several steps": {
			in: user + `,{"role":"assistant","content":[` + signed("a") + `,` + call + `]},` + result + `,{"role":"assistant","content":[` + call2 +
				`]},` + result2, rest: thinking,
			traits: budget, thinks: true,
			want: user + `,{"role":"assistant","content":[` + signed("a") + `,` + call + `]},` + result + `,{"role":"assistant","content":[` +
				call2 + `]},` + result2,
		},
		"adaptive thinking needs no state": {
			in: user + `,{"role":"assistant","content":[` + gemini + `,` + call + `]},` + result, rest: `,"thinking":{"type":"adaptive"}`,
			traits: modern, thinks: true,
			want: user + `,{"role":"assistant","content":[` + call + `]},` + result,
		},
		// "When thinking is disabled, an `assistant` message in the final position cannot contain `thinking`."
		// (tailcallhq/forgecode #1853)
		"thoughts of one that does not think": {
			in: user + `,{"role":"assistant","content":[` + signed("a") + `,` + call + `]},` + result, traits: budget,
			want: user + `,{"role":"assistant","content":[` + call + `]},` + result,
		},
		"thoughts of one that always thinks": {
			in: user + `,{"role":"assistant","content":[` + signed("a") + `,` + call + `]},` + result, traits: always,
			want: user + `,{"role":"assistant","content":[` + signed("a") + `,` + call + `]},` + result,
		},
		// "If an assistant message contains any thinking blocks, the first block must be thinking" (anthropics/claude-code #20705)
		"thoughts come first": {
			in:     user + `,{"role":"assistant","content":"one"},{"role":"assistant","content":[` + signed("a") + `,` + call + `]},` + result,
			rest:   thinking,
			traits: budget, thinks: true,
			want: user + `,{"role":"assistant","content":[` + signed("a") + `,{"type":"text","text":"one"},` + call + `]},` + result,
		},
		"a turn to go on with": {
			in: user + `,{"role":"assistant","content":"one"}`, rest: thinking, traits: budget, lost: "thinking; changed: ",
			want: user + `,{"role":"assistant","content":[{"type":"text","text":"one"}]}`,
		},
		"later instructions in place": {
			in: user + `,{"role":"system","content":"s"},{"role":"assistant","content":"one"},` + user, traits: modern,
			want: user + `,{"role":"system","content":[{"type":"text","text":"s"}]},{"role":"assistant","content":[{"type":"text","text":"one"}]},` +
				user,
		},
		"later instructions in words": {
			in: user + `,{"role":"system","content":"s"}`, traits: old,
			want: `{"role":"user","content":[{"type":"text","text":"x"},{"type":"text","text":"<system>s</system>"}]}`,
		},
		// microsoft/autogen #6377, BerriAI/litellm #17343: ids and names that the vendor refuses, changed alike on both ends.
		"foreign ids and names": {
			in:     user + `,{"role":"assistant","content":[{"type":"tool_use","id":"call:1","name":"a b","input":{}}]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"call:1"}]}`,
			traits: old,
			want: user + `,{"role":"assistant","content":[{"type":"tool_use","id":"call_ICA5O8gECvPC4ZxCA9LPmy","name":"ab_c8687a","input":{}}]},` +
				`{"role":"user","content":[{"type":"tool_result","tool_use_id":"call_ICA5O8gECvPC4ZxCA9LPmy"}]}`,
		},
		// bigduu/Bamboo-agent #351, Portkey-AI/gateway #1104, BerriAI/litellm #5064, nielspeter/claude-code-proxy #13.
		"input is an object": {
			in: user + `,{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f"},{"type":"tool_use","id":"2","name":"f","input":"{\"a\":1.0}"},` +
				`{"type":"tool_use","id":"3","name":"f","input":"no"},{"type":"tool_use","id":"4","name":"f","input":null}]},` +
				`{"role":"user","content":[` + results("1", "2", "3", "4") + `]}`,
			traits: old,
			want: user + `,{"role":"assistant","content":[{"type":"tool_use","id":"1","name":"f","input":{}},{"type":"tool_use","id":"2","name":"f","input":{"a":1.0}},` +
				`{"type":"tool_use","id":"3","name":"f","input":{"_raw":"no"}},{"type":"tool_use","id":"4","name":"f","input":{}}]},` +
				`{"role":"user","content":[` + results("1", "2", "3", "4") + `]}`,
		},
		// NanmiCoder/cc-haha #1278, zeroclaw-labs/zeroclaw #9596.
		"a result with an image that failed": {
			in: user + `,{"role":"assistant","content":[` + call +
				`]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"},{"type":"text","text":""},` +
				`{"type":"image","source":{"type":"base64","media_type":"image/jpg","data":"/9j/"}}],"is_error":true}]}`,
			traits: old,
			want: user + `,{"role":"assistant","content":[` + call +
				`]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":[{"type":"text","text":"r"},` +
				`{"type":"image","source":{"type":"base64","media_type":"image/jpeg","data":"/9j/"}}],"is_error":true}]}`,
		},
		"a result that is an object": {
			in: user + `,{"role":"assistant","content":[` + call + `]},` + result, traits: old,
			set: func(p *form.Prompt) {
				p.Turns[2].Blocks[0].Result = &form.Result{ID: "1", Object: rawjson.Value(`{"error":"bad"}`)}
			},
			want: user + `,{"role":"assistant","content":[` + call +
				`]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"bad","is_error":true}]}`,
		},
		"an object as it is": {
			in: user + `,{"role":"assistant","content":[` + call + `]},` + result, traits: old,
			set: func(p *form.Prompt) {
				p.Turns[2].Blocks[0].Result = &form.Result{ID: "1", Object: rawjson.Value(`{"a":1,"b":2}`)}
			},
			want: user + `,{"role":"assistant","content":[` + call +
				`]},{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","content":"{\"a\":1,\"b\":2}"}]}`,
		},
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			p, _, loss := read(t, `{"messages":[`+test.in+`]`+test.rest+`}`)
			if test.set != nil {
				test.set(p)
			}
			payload, fault := messages.Write(p, form.Target{Traits: providers.Traits{Anthropic: test.traits}}, loss)
			if fault != nil {
				t.Fatal(fault)
			}
			body := bytes.Join(payload, nil)
			checkMembers(t, body, map[string]string{"messages": "[" + test.want + "]"})
			if got := rawjson.Value(body).At("thinking", "type") != nil; got != test.thinks {
				t.Errorf("thinks: got %t, want %t", got, test.thinks)
			}
			want := "dropped: " + test.lost
			if test.lost == "" {
				want = "dropped: ; changed: "
			}
			if got := losses(loss); got != want {
				t.Errorf("got %s, want %s", got, want)
			}
		})
	}
}

func results(ids ...string) string {
	for i, id := range ids {
		ids[i] = `{"type":"tool_result","tool_use_id":"` + id + `","content":"r"}`
	}
	return strings.Join(ids, ",")
}
