package openai_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"modelrelay/dev/upstream/strict"
	"modelrelay/dev/upstream/strict/openai"
)

// checker keeps the items rs_kept, fc_kept (a call named call_kept) and the response resp_kept, which made that call. enc:ID is the
// encrypted content of an item.
func checker() *openai.Checker {
	return openai.New(openai.State{
		Item: func(id string) (kind, call string, ok bool) {
			switch id {
			case "rs_kept":
				return "reasoning", "", true
			case "fc_kept":
				return "function_call", "call_kept", true
			}
			return "", "", false
		},
		Response: func(id string) (calls []string, ok bool) { return []string{"call_kept"}, id == "resp_kept" },
		Encrypted: func(id, content string) (issued, same bool) {
			return strings.HasPrefix(content, "enc:"), content == "enc:"+id
		},
	})
}

func decoded(t *testing.T, body string) map[string]any {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	return v
}

// want compares a refusal with PARAM: the beginning of its message; empty: none.
func want(t *testing.T, got *strict.Refusal, want string) {
	t.Helper()
	said := ""
	if got != nil {
		said = got.Param + ": " + got.Message
	}
	if want == "" && said != "" || !strings.HasPrefix(said, want) {
		t.Errorf("got %q, want %q", said, want)
	}
}

func text(s string) string { return fmt.Sprintf(`{"role":"user","content":%q}`, s) }

// TestChat has the rules of https://platform.openai.com/docs/api-reference/chat/create and of the pages and reports named in the package;
// those of single rows are named next to them.
func TestChat(t *testing.T) {
	t.Parallel()
	hi := `"messages":[` + text("hi") + `]`
	call := func(id string) string {
		return `{"role":"assistant","content":null,"tool_calls":[{"id":"` + id + `","type":"function","function":{"name":"f","arguments":"{}"}}]}`
	}
	const (
		two    = `{"role":"assistant","tool_calls":[{"id":"a","type":"function","function":{"name":"f","arguments":"{}"}},{"id":"b","type":"function","function":{"name":"f","arguments":"{}"}}]}`
		params = `{"type":"object","properties":{"a":{"type":"string"}}}`
		tool   = `"tools":[{"type":"function","function":{"name":"f","parameters":` + params + `}}]`
	)
	result := func(id string) string { return `{"role":"tool","tool_call_id":"` + id + `","content":"ok"}` }
	talk := func(messages ...string) string { return `"messages":[` + strings.Join(messages, ",") + `]` }
	function := func(s string) string { return hi + `,"tools":[{"type":"function","function":` + s + `}]` }
	strictly := func(s string) string { return function(`{"name":"f","strict":true,"parameters":` + s + `}`) }
	for name, tc := range map[string]struct{ model, body, want string }{
		"plain": {"gpt-4o", hi + `,"temperature":0.5,"max_tokens":9,"stop":["a"],"n":2,"stream":true,"stream_options":{"include_usage":true},"seed":1,"user":"u"`, ""},
		"conversation": {"gpt-4o", talk(`{"role":"system","content":"be kind"}`, text("x"), two, result("b"), result("a"), text("y")) + "," +
			tool, ""},
		"reasoning": {"gpt-5", hi + `,"max_completion_tokens":99,"reasoning_effort":"minimal","temperature":1`, ""},

		// Fields: https://github.com/teabranch/open-responses-server/issues/41; in messages they are ignored, https://github.com/Soju06/codex-lb/pull/637.
		"unknown":           {"gpt-4o", hi + `,"reasoning":{}`, "reasoning: Unknown parameter: 'reasoning'."},
		"unknown, imitated": {"llama-3", hi + `,"reasoning":{},"top_k":1`, ""},
		"in a message":      {"gpt-4o", `"messages":[{"role":"user","content":"x","reasoning_content":"y"}]`, ""},
		"in a part": {
			"gpt-4o", `"messages":[{"role":"user","content":[{"type":"text","text":"x","cache_control":{}}]}]`,
			"messages[0].content[0].cache_control: Unknown parameter: 'messages[0].content[0].cache_control'.",
		},
		"part of responses": {
			"gpt-4o", `"messages":[{"role":"user","content":[{"type":"input_text","text":"x"}]}]`,
			"messages[0].content[0].type: Invalid value: 'input_text'. Supported values are: 'file', 'image_url', 'input_audio', 'refusal', and 'text'.",
		},
		"role": {
			"gpt-4o", `"messages":[{"role":"model","content":"x"}]`,
			"messages[0].role: Invalid value: 'model'. Supported values are: 'assistant', 'developer', 'function', 'system', 'tool', and 'user'.",
		},
		"arguments": {
			"gpt-4o", talk(text("x"), strings.Replace(call("a"), `"{}"`, `{}`, 1), result("a")),
			"messages[1].tool_calls[0].function.arguments: Invalid type for 'messages[1].tool_calls[0].function.arguments': expected a string, but got an object instead.",
		},
		"nothing said": {
			"gpt-4o", `"messages":[{"role":"user","content":null}]`,
			"messages.[0].content: Invalid value for 'content': expected a string, got null.",
		},
		"nothing in parts": {
			"gpt-4o", `"messages":[{"role":"user","content":[]}]`,
			"messages[0].content: Invalid 'messages[0].content': empty array.",
		},
		"metadata, not kept": {
			"gpt-4o", hi + `,"metadata":{"a":"b"}`,
			"metadata: The 'metadata' parameter is only allowed when 'store' is enabled.",
		},
		"long safety": {
			"gpt-4o", hi + `,"safety_identifier":"` + strings.Repeat("x", 65) + `"`,
			"safety_identifier: Invalid 'safety_identifier': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
		},
		"five stops": {
			"gpt-4o", hi + `,"stop":["1","2","3","4","5"]`,
			"stop: Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length 5 instead.",
		},
		"too warm": {
			"gpt-4o", hi + `,"temperature":2.5`,
			"temperature: Invalid 'temperature': decimal above maximum value. Expected a value <= 2, but got 2.5 instead.",
		},
		"no tokens": {
			"gpt-4o", hi + `,"max_tokens":0`,
			"max_tokens: Invalid 'max_tokens': integer below minimum value. Expected a value >= 1, but got 0 instead.",
		},
		"bounded twice": {
			"gpt-4o", hi + `,"max_tokens":1,"max_completion_tokens":1`,
			"max_tokens: Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.",
		},
		"image of a tool": {
			"gpt-4o", talk(text("x"), call("a"),
				`{"role":"tool","tool_call_id":"a","content":[{"type":"image_url","image_url":{"url":"data:,"}}]}`),
			"messages[2]: Invalid 'messages[2]'. Image URLs are only allowed for messages with role 'user', but this message with role 'tool' contains an image URL.",
		},
		"image of the system": {
			"gpt-4o", `"messages":[{"role":"system","content":[{"type":"file","file":{}}]}]`,
			"messages[0].content[0].type: Invalid value: 'file'. Supported values are: 'text'.",
		},

		// Calls: https://github.com/microsoft/autogen/issues/6377 (length).
		"no answer": {
			"gpt-4o", talk(text("x"), two, result("a"), text("y")),
			"messages.[3].role: An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: b",
		},
		"no answer at last": {"gpt-4o", talk(text("x"), call("a")), "messages: An assistant message with 'tool_calls' must be followed"},
		"answered later": {
			"gpt-4o", talk(text("x"), call("a"), text("y"), result("a")),
			"messages.[2].role: An assistant message with 'tool_calls' must be followed",
		},
		"no call": {
			"gpt-4o", talk(text("x"), result("a")),
			"messages.[1].role: Invalid parameter: messages with role 'tool' must be a response to a ",
		},
		"another's call": {
			"gpt-4o", talk(text("x"), call("a"), result("c")),
			"messages.[2].tool_call_id: Invalid parameter: 'tool_call_id' of 'c' not found in 'tool_calls' of previous message.",
		},
		"no id": {
			"gpt-4o", talk(text("x"), call("a"), `{"role":"tool","content":"ok"}`),
			"messages[2].tool_call_id: Missing required parameter: 'messages[2].tool_call_id'.",
		},
		"long id": {
			"gpt-4o", talk(text("x"), call(strings.Repeat("i", 41)), result(strings.Repeat("i", 41))),
			"messages[1].tool_calls[0].id: Invalid 'messages[1].tool_calls[0].id': string too long. Expected a string with maximum length 40, but got a string with length 41 instead.",
		},
		"no calls": {
			"gpt-4o", talk(text("x"), `{"role":"assistant","content":"y","tool_calls":[]}`, text("z")),
			"messages[1].tool_calls: Invalid 'messages[1].tool_calls': empty array.",
		},
		"its name": {
			"gpt-4o", talk(text("x"), strings.Replace(call("a"), `"f"`, `"a.b"`, 1), result("a")),
			"messages[1].tool_calls[0].function.name: Invalid 'messages[1].tool_calls[0].function.name': string does not match pattern.",
		},
		"imitated, as well": {"llama-3", talk(text("x"), result("a")), "messages.[1].role: Invalid parameter"},

		// Reasoning: https://platform.openai.com/docs/guides/reasoning; tools: see withTools.
		"max_tokens": {
			"gpt-5", hi + `,"max_tokens":9`,
			"max_tokens: Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.",
		},
		"temperature": {
			"o4-mini", hi + `,"temperature":0.5`,
			"temperature: Unsupported value: 'temperature' does not support 0.5 with this model. Only the default (1) value is supported.",
		},
		"top_p":            {"gpt-5-mini", hi + `,"top_p":0.5`, "top_p: Unsupported parameter: 'top_p' is not supported with this model."},
		"stop":             {"o3", hi + `,"stop":"x"`, "stop: Unsupported parameter: 'stop' is not supported with this model."},
		"warm, not at all": {"gpt-5.2", hi + `,"temperature":0.5,"reasoning_effort":"none"`, ""},
		"effort of 4o":     {"gpt-4o", hi + `,"reasoning_effort":"low"`, ": Unrecognized request argument supplied: reasoning_effort"},
		"effort none of 5": {
			"gpt-5", hi + `,"reasoning_effort":"none"`,
			"reasoning_effort: Unsupported value: 'reasoning_effort' does not support 'none' with this model. Supported values are: 'minimal', 'low', 'medium', and 'high'.",
		},
		"effort xhigh": {"gpt-5.4", hi + `,"reasoning_effort":"xhigh"`, ""},
		"tools, effort": {
			"gpt-5.4", hi + "," + tool + `,"reasoning_effort":"low"`,
			"reasoning_effort: Function tools with reasoning_effort are not supported for gpt-5.4 in /v1/chat/completions. Please use /v1/responses instead.",
		},
		"tools, no effort": {"gpt-5.4", hi + "," + tool, ""},
		"tools of 5.6": {
			"gpt-5.6-terra", hi + "," + tool,
			"reasoning_effort: Function tools with reasoning_effort are not supported for gpt-5.6-terra in /v1/chat/completions. To use function tools, use /v1/responses or set reasoning_effort to 'none'.",
		},
		"tools of 5.6 none": {"gpt-5.6", hi + "," + tool + `,"reasoning_effort":"none"`, ""},
		"tools of 5":        {"gpt-5", hi + "," + tool + `,"reasoning_effort":"low"`, ""},

		// Tools: https://platform.openai.com/docs/guides/function-calling.
		"no tools": {
			"gpt-4o", hi + `,"tools":[]`,
			"tools: Invalid 'tools': empty array. Expected an array with minimum length 1, but got an empty array instead.",
		},
		"choice alone": {
			"gpt-4o", hi + `,"tool_choice":"auto"`,
			"tool_choice: Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
		},
		"parallel alone": {
			"gpt-4o", hi + `,"parallel_tool_calls":true`,
			"parallel_tool_calls: Invalid value for 'parallel_tool_calls': 'parallel_tool_calls' is only allowed when 'tools' are specified.",
		},
		"choice unknown": {
			"gpt-4o", hi + "," + tool + `,"tool_choice":{"type":"function","function":{"name":"g"}}`,
			"tool_choice: Tool choice 'g' not found in 'tools' parameter.",
		},
		"choice, flat": {
			"gpt-4o", hi + "," + tool + `,"tool_choice":{"type":"function","name":"f"}`,
			"tool_choice.function: Missing required parameter: 'tool_choice.function'.",
		},
		"choice, a word": {
			"gpt-4o", hi + "," + tool + `,"tool_choice":"any"`,
			"tool_choice: Invalid value: 'any'. Supported values are: 'none', 'auto', and 'required'.",
		},
		"tool, flat": {
			"gpt-4o", hi + `,"tools":[{"type":"function","name":"f"}]`,
			"tools[0].function: Missing required parameter: 'tools[0].function'.",
		},
		"tool, theirs": {
			"gpt-4o", hi + `,"tools":[{"name":"f","input_schema":{}}]`,
			"tools[0].type: Missing required parameter: 'tools[0].type'.",
		},
		"name": {
			"gpt-4o", function(`{"name":"a.b"}`),
			"tools[0].function.name: Invalid 'tools[0].function.name': string does not match pattern. Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'.",
		},
		"long name": {
			"gpt-4o", function(`{"name":"` + strings.Repeat("f", 65) + `"}`),
			"tools[0].function.name: Invalid 'tools[0].function.name': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
		},
		"no parameters": {"gpt-4o", function(`{"name":"f"}`), ""},
		"not an object": {
			"gpt-4o", function(`{"name":"f","parameters":{"type":"string"}}`),
			`tools[0].function.parameters: Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"', got 'type: "string"'.`,
		},
		"no type": {
			"gpt-4o", function(`{"name":"f","parameters":{}}`),
			`tools[0].function.parameters: Invalid schema for function 'f': schema must be a JSON Schema of 'type: "object"', got 'type: "None"'.`,
		},
		"no properties": {
			"gpt-4o", function(`{"name":"f","parameters":{"type":"object"}}`),
			"tools[0].function.parameters: Invalid schema for function 'f': In context=(), object schema missing properties.",
		},
		"no items": {
			"gpt-4o", function(`{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"array"}}}}`),
			"tools[0].function.parameters: Invalid schema for function 'f': In context=('properties', 'a'), array schema missing items.",
		},
		"union at top": {
			"gpt-4o", function(`{"name":"f","parameters":{"type":"object","anyOf":[]}}`),
			"tools[0].function.parameters: Invalid schema for function 'f': schema must have type 'object' and not have",
		},
		"any schema": {"gpt-4o", function(`{"name":"f","parameters":{"type":"object","properties":{"a":{"type":"integer","minimum":1,"format":"int32"}},"$schema":"x"}}`), ""},
		"strict":     {"gpt-4o", strictly(`{"type":"object","properties":{"a":{"type":["string","null"]}},"required":["a"],"additionalProperties":false}`), ""},
		"strict, open": {
			"gpt-4o", strictly(params),
			"tools[0].function.parameters: Invalid schema for function 'f': In context=(), 'additionalProperties' is required to be supplied and to be false.",
		},
		"strict, missing": {
			"gpt-4o", strictly(`{"type":"object","properties":{"a":{"type":"string"}},"additionalProperties":false}`),
			"tools[0].function.parameters: Invalid schema for function 'f': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Missing 'a'.",
		},
		"strict, extra": {
			"gpt-4o", strictly(`{"type":"object","properties":{},"required":["a"],"additionalProperties":false}`),
			"tools[0].function.parameters: Invalid schema for function 'f': In context=(), 'required' is required to be supplied and to be an array including every key in properties. Extra required key 'a' supplied.",
		},
		"strict, within": {
			"gpt-4o", strictly(`{"type":"object","properties":{"a":{"allOf":[]}},"required":["a"],"additionalProperties":false}`),
			"tools[0].function.parameters: Invalid schema for function 'f': In context=('properties', 'a'), 'allOf' is not permitted.",
		},
		"strict, format": {"gpt-4o", strictly(`{"type":"object","properties":{"a":{"type":"string","format":"uri"}},"required":["a"],"additionalProperties":false}`), "tools[0].function.parameters: Invalid schema for function 'f': In context=('properties', 'a'), 'uri' is not a valid format."},
		"strict, $ref":   {"gpt-4o", strictly(`{"type":"object","properties":{"a":{"$ref":"#/$defs/n","description":"x"}},"required":["a"],"additionalProperties":false}`), "tools[0].function.parameters: Invalid schema for function 'f': In context=('properties', 'a'), $ref cannot have keywords {'description'}."},

		// Formats: https://platform.openai.com/docs/guides/structured-outputs.
		"json": {"gpt-4o", talk(text("in JSON")) + `,"response_format":{"type":"json_object"}`, ""},
		"json unsaid": {
			"gpt-4o", hi + `,"response_format":{"type":"json_object"}`,
			"messages: 'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.",
		},
		"schema": {"gpt-4o", hi + `,"response_format":{"type":"json_schema","json_schema":{"name":"o","schema":` + params + `}}`, ""},
		"schema strict": {"gpt-4o", hi + `,"response_format":{"type":"json_schema","json_schema":{"name":"o","strict":true,"schema":` + params +
			`}}`, "response_format: Invalid schema for response_format 'o': In context=(), 'additionalProperties' is required"},
		"schema's name": {
			"gpt-4o", hi + `,"response_format":{"type":"json_schema","json_schema":{"schema":` + params + `}}`,
			"response_format.json_schema.name: Missing required parameter: 'response_format.json_schema.name'.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, checker().Chat(decoded(t, `{"model":"`+tc.model+`",`+tc.body+`}`)), tc.want)
		})
	}
}

// TestResponses has the rules of https://platform.openai.com/docs/api-reference/responses/create and of the reports named in the package;
// those of single rows are named next to them.
func TestResponses(t *testing.T) {
	t.Parallel()
	const (
		hi      = `"input":"hi"`
		user    = `{"role":"user","content":"x"}`
		call    = `{"type":"function_call","id":"fc_1","call_id":"c","name":"f","arguments":"{}","status":"completed"}`
		out     = `{"type":"function_call_output","call_id":"c","output":"ok"}`
		thought = `{"type":"reasoning","id":"rs_1","summary":[],"encrypted_content":"enc:rs_1"}`
		said    = `{"type":"message","id":"msg_1","role":"assistant","status":"completed","content":[{"type":"output_text","text":"y","annotations":[],"logprobs":[]}]}`
		tool    = `"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{}},"strict":false}]`
	)
	input := func(items ...string) string { return `"input":[` + strings.Join(items, ",") + `]` }
	for name, tc := range map[string]struct{ model, body, want string }{
		"plain": {
			"gpt-4o", hi + `,"instructions":null,"temperature":0.5,"max_output_tokens":16,"metadata":{},"text":{"verbosity":"low"}`,
			"",
		},
		"conversation": {"gpt-5", input(user, thought, call, out, thought, said, user) + "," + tool +
			`,"store":false,"include":["reasoning.encrypted_content"],"reasoning":{"effort":"low","summary":"auto"}`, ""},
		"of no id": {"gpt-5", input(user, strings.Replace(thought, `"id":"rs_1",`, "", 1), call, out), ""}, // as Codex sends it

		// Fields: https://github.com/caozhiyuan/copilot-api/issues/308, https://github.com/BerriAI/litellm/issues/13420 (null).
		"unknown": {"gpt-4o", hi + `,"n":1`, "n: Unknown parameter: 'n'."},
		"of chat": {
			"gpt-4o", `"messages":[]`,
			"messages: Unsupported parameter: 'messages'. In the Responses API, this parameter has moved to 'input'.",
		},
		"in an item": {"gpt-4o", input(`{"role":"user","content":"x","name":"y"}`), "input[0].name: Unknown parameter: 'input[0].name'."},
		"null status": {
			"gpt-5", input(user, strings.Replace(thought, `"summary"`, `"status":null,"summary"`, 1), said),
			"input[1].status: Invalid type for 'input[1].status': expected a string, but got null instead.",
		},
		"type": {"gpt-4o", input(`{"type":"tool_result"}`), "input[0].type: Invalid value: 'tool_result'. Supported values are: "},
		"parts of chat": {
			"gpt-4o", input(`{"role":"user","content":[{"type":"text","text":"x"}]}`),
			"input[0].content[0].type: Invalid value: 'text'. Supported values are: ",
		},
		"parts of the other": {
			"gpt-4o", input(`{"role":"assistant","content":[{"type":"input_text","text":"x"}]}`),
			"input[0].content[0]: Invalid value: 'input_text'. Supported values are: 'output_text' and 'refusal'.",
		},
		"image": {
			"gpt-4o", input(`{"role":"user","content":[{"type":"input_image","image_url":{"url":"x"}}]}`),
			"input[0].content[0].image_url: Invalid type for 'input[0].content[0].image_url': expected a string, but got an object instead.",
		},
		"few tokens": {
			"gpt-4o", hi + `,"max_output_tokens":15`,
			"max_output_tokens: Invalid 'max_output_tokens': integer below minimum value. Expected a value >= 16, but got 15 instead.",
		},
		"strange message id": {
			"gpt-4o", input(strings.Replace(said, "msg_1", "chatcmpl-1", 1), user),
			"input[0].id: Invalid 'input[0].id': 'chatcmpl-1'. Expected an ID that begins with 'msg'.",
		},
		"strange call id": {
			"gpt-4o", input(user, strings.Replace(call, "fc_1", "call_1", 1), out),
			"input[1].id: Invalid 'input[1].id': 'call_1'. Expected an ID that begins with 'fc'.",
		},

		// Calls: https://github.com/BerriAI/litellm/issues/17343 (length).
		"no call":      {"gpt-4o", input(user, out), "input: No tool call found for function call output with call_id c."},
		"no output":    {"gpt-4o", input(user, call, user), "input: No tool output found for function call c."},
		"output first": {"gpt-4o", input(user, out, call), "input: No tool call found for function call output with call_id c."},
		"long id": {
			"gpt-4o", input(user, strings.Replace(call, `"c"`, `"`+strings.Repeat("c", 65)+`"`, 1)),
			"input[1].call_id: Invalid 'input[1].call_id': string too long. Expected a string with maximum length 64, but got a string with length 65 instead.",
		},
		"empty id": {
			"gpt-4o", input(user, strings.Replace(call, `"c"`, `""`, 1)),
			"input[1].call_id: Invalid 'input[1].call_id': empty string.",
		},
		"arguments": {
			"gpt-4o", input(user, strings.Replace(call, `"{}"`, `{}`, 1), out),
			"input[1].arguments: Invalid type for 'input[1].arguments': expected a string, but got an object instead.",
		},

		// Reasoning and what is kept: see thought and links.
		"foreign": {
			"gpt-5", input(user, strings.Replace(thought, "enc:rs_1", "mr1.a.eHh4", 1), call, out),
			": The encrypted content for item rs_1 could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
		},
		"foreign, no id": {
			"gpt-5", input(user, `{"type":"reasoning","summary":[],"encrypted_content":"mr1.a.eHh4"}`, said),
			": The encrypted content mr1....eHh4 could not be verified.",
		},
		"another's": {
			"gpt-5", input(user, strings.Replace(thought, "enc:rs_1", "enc:rs_2", 1), call, out),
			": The encrypted content for item rs_1 could not be verified. Reason: Encrypted content item_id did not match the target item id.",
		},
		"not encrypted": {
			"gpt-5", input(user, `{"type":"reasoning","id":"rs_1","summary":[]}`, said) + `,"store":false`,
			"input: Item with id 'rs_1' not found. Items are not persisted when `store` is set to false. Try again with `store` set to true, or remove this item from your input.",
		},
		"not known": {
			"gpt-5", input(user, `{"type":"reasoning","id":"rs_1","summary":[]}`, said),
			"input: Item with id 'rs_1' not found.",
		},
		"known": {"gpt-5", input(user, `{"type":"reasoning","id":"rs_kept","summary":[],"encrypted_content":null}`, said), ""},
		"alone": {
			"gpt-5", input(user, thought),
			"input: Item 'rs_1' of type 'reasoning' was provided without its required following item.",
		},
		"before a user": {
			"gpt-5", input(user, thought, user),
			"input: Item 'rs_1' of type 'reasoning' was provided without its required following item.",
		},
		"of 4o": {
			"gpt-4o", input(user, thought, said),
			"input: Reasoning input items can only be provided to a reasoning or computer use model.",
		},
		"include of 4o": {
			"gpt-4o", hi + `,"include":["reasoning.encrypted_content"]`,
			"include: Encrypted content is not supported with this model.",
		},
		"effort of 4o": {
			"gpt-4o", hi + `,"reasoning":{"effort":"low"}`,
			"reasoning.effort: Unsupported parameter: 'reasoning.effort' is not supported with this model.",
		},
		"temperature": {
			"gpt-5", hi + `,"temperature":0.5`,
			"temperature: Unsupported parameter: 'temperature' is not supported with this model.",
		},
		"temperature, none": {"gpt-5.2", hi + `,"temperature":0.5,"reasoning":{"effort":"none"}`, ""},
		"reference": {"gpt-5", input(user, `{"type":"item_reference","id":"rs_kept"}`, `{"type":"item_reference","id":"fc_kept"}`,
			strings.Replace(out, `"c"`, `"call_kept"`, 1)), ""},
		"reference, not kept": {
			"gpt-5", input(user, `{"type":"item_reference","id":"rs_kept"}`, said) + `,"store":false`,
			"input: Item with id 'rs_kept' not found. Items are not persisted",
		},
		"reference, unknown": {"gpt-5", input(user, `{"type":"item_reference","id":"fc_1"}`), "input: Item with id 'fc_1' not found."},
		"previous":           {"gpt-4o", input(strings.Replace(out, `"c"`, `"call_kept"`, 1)) + `,"previous_response_id":"resp_kept"`, ""},
		"previous, unknown": {
			"gpt-4o", hi + `,"previous_response_id":"resp_1"`,
			"previous_response_id: Previous response with id 'resp_1' not found.",
		},

		// Tools and formats.
		"tool of chat": {
			"gpt-4o", hi + `,"tools":[{"type":"function","function":{"name":"f"}}]`,
			"tools[0].name: Missing required parameter: 'tools[0].name'.",
		},
		"name": {
			"gpt-4o", hi + `,"tools":[{"type":"function","name":"a b"}]`,
			"tools[0].name: Invalid 'tools[0].name': string does not match pattern.",
		},
		"strict":        {"gpt-4o", hi + `,"tools":[{"type":"function","name":"f","strict":true,"parameters":{"type":"object","properties":{"a":{}}}}]`, "tools[0].parameters: Invalid schema for function 'f': In context=(), 'additionalProperties' is required"},
		"strict unsaid": {"gpt-4o", hi + `,"tools":[{"type":"function","name":"f","parameters":{"type":"object","properties":{"a":{}}}}]`, ""},
		"own tool":      {"gpt-4o", hi + `,"tools":[{"type":"web_search"}],"tool_choice":{"type":"web_search"}`, ""},
		"no such tool": {
			"gpt-4o", hi + `,"tools":[{"type":"web_search_20250305"}]`,
			"tools[0].type: Invalid value: 'web_search_20250305'. Supported values are: ",
		},
		"choice": {
			"gpt-4o", hi + "," + tool + `,"tool_choice":{"type":"function","name":"g"}`,
			"tool_choice: Tool choice 'g' not found in 'tools' parameter.",
		},
		"choice alone": {
			"gpt-4o", hi + `,"tool_choice":"required"`,
			"tool_choice: Invalid value for 'tool_choice': 'tool_choice' is only allowed when 'tools' are specified.",
		},
		"json unsaid": {
			"gpt-4o", hi + `,"text":{"format":{"type":"json_object"}}`,
			"input: Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.",
		},
		"schema": {"gpt-4o", hi + `,"text":{"format":{"type":"json_schema","name":"o","strict":true,"schema":{"type":"object","properties":{"a":{}},"required":["a"],"additionalProperties":false}}}`, ""},
		"schema loose": {
			"gpt-4o", hi + `,"text":{"format":{"type":"json_schema","name":"o","schema":{"type":"array","items":{}}}}`,
			"text.format: Invalid schema for response_format 'o': schema must be a JSON Schema of 'type: \"object\"', got 'type: \"array\"'.",
		},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			want(t, checker().Responses(decoded(t, `{"model":"`+tc.model+`",`+tc.body+`}`)), tc.want)
		})
	}
}
