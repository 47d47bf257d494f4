package gemini_test

import (
	"slices"
	"testing"

	"modelrelay/providers"
	"modelrelay/providers/translate/chat"
	"modelrelay/providers/translate/form"
	"modelrelay/providers/translate/gemini"
	"modelrelay/providers/translate/messages"
	"modelrelay/providers/translate/responses"
)

type reads = func(*providers.Call, *form.Loss) (*form.Prompt, form.Ask, *providers.Fault)

// TestWritesForOthers: the calls of clients of the other formats, as a Gemini upstream receives them.
func TestWritesForOthers(t *testing.T) {
	t.Parallel()
	for name, test := range map[string]struct {
		read       reads
		body, want string
		dropped    []string
	}{
		"chat": {
			read: chat.Read,
			body: `{"model":"m","messages":[{"role":"system","content":"s"},{"role":"user","name":"n","content":[{"type":"text","text":"hi"},{"type":"image_url","image_url":{"url":"data:image/png;base64,AAAA","detail":"low"}},
				{"type":"input_audio","input_audio":{"data":"AA==","format":"wav"}},{"type":"file","file":{"file_data":"data:application/pdf;base64,AAAA","filename":"x.pdf"}}]},
				{"role":"assistant","content":null,"tool_calls":[{"id":"1","type":"function","function":{"name":"f","arguments":"{\"a\": 1.0}"},"extra_content":{"google":{"thought_signature":"QUJD"}}},
				{"id":"2","type":"function","function":{"name":"g","arguments":""}}]},{"role":"tool","tool_call_id":"2","content":"two"},{"role":"tool","tool_call_id":"1","content":[{"type":"text","text":"one"}]}],
				"tools":[{"type":"function","function":{"name":"f","description":"d","parameters":{"type":"object","properties":{"a":{"type":"number"}}},"strict":true}},{"type":"function","function":{"name":"g"}}],
				"tool_choice":{"type":"function","function":{"name":"f"}},"parallel_tool_calls":false,"temperature":0.5,"top_p":1,"max_completion_tokens":9,"n":2,"seed":1,"stop":["x"],"presence_penalty":0.5,
				"logit_bias":{"1":1},"logprobs":true,"top_logprobs":2,"user":"u","metadata":{"a":"b"},"service_tier":"flex","reasoning_effort":"low",
				"response_format":{"type":"json_schema","json_schema":{"name":"o","schema":{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}}}}`,
			want: `{"systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f","description":"d","parametersJsonSchema":{"type":"object","properties":{"a":{"type":"number"}}}},{"name":"g"}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY","allowedFunctionNames":["f"]}},
				"contents":[{"role":"user","parts":[{"text":"hi"},{"inlineData":{"mimeType":"image/png","data":"AAAA"}},{"inlineData":{"mimeType":"audio/wav","data":"AA=="}},{"inlineData":{"mimeType":"application/pdf","data":"AAAA"}}]},
				{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{"a": 1.0}},"thoughtSignature":"QUJD"},{"functionCall":{"id":"2","name":"g","args":{}}}]},
				{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"one"}}},{"functionResponse":{"id":"2","name":"g","response":{"output":"two"}}}]}],
				"generationConfig":{"temperature":0.5,"topP":1,"presencePenalty":0.5,"seed":1,"maxOutputTokens":9,"candidateCount":2,"stopSequences":["x"],"responseLogprobs":true,"logprobs":2,"thinkingConfig":{"thinkingLevel":"LOW","includeThoughts":true},"responseMimeType":"application/json","responseJsonSchema":{"type":"object","properties":{"x":{"type":"string"}},"additionalProperties":false}}}`,
			dropped: []string{
				"messages[].content[].image_url.detail", "messages[].name", "metadata", "service_tier", "tools[].function.strict",
				"parallel_tool_calls", "logit_bias", "user",
			},
		},
		"messages": {
			read: messages.Read,
			body: `{"model":"m","max_tokens":40000,"system":[{"type":"text","text":"s","cache_control":{"type":"ephemeral"}}],"messages":[{"role":"user","content":"hi"},
				{"role":"assistant","content":[{"type":"thinking","thinking":"t","signature":"foreign"},{"type":"text","text":"ok"},{"type":"tool_use","id":"1","name":"f","input":{"a":1}}]},
				{"role":"user","content":[{"type":"tool_result","tool_use_id":"1","is_error":true,"content":[{"type":"text","text":"no"},{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AAAA"}}]},
				{"type":"text","text":"go"},{"type":"document","source":{"type":"url","url":"https://x/y.pdf"}}]}],"tools":[{"name":"f","input_schema":{"type":"object","properties":{"a":{"type":"integer","minimum":1}}}}],
				"tool_choice":{"type":"any","disable_parallel_tool_use":true},"thinking":{"type":"enabled","budget_tokens":16384},"top_k":5,"stop_sequences":["x"],"metadata":{"user_id":"u"}}`,
			want: `{"systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f","parametersJsonSchema":{"type":"object","properties":{"a":{"type":"integer","minimum":1}}}}]}],"toolConfig":{"functionCallingConfig":{"mode":"ANY"}},
				"contents":[{"role":"user","parts":[{"text":"hi"}]},
				{"role":"model","parts":[{"text":"ok"},{"functionCall":{"id":"1","name":"f","args":{"a":1}},"thoughtSignature":"skip_thought_signature_validator"}]},
				{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"error":"no"},"parts":[{"inlineData":{"mimeType":"image/png","data":"AAAA"}}]}},{"text":"go"},{"fileData":{"mimeType":"application/pdf","fileUri":"https://x/y.pdf"}}]}],
				"generationConfig":{"topK":5,"maxOutputTokens":40000,"stopSequences":["x"],"thinkingConfig":{"thinkingLevel":"HIGH","includeThoughts":true}}}`,
			dropped: []string{"system[].cache_control", "tool_choice.disable_parallel_tool_use", "metadata.user_id"},
		},
		"responses": {
			read: responses.Read,
			body: `{"model":"m","instructions":"s","store":false,"input":[{"type":"message","role":"user","content":[{"type":"input_text","text":"hi"},{"type":"input_image","image_url":"https://x/y.png"}]},
				{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"foreign"},{"type":"function_call","call_id":"1","name":"f","arguments":"{}"},
				{"type":"function_call_output","call_id":"1","output":"r"},{"type":"message","role":"developer","content":"d"}],
				"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}],"tool_choice":"auto","reasoning":{"effort":"high","summary":"auto"},
				"text":{"format":{"type":"json_object"}},"max_output_tokens":100,"include":["reasoning.encrypted_content"]}`,
			want: `{"systemInstruction":{"parts":[{"text":"s"}]},"tools":[{"functionDeclarations":[{"name":"f"}]}],"toolConfig":{"functionCallingConfig":{"mode":"AUTO"}},
				"contents":[{"role":"user","parts":[{"text":"hi"},{"fileData":{"mimeType":"image/png","fileUri":"https://x/y.png"}}]},
				{"role":"model","parts":[{"functionCall":{"id":"1","name":"f","args":{}},"thoughtSignature":"skip_thought_signature_validator"}]},
				{"role":"user","parts":[{"functionResponse":{"id":"1","name":"f","response":{"output":"r"}}},{"text":"<system>d</system>"}]}],
				"generationConfig":{"maxOutputTokens":100,"thinkingConfig":{"thinkingLevel":"HIGH","includeThoughts":true},"responseMimeType":"application/json"}}`,
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			var loss form.Loss
			p, _, fault := test.read(&providers.Call{Model: "m", Content: providers.Content{Body: []byte(test.body)}}, &loss)
			if fault != nil {
				t.Fatal(fault)
			}
			payload, fault := gemini.Write(p, third(), &loss)
			if fault != nil {
				t.Fatal(fault)
			}
			if got, want := compact(t, string(slices.Concat(payload...))), compact(t, test.want); got != want {
				t.Errorf("got\n%s\nwant\n%s", got, want)
			}
			if !slices.Equal(loss.Dropped, test.dropped) || len(loss.Changed) > 0 {
				t.Errorf("got %+v, want %q", loss, test.dropped)
			}
		})
	}
}
