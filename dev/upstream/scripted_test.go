package upstream_test

import (
	"encoding/json"
	"strings"
	"testing"

	"modelrelay/dev/upstream"
)

// dialects are the four ways to ask, streamed or not. %s stands for the model, the tools of each are read and edit.
func dialects() map[string]struct {
	path, body string
	header     []string
} {
	const schema = `{"type":"object","properties":{"path":{"type":"string"}}}`
	type ask = struct {
		path, body string
		header     []string
	}
	return map[string]ask{
		"chat": {"/openai/v1/chat/completions", `{"model":"MODEL","messages":[{"role":"user","content":"go"}],"tools":[` +
			`{"type":"function","function":{"name":"read","parameters":` + schema + `}},{"type":"function","function":{"name":"edit","parameters":` +
			schema + `}}]`, nil},
		"responses": {"/openai/v1/responses", `{"model":"MODEL","input":"go","reasoning":{"summary":"auto"},"include":["reasoning.encrypted_content"],"tools":[` +
			`{"type":"function","name":"read","parameters":` + schema + `,"strict":false},{"type":"function","name":"edit","parameters":` + schema +
			`,"strict":false}]`, nil},
		"messages": {
			"/anthropic/v1/messages", `{"model":"MODEL","max_tokens":4000,"thinking":{"type":"enabled","budget_tokens":1024},"messages":[{"role":"user","content":"go"}],"tools":[` +
				`{"name":"read","input_schema":` + schema + `},{"name":"edit","input_schema":` + schema + `}]`,
			[]string{"Authorization", "", "X-Api-Key", testKey, "Anthropic-Version", "2023-06-01"},
		},
		"gemini": {
			"/gemini/v1beta/models/MODEL:generateContent",
			`{"contents":[{"role":"user","parts":[{"text":"go"}]}],"generationConfig":{"thinkingConfig":{"includeThoughts":true}},"tools":[` +
				`{"functionDeclarations":[{"name":"read","parametersJsonSchema":` + schema + `},{"name":"edit","parametersJsonSchema":` + schema +
				`}]}]`,
			[]string{"Authorization", "", "X-Goog-Api-Key", testKey},
		},
	}
}

// ask sends a call of a dialect, streamed or not.
func (f *fake) ask(t *testing.T, dialect, model string, stream bool) answer {
	t.Helper()
	d := dialects()[dialect]
	path, body := strings.Replace(d.path, "MODEL", model, 1), strings.Replace(d.body, "MODEL", model, 1)+"}"
	if stream && dialect == "gemini" {
		path = strings.Replace(path, ":generateContent", ":streamGenerateContent?alt=sse", 1)
	} else if stream {
		body = strings.TrimSuffix(body, "}") + `,"stream":true}`
	}
	return f.do(t, "POST", path, body, d.header...)
}

func modelOf(dialect string) string {
	return map[string]string{"chat": "gpt-4o", "responses": "gpt-5", "messages": "claude-sonnet-4-5", "gemini": "gemini-3-pro"}[dialect]
}

// TestScripts has one answer rendered in every dialect, whole and streamed; both must hold the same words.
func TestScripts(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const answer = `{"parts":[{"think":["Let ","me."]},{"redacted":true},{"text":"You said {{said}}"},{"call":{"name":"read","arguments":{"path":"{{said}}.txt"}}},` +
		`{"any":[{"name":"write"},{"name":"edit","id":"call_2","arguments":"{\"path\": \"b\"}"}]}],"usage":{"input":100,"read":20,"write":10,"write_1h":4,"output":50,"reasoning":30},"interleave":true}`
	for dialect, want := range map[string]struct {
		whole  map[string]any
		stream []string // in this order
	}{
		"chat": {map[string]any{
			"choices.0.message.content": "You said go", "choices.0.message.reasoning_content": "Let me.", "choices.0.finish_reason": "tool_calls",
			"choices.0.message.tool_calls.0.function.arguments": `{"path":"go.txt"}`, "choices.0.message.tool_calls.1.id": "call_2",
			"choices.0.message.tool_calls.1.function.arguments": `{"path": "b"}`,
			"usage.prompt_tokens":                               100, "usage.prompt_tokens_details.cached_tokens": 20,
			"usage.prompt_tokens_details.cache_write_tokens": 10,
			"usage.completion_tokens":                        50, "usage.completion_tokens_details.reasoning_tokens": 30,
		}, []string{
			`"reasoning_content":"Let "`, `"reasoning_content":"me."`, `"content":"said "`, `"name":"read","arguments":""},"index":0`,
			`"id":"call_2"`,
			`"index":0,"function":{"arguments":`, `"index":1,"function":{"arguments":`, `"index":0,"function":{"arguments":`,
			`"finish_reason":"tool_calls"`, `[DONE]`,
		}},
		"responses": {map[string]any{
			"output.0.type": "reasoning", "output.0.summary.0.text": "Let me.", "output.1.type": "reasoning",
			"output.2.content.0.text": "You said go",
			"output.3.name":           "read", "output.3.arguments": `{"path":"go.txt"}`, "output.4.call_id": "call_2", "status": "completed",
			"usage.input_tokens": 100, "usage.input_tokens_details.cached_tokens": 20, "usage.input_tokens_details.cache_write_tokens": 10,
			"usage.output_tokens": 50, "usage.output_tokens_details.reasoning_tokens": 30,
		}, []string{
			"response.created", "response.reasoning_summary_part.added", `"delta":"Let "`, "response.reasoning_summary_text.done",
			`"encrypted_content":"gAAAAA`,
			`"delta":"said "`, "response.output_text.done", "response.function_call_arguments.delta", `"output_index":4`, "response.completed",
			`"input_tokens":100`,
		}},
		"messages": {map[string]any{
			"content.0.thinking": "Let me.", "content.1.type": "redacted_thinking", "content.2.text": "You said go",
			"content.3.input.path": "go.txt", "content.4.id": "call_2",
			"stop_reason": "tool_use", "usage.input_tokens": 70, "usage.cache_read_input_tokens": 20, "usage.cache_creation_input_tokens": 10,
			"usage.cache_creation.ephemeral_1h_input_tokens": 4, "usage.output_tokens": 50, "usage.output_tokens_details.thinking_tokens": 30,
		}, []string{
			`"input_tokens":70`, `"thinking_delta"`, `"signature_delta"`, `"content_block_stop"`, `"data":`, `"text":"said "`, `"index":3`,
			`"partial_json":""`, `"index":4`,
			`"stop_reason":"tool_use"`, `"output_tokens":50`, "message_stop",
		}},
		"gemini": {map[string]any{
			"candidates.0.content.parts.0.text": "Let me.", "candidates.0.content.parts.0.thought": true,
			"candidates.0.content.parts.1.text":                   "You said go",
			"candidates.0.content.parts.2.functionCall.args.path": "go.txt", "candidates.0.content.parts.3.functionCall.id": "call_2",
			"candidates.0.content.parts.3.thoughtSignature": nil, "candidates.0.finishReason": "STOP", "usageMetadata.promptTokenCount": 100,
			"usageMetadata.cachedContentTokenCount": 20, "usageMetadata.candidatesTokenCount": 20, "usageMetadata.thoughtsTokenCount": 30,
			"usageMetadata.totalTokenCount": 150,
		}, []string{
			`"text":"Let ","thought":true`, `"text":"said "`, `"thoughtSignature":"`, `"name":"read"`, `"name":"edit"`,
			`"finishReason":"STOP"`, `"totalTokenCount":150`,
		}},
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			model := modelOf(dialect)
			f.control(t, "POST", "scripts", `{"model":"`+model+`","answers":[`+answer+`,`+answer+`]}`)
			whole := f.ask(t, dialect, model, false)
			if whole.status != 200 {
				t.Fatalf("got %d %s", whole.status, whole.body)
			}
			wants(t, whole.json(t), want.whole)
			rest := string(f.ask(t, dialect, model, true).body)
			for _, piece := range want.stream {
				_, after, found := strings.Cut(rest, piece)
				if !found && dialect == "gemini" && strings.Contains(piece, "thoughtSignature") {
					continue // fields of a part have their own order
				}
				if !found {
					t.Errorf("stream: no %s in what is left: %s", piece, rest)
					break
				}
				rest = after
			}
		})
	}
}

// TestScriptsSearch has an answer with a search rendered in every dialect, whole and streamed. A request that offers no search gets none.
func TestScriptsSearch(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	const says = `{"parts":[{"search":{"query":"go 1.30","pages":[{"url":"https://go.dev/a","title":"A"},{"url":"https://go.dev/b","title":"B"}]}},` +
		`{"text":"Go é "},{"cited":{"text":"is out","page":1}},{"text":"."}]}`
	for dialect, want := range map[string]struct {
		body, tools string
		whole       map[string]any
		stream      []string // in this order
	}{
		"chat": {
			`{"model":"MODEL","messages":[{"role":"user","content":"go"}]`, `,"web_search_options":{}`,
			map[string]any{
				"choices.0.message.content": "Go é is out.", "choices.0.message.annotations.0.url_citation.start_index": 5,
				"choices.0.message.annotations.0.url_citation.end_index": 11, "choices.0.message.annotations.0.url_citation.url": "https://go.dev/b",
			},
			[]string{
				`"content":"is "`, `"content":"."`,
				`{"annotations":[{"type":"url_citation","url_citation":{"start_index":5,"end_index":11,"title":"B"`, `"finish_reason":"stop"`,
			},
		},
		"responses": {
			`{"model":"MODEL","input":"go","include":["web_search_call.action.sources"]`, `,"tools":[{"type":"web_search"}]`,
			map[string]any{
				"output.0.type": "web_search_call", "output.0.action.query": "go 1.30", "output.0.action.sources.1.url": "https://go.dev/b",
				"output.2":                nil,
				"output.1.content.0.text": "Go é is out.", "output.1.content.0.annotations.0.title": "B",
				"output.1.content.0.annotations.0.start_index": 5,
				"output.1.content.0.annotations.0.end_index":   11,
			},
			[]string{
				`"type":"web_search_call","status":"in_progress"`, "response.web_search_call.searching", `"query":"go 1.30"`, `"delta":"out"`,
				"response.output_text.annotation.added", `"delta":"."`, "response.output_text.done", `"start_index":5,"end_index":11`,
				"response.completed",
			},
		},
		"messages": {
			`{"model":"MODEL","max_tokens":4000,"messages":[{"role":"user","content":"go"}]`,
			`,"tools":[{"type":"web_search_20250305","name":"web_search"}]`,
			map[string]any{
				"content.0.type": "server_tool_use", "content.0.input.query": "go 1.30", "content.1.type": "web_search_tool_result",
				"content.1.content.1.url": "https://go.dev/b", "content.2.text": "Go é ", "content.2.citations": nil, "content.3.text": "is out",
				"content.3.citations.0.url": "https://go.dev/b", "content.3.citations.0.cited_text": "is out", "content.4.text": ".",
				"usage.server_tool_use.web_search_requests": 1, "stop_reason": "end_turn",
			},
			[]string{
				`"server_tool_use"`, `"partial_json":""`, `query`, `"web_search_result"`, `"citations":[]`, `"citations_delta"`, `"text":"is "`,
				`"web_search_requests":1`,
			},
		},
		"gemini": {
			`{"contents":[{"role":"user","parts":[{"text":"go"}]}]`, `,"tools":[{"googleSearch":{}}]`,
			map[string]any{
				"candidates.0.content.parts.0.text": "Go é is out.", "candidates.0.groundingMetadata.webSearchQueries.0": "go 1.30",
				"candidates.0.groundingMetadata.groundingChunks.1.web.uri":                   "https://go.dev/b",
				"candidates.0.groundingMetadata.groundingSupports.0.segment.startIndex":      6,
				"candidates.0.groundingMetadata.groundingSupports.0.segment.endIndex":        12,
				"candidates.0.groundingMetadata.groundingSupports.0.groundingChunkIndices.0": 1,
			},
			[]string{`"text":"is "`, `"text":"."`, `"finishReason":"STOP"`, `"groundingMetadata"`},
		},
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			model, d := modelOf(dialect)+"-search", dialects()[dialect]
			f.control(t, "POST", "scripts", `{"model":"`+model+`","answers":[`+says+`,`+says+`,`+says+`]}`)
			ask := func(more string, stream bool) answer {
				path := strings.Replace(d.path, "MODEL", model, 1)
				if stream && dialect == "gemini" {
					path = strings.Replace(path, ":generateContent", ":streamGenerateContent?alt=sse", 1)
				} else if stream {
					more += `,"stream":true`
				}
				return f.do(t, "POST", path, strings.Replace(want.body, "MODEL", model, 1)+more+"}", d.header...)
			}
			whole := ask(want.tools, false)
			if whole.status != 200 {
				t.Fatalf("got %d %s", whole.status, whole.body)
			}
			wants(t, whole.json(t), want.whole)
			rest := string(ask(want.tools, true).body)
			for _, piece := range want.stream {
				_, after, found := strings.Cut(rest, piece)
				if !found {
					t.Errorf("stream: no %s in what is left: %s", piece, rest)
					break
				}
				rest = after
			}
			if got := string(ask("", false).body); !strings.Contains(got, "offers no search") || strings.Contains(got, "go.dev") {
				t.Errorf("without a search offered: got %s", got)
			}
		})
	}
}

// TestScriptsEnd has answers end early, and for a reason.
func TestScriptsEnd(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	for dialect, want := range map[string]struct{ status, inStream, limit, filtered string }{
		"chat": {
			`"type":"server_error"`, `data: {"error":{"message":"Busy"`, `"finish_reason":"length"`,
			`"finish_reason":"content_filter"`,
		},
		"responses": {`"type":"server_error"`, `"type":"response.failed"`, `"reason":"max_output_tokens"`, `"reason":"content_filter"`},
		"messages":  {`"type":"overloaded_error"`, "event: error\ndata: ", `"stop_reason":"max_tokens"`, `"stop_reason":"refusal"`},
		"gemini":    {`"status":"UNAVAILABLE"`, `data: {"error":{"code":503`, `"finishReason":"MAX_TOKENS"`, `"finishReason":"SAFETY"`},
	} {
		t.Run(dialect, func(t *testing.T) {
			t.Parallel()
			model := modelOf(dialect) + "-x"
			script := func(answer string) { f.control(t, "POST", "scripts", `{"model":"`+model+`","answers":[`+answer+`]}`) }

			script(`{"parts":[{"text":"a b c d"}],"break":{"how":"error","status":503,"message":"Busy"}}`)
			if a := f.ask(t, dialect, model, true); a.status != 503 || !strings.Contains(string(a.body), want.status) ||
				!strings.Contains(string(a.body), "Busy") {
				t.Errorf("an error at once: got %d %s", a.status, a.body)
			}
			script(`{"parts":[{"text":"a b c d"}],"break":{"after":2,"how":"error","status":503,"message":"Busy"}}`)
			a := f.ask(t, dialect, model, true)
			if a.status != 200 || !strings.Contains(string(a.body), want.inStream) || strings.Contains(string(a.body), "DONE") || a.err != nil {
				t.Errorf("an error in the stream: got %d %s", a.status, a.body)
			}
			script(`{"parts":[{"text":"a b c d"}],"break":{"after":2,"how":"cut"}}`)
			if a := f.ask(t, dialect, model, true); a.err == nil || strings.Count(string(a.body), "data: ") != 2 {
				t.Errorf("cut: got %v %s", a.err, a.body)
			}
			script(`{"parts":[{"text":"a b c d"}],"break":{"after":2,"how":"end"}}`)
			if a := f.ask(t, dialect, model, true); a.err != nil || strings.Count(string(a.body), "data: ") != 2 {
				t.Errorf("a silent end: got %v %s", a.err, a.body)
			}
			for stop, word := range map[string]string{"max_tokens": want.limit, "filtered": want.filtered} {
				for _, stream := range []bool{false, true} {
					script(`{"parts":[{"text":"a b"}],"stop":"` + stop + `"}`)
					if a := f.ask(t, dialect, model, stream); !strings.Contains(string(a.body), word) {
						t.Errorf("%s: no %s in %s", stop, word, a.body)
					}
				}
			}
		})
	}
}

// TestPlan has an agent's conversation follow a plan: which answer comes depends on the history alone.
func TestPlan(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	f.control(t, "POST", "scripts", `{"model":"gpt-4o","plan":true,"answers":[{"parts":[{"call":{"name":"read","id":"call_1","arguments":{"path":"a"}}}]},{"parts":[{"text":"Done: {{said}}"}]}]}`)
	const tools = `"tools":[{"type":"function","function":{"name":"read"}}]`
	ask := func(messages string, tools ...string) any {
		body := `{"model":"gpt-4o","messages":[` + messages + `]` + strings.Join(append([]string{""}, tools...), ",") + `}`
		return f.do(t, "POST", "/openai/v1/chat/completions", body).json(t)
	}
	const user = `{"role":"user","content":"go"}`
	const history = user + `,{"role":"assistant","content":null,"tool_calls":[{"id":"call_1","type":"function","function":{"name":"read","arguments":"{}"}}]},{"role":"tool","tool_call_id":"call_1","content":"text"}`
	for range 2 {
		wants(t, ask(user, tools), map[string]any{"choices.0.message.tool_calls.0.id": "call_1"})
		wants(t, ask(history, tools), map[string]any{"choices.0.message.content": "Done: text"})
		wants(t, ask(user), map[string]any{"choices.0.message.content": "You said: go"}) // a call without tools is not the agent's
	}
	list := f.control(t, "GET", "scripts", "")
	wants(t, list, map[string]any{"scripts.0.taken": 4})
	id := textAt(t, list, "scripts", 0, "id")
	if left := listAt(t, f.control(t, "DELETE", "scripts/"+id, ""), "scripts"); len(left) != 0 {
		t.Errorf("after its removal: %v", left)
	}
	if a := f.do(t, "DELETE", "/_control/scripts/"+id, ""); a.status != 404 {
		t.Errorf("removed twice: got %d", a.status)
	}
	if a := f.do(t, "POST", "/_control/scripts", `{"answers":[]}`); a.status != 400 || !strings.Contains(string(a.body), "answers") {
		t.Errorf("an empty script: got %d %s", a.status, a.body)
	}
}

// TestCounts counts the same text where each vendor counts.
func TestCounts(t *testing.T) {
	t.Parallel()
	f := start(t, upstream.Options{})
	for path, tc := range map[string]struct {
		body, key string
		header    []string
	}{
		"/openai/v1/responses/input_tokens": {`{"model":"gpt-5","input":"hello you"}`, "input_tokens", nil},
		"/gemini/v1beta/models/m:countTokens": {
			`{"generateContentRequest":{"model":"models/m","contents":[{"role":"user","parts":[{"text":"hello you"}]}]}}`, "totalTokens",
			[]string{"Authorization", "", "X-Goog-Api-Key", testKey},
		},
	} {
		v := f.do(t, "POST", path, tc.body, tc.header...).json(t)
		if got := at(v, tc.key); got != 3.0 {
			b, _ := json.Marshal(v)
			t.Errorf("%s: got %s, want 3 tokens", path, b)
		}
	}
}
