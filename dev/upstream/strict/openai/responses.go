package openai

import (
	"fmt"
	"slices"
	"strings"

	"modelrelay/dev/upstream/strict"
)

// Responses judges the body of responses, and of a count of its tokens; nil: it is taken.
func (c *Checker) Responses(v map[string]any) *strict.Refusal {
	r := &responses{call{v: v, model: ModelOf(strict.Text(v, "model")), state: c.state}}
	for old, moved := range map[string]string{"messages": "input", "max_tokens": "max_output_tokens", "response_format": "text.format"} {
		if _, given := v[old]; given {
			return refuse(unsupportedParameter, old, "Unsupported parameter: '%s'. In the Responses API, this parameter has moved to '%s'. Try again with the new parameter. See the API documentation for more information: https://platform.openai.com/docs/api-reference/responses/create.", old, moved)
		}
	}
	if refusal := first(c.responses.Check(v), r.model); refusal != nil {
		return refusal
	}
	return judge(r.common, r.bounds, r.reasoning, r.tools, r.format, r.items, r.links)
}

type responses struct{ call }

func (r *responses) stores() bool { return r.v["store"] != false }

func (r *responses) bounds() *strict.Refusal {
	const (
		least = 16
		most  = 1 << 30
	)
	return bounded(r.v, "max_output_tokens", least, most)
}

// reasoning is about what models that reason do not take, and what others do not.
func (r *responses) reasoning() *strict.Refusal {
	effort := strict.Text(strict.Map(r.v, "reasoning"), "effort")
	if !r.model.Reasons() {
		switch {
		case !r.model.ours():
		case effort != "":
			return unsupported("reasoning.effort")
		case strict.Text(strict.Map(r.v, "reasoning"), "summary") != "":
			return unsupported("reasoning.summary")
		case slices.Contains(strict.Slice(r.v, "include"), any("reasoning.encrypted_content")):
			return refuse("", "include", "Encrypted content is not supported with this model.")
		}
		return nil
	}
	if refusal := r.effort("reasoning.effort", effort); refusal != nil {
		return refusal
	}
	if effort == "none" {
		return nil
	}
	for _, param := range []string{"temperature", "top_p"} {
		if n, given := strict.Num(r.v, param); given && n != 1 {
			return unsupported(param)
		}
	}
	return nil
}

func (r *responses) tools() *strict.Refusal {
	if refusal := r.functions(false); refusal != nil {
		return refusal
	}
	return r.choice(func(v any) string { return strict.Text(v, "name") })
}

func (r *responses) format() *strict.Refusal {
	format := strict.Map(strict.Map(r.v, "text"), "format")
	switch strict.Text(format, "type") {
	case "json_object":
		if !mentionsJSON(r.v["input"]) {
			return refuse("", "input", "Response input messages must contain the word 'json' in some form to use 'text.format' of type 'json_object'.")
		}
	case "json_schema":
		return schema("text.format", strict.Text(format, "name"), format)
	}
	return nil
}

const longestCallID = 64 // https://github.com/BerriAI/litellm/issues/17343

func kindOfItem(item any) string {
	if kind := strict.Text(item, "type"); kind != "" {
		return kind
	}
	return "message"
}

// items is about each item of the input by itself.
func (r *responses) items() *strict.Refusal {
	for i, item := range strict.Slice(r.v, "input") {
		path := fmt.Sprintf("input[%d]", i)
		kind := kindOfItem(item)
		prefix := map[string]string{"message": "msg", "function_call": "fc", "reasoning": "rs"}[kind]
		if id := strict.Text(item, "id"); id != "" && prefix != "" && !strings.HasPrefix(id, prefix) {
			return refuse(invalidValue, path+".id", "Invalid '%s.id': '%s'. Expected an ID that begins with '%s'.", path, id, prefix)
		}
		switch kind {
		case "message":
			if refusal := says(path, item); refusal != nil {
				return refusal
			}
		case "function_call", "function_call_output":
			id := strict.Text(item, "call_id")
			if id == "" {
				return refuse("empty_string", path+".call_id",
					"Invalid '%s.call_id': empty string. Expected a string with minimum length 1, but got an empty string instead.", path)
			}
			if refusal := long(path+".call_id", id, longestCallID); refusal != nil {
				return refusal
			}
			if kind == "function_call" {
				if refusal := named(path+".name", strict.Text(item, "name")); refusal != nil {
					return refusal
				}
			}
		case "reasoning":
			if refusal := r.thought(path, item); refusal != nil {
				return refusal
			}
		}
	}
	return nil
}

// says is about the parts of a message: the model's are of other types than the user's.
func says(path string, item any) *strict.Refusal {
	models := strict.Text(item, "role") == "assistant"
	for n, part := range strict.Slice(item, "content") {
		kind := strict.Text(part, "type")
		output := kind == "output_text" || kind == "refusal"
		if models && !output {
			return refuse(invalidValue, fmt.Sprintf("%s.content[%d]", path, n),
				"Invalid value: '%s'. Supported values are: 'output_text' and 'refusal'.", kind)
		}
		if !models && output {
			return refuse(invalidValue, fmt.Sprintf("%s.content[%d]", path, n),
				"Invalid value: '%s'. Supported values are: 'input_text', 'input_image', and 'input_file'.", kind)
		}
	}
	return nil
}

// thought is about an item of reasoning: sealed here and for this item, or stored; https://github.com/can1357/oh-my-pi/issues/290,
// https://github.com/openai/codex/issues/8145, https://github.com/vercel/ai/issues/7543.
func (r *responses) thought(path string, item any) *strict.Refusal {
	if r.model.ours() && !r.model.Reasons() {
		return refuse("", "input", "Reasoning input items can only be provided to a reasoning or computer use model. Remove reasoning items from your input and try again.")
	}
	const code = "invalid_encrypted_content"
	id, content := strict.Text(item, "id"), strict.Text(item, "encrypted_content")
	if content == "" {
		if id == "" {
			return refuse("missing_required_parameter", path+".id", "Missing required parameter: '%s.id'.", path)
		}
		if _, _, known := r.state.Item(id); !known || !r.stores() {
			return notFound(id, r.stores())
		}
		return nil
	}
	const ends = 4 // letters shown of each end
	which := content
	if len(content) > ends+ends {
		which = content[:ends] + "..." + content[len(content)-ends:]
	}
	if id != "" {
		which = "for item " + id
	}
	switch issued, same := r.state.Encrypted(id, content); {
	case !issued:
		return refuse(code, "", "The encrypted content %s could not be verified. Reason: Encrypted content could not be decrypted or parsed.",
			which)
	case id != "" && !same:
		return refuse(code, "", "The encrypted content for item %s could not be verified. Reason: Encrypted content item_id did not match the target item id.", id)
	}
	return nil
}

// links checks what belongs together: reasoning and the item after it, calls and outputs,
// https://platform.openai.com/docs/guides/reasoning#keeping-reasoning-items-in-context, https://platform.openai.com/docs/guides/function-calling.
func (r *responses) links() *strict.Refusal {
	var open []string // calls without an output
	known := map[string]bool{}
	if id := strict.Text(r.v, "previous_response_id"); id != "" {
		calls, ok := r.state.Response(id)
		if !ok {
			return refuse("previous_response_not_found", "previous_response_id", "Previous response with id '%s' not found.", id)
		}
		for _, call := range calls {
			known[call] = true
		}
	}
	list := strict.Slice(r.v, "input")
	for i, item := range list {
		kind, call := kindOfItem(item), strict.Text(item, "call_id")
		if kind == "item_reference" {
			id := strict.Text(item, "id")
			var ok bool
			if kind, call, ok = r.state.Item(id); !ok || !r.stores() {
				return notFound(id, r.stores())
			}
		}
		switch kind {
		case "function_call":
			open, known[call] = append(open, call), true
		case "function_call_output":
			if !known[call] {
				return refuse("", "input", "No tool call found for function call output with call_id %s.", call)
			}
			open = slices.DeleteFunc(open, func(id string) bool { return id == call })
		case "reasoning":
			if !r.follows(list[i+1:]) {
				return refuse("", "input", "Item '%s' of type 'reasoning' was provided without its required following item.", strict.Text(item, "id"))
			}
		}
	}
	if len(open) > 0 {
		return refuse("", "input", "No tool output found for function call %s.", open[0])
	}
	return nil
}

// follows reports whether the model produced more after its reasoning.
func (r *responses) follows(rest []any) bool {
	if len(rest) == 0 {
		return false
	}
	kind := kindOfItem(rest[0])
	if kind == "item_reference" {
		kind, _, _ = r.state.Item(strict.Text(rest[0], "id"))
		return kind != "" && kind != "function_call_output"
	}
	switch kind {
	case "message":
		return strict.Text(rest[0], "role") == "assistant"
	case "reasoning":
		return true
	}
	return !strings.HasSuffix(kind, "_output")
}
