package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"modelrelay/dev/upstream"
)

func TestChat(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const tools = `,"tools":[{"type":"function","function":{"name":"weather"}},{"type":"function","function":{"name":"time"}}]`
	for name, tc := range map[string]struct {
		body string
		want map[string]any
	}{
		"echo": {`{"model":"gpt-4o","messages":[{"role":"user","content":"Grüße \"you\"\n"}]}`, map[string]any{
			"object": "chat.completion", "model": "gpt-4o", "choices.0.message.role": "assistant", "choices.0.finish_reason": "stop",
			"choices.0.message.content": "You said: Grüße \"you\"\n", "choices.0.message.refusal": nil, "choices.0.logprobs": nil,
			"usage.prompt_tokens": 5, "usage.completion_tokens": 4, "usage.total_tokens": 9,
		}},
		"parts": {`{"model":"gpt-4o","messages":[{"role":"user","content":[{"type":"text","text":"see "},{"type":"image_url","image_url":{"url":"data:,"}}]}]}`, map[string]any{
			"choices.0.message.content": "You said: see [image_url]",
		}},
		"length": {`{"model":"gpt-4o","max_tokens":2,"messages":[{"role":"user","content":"x"}]}`, map[string]any{
			"choices.0.message.content": "You said: ", "choices.0.finish_reason": "length", "usage.completion_tokens": 2,
		}},
		"choices": {`{"model":"gpt-4o","n":2,"messages":[{"role":"user","content":"x"}]}`, map[string]any{
			"choices.1.index": 1, "choices.1.message.content": "You said: x", "usage.completion_tokens": 6,
		}},
		"tool": {`{"model":"gpt-4o","messages":[{"role":"user","content":"hi"}]` + tools + `}`, map[string]any{
			"choices.0.message.content": nil, "choices.0.finish_reason": "tool_calls", "choices.0.message.tool_calls.0.type": "function",
			"choices.0.message.tool_calls.0.function.name": "weather", "choices.0.message.tool_calls.0.function.arguments": `{"echo":"hi"}`,
		}},
		"tools in parallel": {`{"model":"gpt-4o","messages":[{"role":"user","content":"parallel"}]` + tools + `}`, map[string]any{
			"choices.0.message.tool_calls.1.function.name": "time",
		}},
		"forced tool": {`{"model":"gpt-4o","tool_choice":{"type":"function","function":{"name":"time"}},"messages":[{"role":"user","content":"hi"}]` + tools + `}`, map[string]any{
			"choices.0.message.tool_calls.0.function.name": "time",
		}},
		"no tool": {`{"model":"gpt-4o","tool_choice":"none","messages":[{"role":"user","content":"hi"}]` + tools + `}`, map[string]any{
			"choices.0.message.content": "You said: hi",
		}},
		"tool result": {`{"model":"gpt-4o","messages":[{"role":"assistant","tool_calls":[{"id":"c","type":"function","function":{"name":"weather","arguments":"{}"}}]},{"role":"tool","tool_call_id":"c","content":"sunny"}]` + tools + `}`, map[string]any{
			"choices.0.message.content": "The tool said: sunny",
		}},
		"json": {`{"model":"gpt-4o","response_format":{"type":"json_object"},"messages":[{"role":"user","content":"json"}]}`, map[string]any{
			"choices.0.message.content": `{"echo":"json"}`,
		}},
		"as many pieces as the model says": {`{"model":"m-3chunks","messages":[{"role":"user","content":"hi"}]}`, map[string]any{
			"choices.0.message.content": "tok0 tok1 tok2", "usage.completion_tokens": 3,
		}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			whole := f.do(t, "POST", "/openai/v1/chat/completions", tc.body)
			if whole.status != 200 || whole.header.Get("Content-Type") != "application/json" || whole.header.Get("X-Request-Id") == "" {
				t.Fatalf("got %d %v %s", whole.status, whole.header, whole.body)
			}
			v := whole.json(t)
			wants(t, v, tc.want)

			// The stream says the same in pieces.
			body := strings.TrimSuffix(tc.body, "}") + `,"stream":true,"stream_options":{"include_usage":true}}`
			stream := f.do(t, "POST", "/openai/v1/chat/completions", body)
			if got := stream.header.Get("Content-Type"); got != "text/event-stream; charset=utf-8" {
				t.Errorf("stream's content type: got %q", got)
			}
			var text, arguments, finish string
			var usage any
			lines := events(t, stream.body)
			for i, line := range lines {
				if i == len(lines)-1 {
					if line != "[DONE]" {
						t.Errorf("last line: got %q", line)
					}
					break
				}
				var chunk any
				if err := json.Unmarshal([]byte(line), &chunk); err != nil {
					t.Fatalf("chunk %q: %v", line, err)
				}
				wants(t, chunk, map[string]any{"object": "chat.completion.chunk", "model": at(v, "model")})
				if at(chunk, "choices", 0, "index") != 0.0 {
					usage = at(chunk, "usage")
					continue
				}
				piece, _ := at(chunk, "choices", 0, "delta", "content").(string)
				text += piece
				piece, _ = at(chunk, "choices", 0, "delta", "tool_calls", 0, "function", "arguments").(string)
				if at(chunk, "choices", 0, "delta", "tool_calls", 0, "index") == 0.0 {
					arguments += piece
				}
				if reason, ok := at(chunk, "choices", 0, "finish_reason").(string); ok {
					finish = reason
				}
			}
			wantText, _ := at(v, "choices", 0, "message", "content").(string)
			wantArguments, _ := at(v, "choices", 0, "message", "tool_calls", 0, "function", "arguments").(string)
			if text != wantText || arguments != wantArguments || finish != at(v, "choices", 0, "finish_reason") {
				t.Errorf("stream: got %q %q %q, want %q %q", text, arguments, finish, wantText, wantArguments)
			}
			wants(t, usage, map[string]any{"total_tokens": at(v, "usage", "total_tokens")})
		})
	}
}

func TestStreamWithoutUsage(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	a := f.do(t, "POST", "/openai/v1/chat/completions", `{"model":"gpt-4o","stream":true,"messages":[{"role":"user","content":"x"}]}`)
	if strings.Contains(string(a.body), "usage") {
		t.Errorf("a stream that was not asked for usage holds it: %s", a.body)
	}
	if got, want := len(events(t, a.body)), 1+3+1+1; got != want {
		t.Errorf("events: got %d, want %d", got, want)
	}
}

func TestOpenAIRefusals(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const ok = `{"model":"gpt-4o","messages":[{"role":"user","content":"x"}]}`
	for name, tc := range map[string]struct {
		method, path, body string
		header             []string
		status             int
		want               map[string]any
	}{
		"no key": {
			"POST", "/chat/completions", ok,
			[]string{"Authorization", ""},
			401,
			map[string]any{"error.type": "invalid_request_error", "error.code": nil},
		},
		"wrong key": {
			"POST", "/chat/completions", ok,
			[]string{"Authorization", "Bearer sk-client"},
			401,
			map[string]any{"error.code": "invalid_api_key", "error.param": nil},
		},
		"no JSON": {"POST", "/chat/completions", `{`, nil, 400, map[string]any{"error.type": "invalid_request_error"}},
		"other type": {
			"POST", "/chat/completions", ok,
			[]string{"Content-Type", "text/plain"},
			400,
			map[string]any{"error.code": "unsupported_content_type"},
		},
		"no model":    {"POST", "/chat/completions", `{"messages":[]}`, nil, 400, map[string]any{"error.param": "model"}},
		"no messages": {"POST", "/chat/completions", `{"model":"gpt-4o"}`, nil, 400, map[string]any{"error.param": "messages"}},
		"type mismatch": {
			"POST", "/chat/completions", `{"model":"gpt-4o","messages":[],"max_tokens":"9"}`, nil, 400,
			map[string]any{"error.param": "max_tokens"},
		},
		"stray options": {
			"POST", "/chat/completions", `{"model":"gpt-4o","messages":[{"role":"user","content":""}],"stream_options":{}}`, nil,
			400,
			map[string]any{"error.param": "stream_options"},
		},
		"unknown model": {
			"POST", "/chat/completions", `{"model":"unknown-1","messages":[]}`, nil, 404,
			map[string]any{"error.code": "model_not_found"},
		},
		"unknown path":  {"POST", "/nothing", ok, nil, 404, map[string]any{"error.message": "Invalid URL (POST /openai/v1/nothing)"}},
		"unknown video": {"GET", "/videos/video_none", "", nil, 404, map[string]any{"error.type": "invalid_request_error"}},
		"no prompt":     {"POST", "/videos", `{"model":"sora-2"}`, nil, 400, map[string]any{"error.param": "prompt"}},
		"wrong seconds": {
			"POST", "/videos", `{"model":"sora-2","prompt":"x","seconds":"5"}`, nil, 400,
			map[string]any{"error.param": "seconds", "error.code": "invalid_value"},
		},
		"wrong size": {"POST", "/videos", `{"model":"sora-2","prompt":"x","size":"1x1"}`, nil, 400, map[string]any{"error.param": "size"}},
		"torn multipart": {
			"POST", "/videos", "--b\r\nContent-Disposition: form-data; name=\"prompt\"\r\n\r\nx\r\n",
			[]string{"Content-Type", "multipart/form-data; boundary=b"},
			400,
			map[string]any{"error.type": "invalid_request_error"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			a := f.do(t, tc.method, "/openai/v1"+tc.path, tc.body, tc.header...)
			if a.status != tc.status {
				t.Errorf("status: got %d, want %d: %s", a.status, tc.status, a.body)
			}
			v := a.json(t)
			wants(t, v, tc.want)
			if e, _ := at(v, "error").(map[string]any); len(e) != 4 || e["message"] == "" {
				t.Errorf("error has not its four keys: %s", a.body)
			}
		})
	}
}
