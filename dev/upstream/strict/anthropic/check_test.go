package anthropic_test

import (
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"modelrelay/dev/upstream/strict/anthropic"
)

// check judges a body; sig:TEXT is a signature of TEXT, data is redacted data.
func check(t *testing.T, counting bool, body string) string {
	t.Helper()
	var v map[string]any
	if err := json.Unmarshal([]byte(body), &v); err != nil {
		t.Fatalf("%s: %v", body, err)
	}
	refusal := anthropic.New(func(kind, bound, seal string) (issued, unchanged bool) {
		if kind == anthropic.Redacted {
			return seal == "data", seal == "data"
		}
		return strings.HasPrefix(seal, "sig:"), seal == "sig:"+bound
	}).Check(v, counting)
	if refusal == nil {
		return ""
	}
	return refusal.Message
}

const (
	hi   = `"messages":[{"role":"user","content":"hi"}]`
	tool = `"tools":[{"name":"f","input_schema":{"type":"object"}}]`
	use  = `{"type":"tool_use","id":"t1","name":"f","input":{}}`
	use2 = `{"type":"tool_use","id":"t2","name":"f","input":{}}`
	res  = `{"type":"tool_result","tool_use_id":"t1","content":"ok"}`
	res2 = `{"type":"tool_result","tool_use_id":"t2","content":"ok"}`
)

func talk(turns ...string) string {
	list := make([]string, len(turns))
	for i, blocks := range turns {
		list[i] = fmt.Sprintf(`{"role":%q,"content":[%s]}`, []string{"user", "assistant"}[i%2], blocks)
	}
	return `"messages":[` + strings.Join(list, ",") + `]`
}

func text(s string) string { return fmt.Sprintf(`{"type":"text","text":%q}`, s) }

// TestCheck has the rules of https://platform.claude.com/docs/en/api/messages and of the pages next to the rules in the package; where the
// words of an error were taken from a report of it, the report is named. Empty: the vendor takes it.
func TestCheck(t *testing.T) {
	t.Parallel()
	const (
		budget  = `"thinking":{"type":"enabled","budget_tokens":1024}`
		thought = `{"type":"thinking","thinking":"Hm.","signature":"sig:Hm."}`
		png     = `{"type":"image","source":{"type":"base64","media_type":"image/png","data":"AA=="}}`
		found   = `{"type":"server_tool_use","id":"srvtoolu_1","name":"web_search","input":{"query":"q"}},` +
			`{"type":"web_search_tool_result","tool_use_id":"srvtoolu_1","content":[{"type":"web_search_result","url":"u","title":"t","encrypted_content":"SEAL"}]},` +
			`{"type":"text","text":"y","citations":[{"type":"web_search_result_location","url":"u","title":"t","cited_text":"y","encrypted_index":"SEAL"}]}`
		marked = `{"type":"text","text":"x","cache_control":{"type":"ephemeral"}}`
		page   = " Please consult our documentation at https://docs.claude.com/en/docs/build-with-claude/extended-thinking"
	)
	schema := func(s string) string {
		return hi + `,"output_config":{"format":{"type":"json_schema","schema":` + s + `}}`
	}
	for name, tc := range map[string]struct{ model, body, want string }{
		"plain": {"claude-sonnet-4-5", hi + `,"system":[` + text("be kind") +
			`],"temperature":0.5,"metadata":{"user_id":null},"stop_sequences":["x"]`, ""},
		"conversation": {"claude-sonnet-4-5", talk(text("a")+","+png, thought+","+text("b")+","+use+","+use2, res+","+res2+","+text("c")) + "," +
			tool + "," + budget, ""},

		// Fields: the words are those of https://docs.pydantic.dev/latest/errors/validation_errors/.
		"unknown field": {"claude-sonnet-4-5", hi + `,"seed":1`, "seed: Extra inputs are not permitted"},
		"unknown field within": {
			"claude-sonnet-4-5", talk(`{"type":"text","text":"x","foo":1}`),
			"messages.0.content.0.text.foo: Extra inputs are not permitted",
		},
		"unknown block": {
			"claude-sonnet-4-5", talk(`{"type":"input_text","text":"x"}`),
			"messages.0.content.0: Input tag 'input_text' found using 'type' does not match any of the expected tags: ",
		},
		"missing field": {
			"claude-sonnet-4-5", talk(text("x"), `{"type":"thinking","thinking":"x"}`, text("y")),
			"messages.1.content.0.thinking.signature: Field required",
		},
		"input is text": {
			"claude-sonnet-4-5", talk(text("x"), `{"type":"tool_use","id":"t1","name":"f","input":"{}"}`, res),
			"messages.1.content.0.tool_use.input: Input should be a valid dictionary",
		},
		"media type": {
			"claude-sonnet-4-5", talk(strings.Replace(png, "image/png", "image/bmp", 1)),
			"messages.0.content.0.image.source.base64.media_type: Input should be 'image/jpeg', 'image/png', 'image/gif' or 'image/webp'",
		},
		"most tokens": {
			"claude-sonnet-4-5", hi + `,"max_tokens":64001`,
			"max_tokens: 64001 > 64000, which is the maximum allowed number of output tokens for claude-sonnet-4-5",
		},
		"most tokens of an old": {"claude-3-opus-20240229", hi + `,"max_tokens":4097`, "max_tokens: 4097 > 4096"},

		// Turns: https://github.com/anthropics/claude-code/issues/8210 (no result), /18947 (no call), https://github.com/MoonshotAI/kosong/issues/45 (apart).
		"no result": {
			"claude-sonnet-4-5", talk(text("x"), use, text("y")),
			"messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t1. Each `tool_use` block must have a corresponding `tool_result` block in the next message.",
		},
		"ends with a call": {"claude-sonnet-4-5", talk(text("x"), use), "messages.1: `tool_use` ids were found without"},
		"results apart": {
			"claude-sonnet-4-5", `"messages":[{"role":"user","content":"x"},{"role":"assistant","content":[` + use + "," +
				use2 + `]},{"role":"user","content":[` + res + `]},{"role":"user","content":[` + res2 + `]}]`,
			"messages.1: `tool_use` ids were found without `tool_result` blocks immediately after: t2.",
		},
		"text before": {"claude-sonnet-4-5", talk(text("x"), use, text("y")+","+res), "messages.1: `tool_use` ids were found without"},
		"no call": {
			"claude-sonnet-4-5", talk(res),
			"messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
		},
		"two results": {
			"claude-sonnet-4-5", talk(text("x"), use, res+","+res),
			"messages.2.content.1: each tool_use must have a single result.",
		},
		"same id": {"claude-sonnet-4-5", talk(text("x"), use, res, use, res), "messages: `tool_use` ids must be unique"},
		"id of others": {"claude-sonnet-4-5", talk(text("x"), strings.Replace(use, "t1", "call|1", 1),
			strings.Replace(res, "t1", "call|1", 1)), "messages.1.content.0.tool_use.id: String should match pattern"},
		"empty text": {"claude-sonnet-4-5", talk(text("")), "messages: text content blocks must be non-empty"},
		"white text": {"claude-sonnet-4-5", talk(text(" \n")), "messages: text content blocks must contain non-whitespace text"},
		"nothing": {
			"claude-sonnet-4-5", `"messages":[{"role":"user","content":""}]`,
			"messages.0: all messages must have non-empty content except for the optional final assistant message",
		},
		"nothing at last": {"claude-sonnet-4-5", talk(text("x"), ""), ""},
		"assistant first": {
			"claude-sonnet-4-5", `"messages":[{"role":"assistant","content":"x"},{"role":"user","content":"x"}]`,
			`messages: first message must use the "user" role`,
		},
		"developer":       {"claude-sonnet-4-5", `"messages":[{"role":"developer","content":"x"}]`, `messages: Unexpected role "developer".`},
		"system in place": {"claude-opus-4-8", `"messages":[{"role":"user","content":"x"},{"role":"system","content":"y"}]`, ""},
		"system of an old": {
			"claude-opus-4-7", `"messages":[{"role":"user","content":"x"},{"role":"system","content":"y"}]`,
			`messages: Unexpected role "system".`,
		},
		"prefill": {"claude-opus-4-5", talk(text("x"), text("y")), ""},
		"prefill of a new": {
			"claude-opus-4-6", talk(text("x"), text("y")),
			"This model does not support assistant message prefill. The conversation must end with a user message.",
		},
		"prefill with room": {
			"claude-opus-4-5", talk(text("x"), text("y ")),
			"messages: final assistant content cannot end with trailing whitespace",
		},

		// Sampling: https://github.com/openclaw/openclaw/pull/76871 (deprecated), https://github.com/dotCipher/opencode-claude-bridge/pull/1 (with thinking),
		// https://github.com/OpenHands/OpenHands/issues/12909 (both).
		"temperature of a new": {"claude-opus-4-7", hi + `,"temperature":0.5`, "`temperature` is deprecated for this model."},
		"its own temperature":  {"claude-opus-4-7", hi + `,"temperature":1`, ""},
		"top_k of a new":       {"claude-sonnet-5", hi + `,"top_k":3`, "`top_k` is deprecated for this model."},
		"both": {
			"claude-haiku-4-5", hi + `,"temperature":0.5,"top_p":0.5`,
			"`temperature` and `top_p` cannot both be specified for this model. Please use only one.",
		},
		"both of an old": {"claude-sonnet-4-20250514", hi + `,"temperature":0.5,"top_p":0.5`, ""},
		"too warm":       {"claude-haiku-4-5", hi + `,"temperature":1.5`, "temperature: Input should be less than or equal to 1"},
		"temperature with thinking": {
			"claude-sonnet-4-5", hi + `,"temperature":0.5,` + budget,
			"`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
		},
		"top_k with thinking": {"claude-sonnet-4-5", hi + `,"top_k":5,` + budget, "`top_k` must be unset when thinking is enabled."},

		// Thinking: https://github.com/earendil-works/pi/issues/3297 (by budget), https://github.com/anomalyco/opencode/issues/3077 (first block),
		// https://github.com/mastra-ai/mastra/issues/7507 (forced tool), https://github.com/BerriAI/litellm/issues/31654 (signature).
		"small budget": {
			"claude-sonnet-4-5", hi + `,"thinking":{"type":"enabled","budget_tokens":1023}`,
			"thinking.enabled.budget_tokens: Input should be greater than or equal to 1024",
		},
		"budget of all": {
			"claude-sonnet-4-5", hi + `,"max_tokens":1024,` + budget,
			"`max_tokens` must be greater than `thinking.budget_tokens`." + page + "#max-tokens-and-context-window-size",
		},
		"budget of a new": {
			"claude-opus-4-7", hi + "," + budget,
			`"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`,
		},
		"budget of an old":   {"claude-3-5-haiku-20241022", hi + "," + budget, "'claude-3-5-haiku-20241022' does not support thinking."},
		"adaptive":           {"claude-opus-4-6", hi + `,"thinking":{"type":"adaptive"},"output_config":{"effort":"high"}`, ""},
		"adaptive of an old": {"claude-opus-4-5", hi + `,"thinking":{"type":"adaptive"}`, "adaptive thinking is not supported on this model"},
		"always": {
			"claude-opus-5-5", hi + `,"thinking":{"type":"disabled"}`,
			`"thinking.type.disabled" is not supported for this model.`,
		},
		"forced": {
			"claude-sonnet-4-5", hi + "," + tool + `,"tool_choice":{"type":"any"},` + budget,
			"Thinking may not be enabled when tool_choice forces tool use.",
		},
		"always and forced": {
			"claude-fable-5-1", hi + "," + tool + `,"tool_choice":{"type":"tool","name":"f"}`,
			"Thinking may not be enabled when tool_choice forces tool use.",
		},
		"no thought before": {
			"claude-sonnet-4-5", talk(text("x"), text("y")+","+use, res) + "," + tool + "," + budget,
			"messages.1.content.0.type: Expected `thinking` or `redacted_thinking`, but found `text`.",
		},
		"a thought first": {"claude-sonnet-4-5", talk(text("x"), thought+","+use, res, use2, res2) + "," + tool + "," + budget, ""},
		"an earlier turn": {"claude-sonnet-4-5", talk(text("x"), use, res, text("y"), text("z")) + "," + tool + "," + budget, ""},
		"strange signature": {
			"claude-sonnet-4-5", talk(text("x"), strings.Replace(thought, "sig:Hm.", "mr1.g.AA", 1)+","+text("y"), text("z")),
			"messages.1.content.0: Invalid `signature` in `thinking` block",
		},
		"changed thought": {
			"claude-sonnet-4-5", talk(text("x"), strings.Replace(thought, `"Hm."`, `"Hm"`, 1)+","+text("y"), text("z")),
			"messages.1.content.0: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified.",
		},
		"redacted": {"claude-sonnet-4-5", talk(text("x"), `{"type":"redacted_thinking","data":"data"},`+use, res) + "," + tool + "," +
			budget, ""},
		"strange redacted": {
			"claude-sonnet-4-5", talk(text("x"), `{"type":"redacted_thinking","data":"x"},`+text("y"), text("z")),
			"messages.1.content.0: Invalid `data` in `redacted_thinking` block",
		},
		"a search": {"claude-sonnet-4-5", talk(text("x"), strings.ReplaceAll(found, "SEAL", "sig:u"), text("z")), ""},
		"a strange page": {
			"claude-sonnet-4-5", talk(text("x"), strings.Replace(found, "SEAL", "mr1.s.x", 1), text("z")),
			"messages.1.content.1: Invalid `encrypted_content` in `search_result` block",
		},
		"a strange citation": {
			"claude-sonnet-4-5", talk(text("x"),
				strings.Replace(strings.Replace(found, "SEAL", "sig:u", 1), "SEAL", "mr1.s.x", 1), text("z")),
			"messages.1.content.2: Invalid `encrypted_index`",
		},
		"only a thought": {
			"claude-opus-4-5", talk(text("x"), thought),
			"messages.1: The final block in an assistant message cannot be `thinking`.",
		},
		"effort of an old": {
			"claude-sonnet-4-5", hi + `,"output_config":{"effort":"low"}`,
			"This model does not support the effort parameter.",
		},
		"too much effort": {"claude-opus-4-6", hi + `,"output_config":{"effort":"xhigh"}`, "output_config.effort: 'xhigh' is not supported"},

		// Caches: https://github.com/caozhiyuan/copilot-api/pull/287.
		"four marks": {"claude-sonnet-4-5", talk(strings.Join([]string{marked, marked, marked, marked}, ",")), ""},
		"five marks": {"claude-sonnet-4-5", talk(strings.Join([]string{marked, marked, marked, marked}, ",")) + `,"system":[` + marked +
			`]`, "A maximum of 4 blocks with cache_control may be provided. Found 5."},
		"mark on nothing": {
			"claude-sonnet-4-5", talk(strings.Replace(marked, `"x"`, `""`, 1)),
			"messages.0.content.0.text: cache_control cannot be set for empty text blocks",
		},
		"mark on a thought": {
			"claude-sonnet-4-5", talk(text("x"),
				strings.Replace(thought, `"type"`, `"cache_control":{"type":"ephemeral"},"type"`, 1)+","+text("y"), text("z")),
			"messages.1.content.0.thinking.cache_control: Extra inputs are not permitted",
		},
		"long after short": {
			"claude-sonnet-4-5", talk(marked + "," + strings.Replace(marked, `"ephemeral"`, `"ephemeral","ttl":"1h"`, 1)),
			"messages.0.content.1.cache_control.ttl: a ttl='1h' cache_control block must not come after",
		},

		// Tools: https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use; https://github.com/QuantumNous/new-api/issues/2763 (choice none).
		"tool name": {
			"claude-sonnet-4-5", hi + `,"tools":[{"name":"a.b","input_schema":{"type":"object"}}]`,
			"tools.0.custom.name: String should match pattern '^[a-zA-Z0-9_-]{1,128}$'",
		},
		"same tool name": {
			"claude-sonnet-4-5", hi +
				`,"tools":[{"name":"f","input_schema":{"type":"object"}},{"name":"f","input_schema":{"type":"object"}}]`,
			"tools: Tool names must be unique.",
		},
		"no schema type": {
			"claude-sonnet-4-5", hi + `,"tools":[{"name":"f","input_schema":{}}]`,
			"tools.0.custom.input_schema.type: Field required",
		},
		"schema type": {
			"claude-sonnet-4-5", hi + `,"tools":[{"name":"f","input_schema":{"type":"string"}}]`,
			"tools.0.custom.input_schema.type: Input should be 'object'",
		},
		"union at top": {
			"claude-sonnet-4-5", hi + `,"tools":[{"name":"f","input_schema":{"type":"object","anyOf":[]}}]`,
			"tools.0.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level",
		},
		"tool of OpenAI": {
			"claude-sonnet-4-5", hi + `,"tools":[{"type":"function","function":{"name":"f"}}]`,
			"tools.0: Input tag 'function' found using 'type'",
		},
		"own tool": {"claude-sonnet-4-5", hi + `,"tools":[{"type":"web_search_20250305","name":"web_search","max_uses":1}]`, ""},
		"choice alone": {
			"claude-sonnet-4-5", hi + `,"tool_choice":{"type":"auto"}`,
			"tool_choice may only be specified while providing tools.",
		},
		"choice of none": {
			"claude-sonnet-4-5", hi + "," + tool + `,"tool_choice":{"type":"none","disable_parallel_tool_use":true}`,
			"tool_choice.none.disable_parallel_tool_use: Extra inputs are not permitted",
		},
		"choice of auto": {"claude-sonnet-4-5", hi + "," + tool + `,"tool_choice":{"type":"auto","disable_parallel_tool_use":true}`, ""},
		"choice untyped": {
			"claude-sonnet-4-5", hi + "," + tool + `,"tool_choice":{"disable_parallel_tool_use":true}`,
			"tool_choice.type: Field required",
		},
		"choice unknown": {
			"claude-sonnet-4-5", hi + "," + tool + `,"tool_choice":{"type":"tool","name":"g"}`,
			"Tool 'g' not found in provided tools",
		},
		"strict tool": {
			"claude-sonnet-4-5", hi + `,"tools":[{"name":"f","strict":true,"input_schema":{"type":"object"}}]`,
			"tools.0.custom: For 'object' type, 'additionalProperties' must be explicitly set to false",
		},
		"choice of words": {"claude-sonnet-4-5", hi + "," + tool + `,"tool_choice":"auto"`, "tool_choice: Input should be a valid dictionary"},

		// Schemas: https://github.com/agentjido/req_llm/issues/302 (minimum), https://github.com/ghostlobster/memorize-everything/issues/93 (minItems).
		"schema": {
			"claude-sonnet-4-5",
			schema(`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"},"b":{"type":"array","minItems":1,"items":{"enum":[1]}}},"required":["a"],"additionalProperties":false,"$defs":{"n":{"type":"string","format":"date"}}}`), "",
		},
		"schema of an old": {
			"claude-sonnet-4-20250514", schema(`{"type":"object","additionalProperties":false}`),
			"output_config.format: 'claude-sonnet-4-20250514' does not support structured outputs.",
		},
		"open object": {
			"claude-sonnet-4-5", schema(`{"type":"object","properties":{}}`),
			"output_config.format.schema: For 'object' type, 'additionalProperties' must be explicitly set to false",
		},
		"bounds": {
			"claude-sonnet-4-5", schema(`{"type":"array","items":{"type":"integer","minimum":1}}`),
			"output_config.format.schema: For 'integer' type, property 'minimum' is not supported",
		},
		"both bounds": {
			"claude-sonnet-4-5", schema(`{"anyOf":[{"type":"number","minimum":1,"maximum":2}]}`),
			"For 'number' type, properties maximum, minimum are not supported",
		},
		"many items": {
			"claude-sonnet-4-5", schema(`{"type":"array","minItems":2}`),
			"For 'array' type, 'minItems' values other than 0 or 1 are not supported",
		},
		"one of": {"claude-sonnet-4-5", schema(`{"oneOf":[{"type":"string"}]}`), "Schema type 'oneOf' is not supported"},
		"format": {
			"claude-sonnet-4-5", schema(`{"type":"string","format":"color"}`),
			"For 'string' type, format 'color' is not supported",
		},
		"recursion": {
			"claude-sonnet-4-5",
			schema(`{"$ref":"#/$defs/n","$defs":{"n":{"type":"object","additionalProperties":false,"properties":{"n":{"$ref":"#/$defs/n"}}}}}`),
			"Circular reference detected in schema definitions",
		},
		"recursion unused": {
			"claude-sonnet-4-5", schema(`{"type":"string","$defs":{"n":{"anyOf":[{"$ref":"#/$defs/n"}]}}}`),
			"Circular reference detected in schema definitions",
		},
		"a property so named": {
			"claude-sonnet-4-5",
			schema(`{"type":"object","additionalProperties":false,"properties":{"minimum":{"type":"string"},"oneOf":{"type":"string"}}}`), "",
		},

		// A name that is none of the vendor's: the rules that depend on a model do not hold, the others do.
		"other model":           {"m", talk(text("x"), text("y")) + `,"temperature":0.5,"top_p":0.5`, ""},
		"other model's turn":    {"m", talk(res), "messages.0.content.0: unexpected `tool_use_id`"},
		"a new name":            {"claude-next", hi + `,"top_k":1`, "`top_k` is deprecated for this model."},
		"output of a new model": {"claude-next", hi + `,"max_tokens":128001`, "max_tokens: 128001 > 128000"},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			body := `{"model":"` + tc.model + `",` + tc.body + `}`
			if !strings.Contains(body, `"max_tokens"`) {
				body = strings.TrimSuffix(body, "}") + `,"max_tokens":4000}`
			}
			got := check(t, false, body)
			if tc.want == "" && got != "" || !strings.HasPrefix(got, tc.want) && !strings.Contains(got, ": "+tc.want) {
				t.Errorf("got %q, want %q", got, tc.want)
			}
		})
	}
}

// TestCheckCount has the body of count_tokens, which has no bound, no stream and no sampling.
func TestCheckCount(t *testing.T) {
	t.Parallel()
	for body, want := range map[string]string{
		`{"model":"claude-opus-4-6",` + hi + `,` + tool + `,"thinking":{"type":"enabled","budget_tokens":2000}}`: "",
		`{"model":"claude-opus-4-6",` + hi + `,"max_tokens":5}`:                                                  "max_tokens: Extra inputs are not permitted",
		`{"model":"claude-opus-4-6",` + hi + `,"stream":true}`:                                                   "stream: Extra inputs are not permitted",
		`{"model":"claude-opus-4-6",` + talk(res) + `}`:                                                          "messages.0.content.0: unexpected `tool_use_id` found in `tool_result` blocks: t1. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.",
	} {
		if got := check(t, true, body); got != want {
			t.Errorf("%s: got %q, want %q", body, got, want)
		}
	}
}
