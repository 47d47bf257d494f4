package openai

import (
	"fmt"
	"slices"
	"strings"

	"modelrelay/dev/upstream/strict"
)

// Chat judges the body of chat completions; nil: it is taken.
func (c *Checker) Chat(v map[string]any) *strict.Refusal {
	r := &chat{call{v: v, model: ModelOf(strict.Text(v, "model")), state: c.state}}
	if refusal := first(c.chat.Check(v), r.model); refusal != nil {
		return refusal
	}
	return judge(r.common, r.bounds, r.reasoning, r.tools, r.format, r.talk)
}

type chat struct{ call }

// bounds are of numbers and lists.
func (r *chat) bounds() *strict.Refusal {
	const (
		mostStop = 4
		mostN    = 128
		mostTop  = 20
		most     = 1 << 30
	)
	if stop := strict.Slice(r.v, "stop"); len(stop) > mostStop {
		return refuse("array_above_max_length", "stop",
			"Invalid 'stop': array too long. Expected an array with maximum length 4, but got an array with length %d instead.", len(stop))
	}
	if strict.Has(r.v, "max_tokens") && strict.Has(r.v, "max_completion_tokens") {
		return refuse("invalid_parameter_combination", "max_tokens",
			"Setting 'max_tokens' and 'max_completion_tokens' at the same time is not supported.")
	}
	if strict.Has(r.v, "metadata") && r.v["store"] != true && r.model.ours() {
		return refuse("", "metadata", "The 'metadata' parameter is only allowed when 'store' is enabled.")
	}
	for param, bounds := range map[string][2]float64{
		"n": {1, mostN}, "top_logprobs": {0, mostTop}, "max_tokens": {1, most}, "max_completion_tokens": {1, most},
		"presence_penalty": {-2, 2}, "frequency_penalty": {-2, 2},
	} {
		if refusal := bounded(r.v, param, bounds[0], bounds[1]); refusal != nil {
			return refusal
		}
	}
	return nil
}

// reasoning is about what models that reason do not take, https://platform.openai.com/docs/guides/reasoning, and what others do not.
func (r *chat) reasoning() *strict.Refusal {
	effort := strict.Text(r.v, "reasoning_effort")
	if !r.model.Reasons() {
		if effort != "" && r.model.ours() {
			return refuse("", "", "Unrecognized request argument supplied: reasoning_effort")
		}
		return nil
	}
	if refusal := r.effort("reasoning_effort", effort); refusal != nil {
		return refusal
	}
	if strict.Has(r.v, "max_tokens") {
		return refuse(unsupportedParameter, "max_tokens",
			"Unsupported parameter: 'max_tokens' is not supported with this model. Use 'max_completion_tokens' instead.")
	}
	if strict.Has(r.v, "stop") {
		return unsupported("stop")
	}
	if effort != "none" {
		temperature, warm := strict.Num(r.v, "temperature")
		if warm && temperature != 1 {
			return refuse("unsupported_value", "temperature",
				"Unsupported value: 'temperature' does not support %v with this model. Only the default (1) value is supported.", temperature)
		}
		for param, usual := range map[string]float64{"top_p": 1, "presence_penalty": 0, "frequency_penalty": 0} {
			if n, given := strict.Num(r.v, param); given && n != usual {
				return unsupported(param)
			}
		}
		if r.v["logprobs"] == true {
			return unsupported("logprobs")
		}
	}
	if len(strict.Map(r.v, "logit_bias")) > 0 {
		return unsupported("logit_bias")
	}
	return r.withTools(effort)
}

// withTools is about models that want responses for their tools: https://github.com/openai/openai-openapi/issues/541 (5.4, with an effort),
// https://github.com/jeffdafoe/llm-memory-api/pull/178 (5.5, whether or not), https://github.com/BerriAI/litellm/pull/34569 (5.6).
func (r *chat) withTools(effort string) *strict.Refusal {
	reasons := effort != "" || r.model.minor >= alwaysEffort
	if effort == "none" || !reasons || r.model.minor < withoutTools || len(strict.Slice(r.v, "tools")) == 0 {
		return nil
	}
	way := "Please use /v1/responses instead."
	if r.model.minor >= sayingNone {
		way = "To use function tools, use /v1/responses or set reasoning_effort to 'none'."
	}
	return refuse("", "reasoning_effort", "Function tools with reasoning_effort are not supported for %s in /v1/chat/completions. %s",
		r.model.Name, way)
}

func (r *chat) tools() *strict.Refusal {
	if refusal := r.functions(true); refusal != nil {
		return refusal
	}
	return r.choice(func(v any) string { return strict.Text(strict.Map(v, "function"), "name") })
}

// format is about response_format, https://platform.openai.com/docs/guides/structured-outputs.
func (r *chat) format() *strict.Refusal {
	format := strict.Map(r.v, "response_format")
	switch strict.Text(format, "type") {
	case "json_object":
		if !mentionsJSON(r.v["messages"]) {
			return refuse("", "messages", "'messages' must contain the word 'json' in some form, to use 'response_format' of type 'json_object'.")
		}
	case "json_schema":
		one := strict.Map(format, "json_schema")
		return schema("response_format", strict.Text(one, "name"), one)
	}
	return nil
}

const longestToolCallID = 40 // https://github.com/microsoft/autogen/issues/6377

// talk is about messages: each call answered right behind its message, and no answer without its call.
func (r *chat) talk() *strict.Refusal {
	var open, asked []string // calls without an answer, and all of the message
	for i, m := range strict.Slice(r.v, "messages") {
		role := strict.Text(m, "role")
		if role != "tool" && len(open) > 0 {
			return unanswered(open, fmt.Sprintf("messages.[%d].role", i))
		}
		if refusal := content(i, role, m); refusal != nil {
			return refusal
		}
		switch role {
		case "tool":
			id := strict.Text(m, "tool_call_id")
			at := slices.Index(asked, id)
			switch refusal := long(fmt.Sprintf("messages[%d].tool_call_id", i), id, longestToolCallID); {
			case refusal != nil:
				return refusal
			case asked == nil:
				return refuse("", fmt.Sprintf("messages.[%d].role", i), "Invalid parameter: messages with role 'tool' must be a response to a preceeding message with 'tool_calls'.") //nolint:misspell // the vendor's own spelling
			case at < 0:
				return refuse("", fmt.Sprintf("messages.[%d].tool_call_id", i),
					"Invalid parameter: 'tool_call_id' of '%s' not found in 'tool_calls' of previous message.", id)
			}
			open = slices.DeleteFunc(open, func(call string) bool { return call == id })
		default:
			var refusal *strict.Refusal
			if asked, refusal = calls(i, m); refusal != nil {
				return refusal
			}
			open = slices.Clone(asked)
		}
	}
	if len(open) > 0 {
		return unanswered(open, "messages")
	}
	return nil
}

func unanswered(open []string, param string) *strict.Refusal {
	return refuse("", param, "An assistant message with 'tool_calls' must be followed by tool messages responding to each 'tool_call_id'. The following tool_call_ids did not have response messages: %s", strings.Join(open, ", "))
}

// calls are those of one message; nil: none.
func calls(i int, m any) ([]string, *strict.Refusal) {
	list, given := m.(map[string]any)["tool_calls"].([]any)
	path := fmt.Sprintf("messages[%d].tool_calls", i)
	if given && len(list) == 0 {
		return nil, refuse("empty_array", path, "Invalid '%s': empty array. Expected an array with minimum length 1, but got an empty array instead.", path)
	}
	var ids []string
	for n, one := range list {
		id := strict.Text(one, "id")
		if refusal := long(fmt.Sprintf("%s[%d].id", path, n), id, longestToolCallID); refusal != nil {
			return nil, refusal
		}
		if f := strict.Map(one, "function"); f != nil {
			if refusal := named(fmt.Sprintf("%s[%d].function.name", path, n), strict.Text(f, "name")); refusal != nil {
				return nil, refusal
			}
		}
		ids = append(ids, id)
	}
	return ids, nil
}

// content is about what a message of a role may say.
func content(i int, role string, m any) *strict.Refusal {
	message, _ := m.(map[string]any)
	parts, list := message["content"].([]any)
	calls := strict.Has(m, "tool_calls") || strict.Has(m, "function_call") || strict.Has(m, "audio") || strict.Has(m, "refusal")
	switch {
	case message["content"] == nil && (role != "assistant" || !calls):
		return refuse("", fmt.Sprintf("messages.[%d].content", i), "Invalid value for 'content': expected a string, got null.")
	case list && len(parts) == 0 && (role != "assistant" || !calls):
		return refuse("empty_array", fmt.Sprintf("messages[%d].content", i),
			"Invalid 'messages[%d].content': empty array. Expected an array with minimum length 1, but got an empty array instead.", i)
	case role == "user":
		return nil
	}
	for n, part := range parts {
		switch kind := strict.Text(part, "type"); {
		case kind == "text" || kind == "refusal" && role == "assistant":
		case kind == "image_url":
			return refuse(invalidValue, fmt.Sprintf("messages[%d]", i),
				"Invalid 'messages[%d]'. Image URLs are only allowed for messages with role 'user', but this message with role '%s' contains an image URL.", i, role)
		default:
			return refuse(invalidValue, fmt.Sprintf("messages[%d].content[%d].type", i, n), "Invalid value: '%s'. Supported values are: 'text'.",
				kind)
		}
	}
	return nil
}
