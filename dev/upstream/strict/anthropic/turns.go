package anthropic

import (
	"regexp"
	"slices"
	"strings"

	"modelrelay/dev/upstream/strict"
)

// tools is about declarations, https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use.
func (r *request) tools() *strict.Refusal {
	name := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,128}$`)
	property := regexp.MustCompile(`^[a-zA-Z0-9_.-]{1,64}$`)
	var names []string
	for i, tool := range strict.Slice(r.v, "tools") {
		schema, own := strict.Map(tool, "input_schema"), strict.Text(tool, "name")
		if slices.Contains(names, own) {
			return strict.Refuse("tools: Tool names must be unique.")
		}
		names = append(names, own)
		if schema == nil {
			continue // the vendor's own
		}
		switch {
		case !name.MatchString(own):
			return strict.Refuse("tools.%d.custom.name: String should match pattern '%s'", i, name)
		case schema["type"] == nil:
			return strict.Refuse("tools.%d.custom.input_schema.type: Field required", i)
		case schema["type"] != "object":
			return strict.Refuse("tools.%d.custom.input_schema.type: Input should be 'object'", i)
		case schema["oneOf"] != nil || schema["allOf"] != nil || schema["anyOf"] != nil:
			return strict.Refuse("tools.%d.custom.input_schema: input_schema does not support oneOf, allOf, or anyOf at the top level", i)
		}
		for key := range strict.Map(schema, "properties") {
			if !property.MatchString(key) {
				return strict.Refuse("tools.%d.custom.input_schema.properties: Property keys should match pattern '%s'", i, property)
			}
		}
		if m, _ := tool.(map[string]any); m["strict"] == true {
			if fault := schemaFault(schema); fault != "" {
				return strict.Refuse("tools.%d.custom: %s", i, fault)
			}
		}
	}
	return nil
}

func (r *request) toolChoice() *strict.Refusal {
	choice, tools := strict.Map(r.v, "tool_choice"), strict.Slice(r.v, "tools")
	switch {
	case choice == nil:
	case len(tools) == 0:
		return strict.Refuse("tool_choice may only be specified while providing tools.")
	case choice["type"] == "tool":
		name := strict.Text(choice, "name")
		if !slices.ContainsFunc(tools, func(tool any) bool { return strict.Text(tool, "name") == name }) {
			return strict.Refuse("Tool '%s' not found in provided tools", name)
		}
	}
	return nil
}

// turns is about who speaks, and that something is said.
func (r *request) turns() *strict.Refusal {
	for i, text := range strict.Slice(r.v, "system") {
		if strict.Text(text, "text") == "" {
			return strict.Refuse("system: text content blocks must be non-empty (%d)", i)
		}
	}
	list := r.messages()
	last := len(list) - 1
	for i, m := range list {
		switch who := role(m); {
		case who == "system" && !r.model.systemTurns():
			return strict.Refuse(`messages: Unexpected role "system". The Messages API accepts a top-level ` + "`system`" +
				` parameter, not "system" as an input message role.`)
		case who != "user" && who != "assistant" && who != "system":
			return strict.Refuse(`messages: Unexpected role "%s". Allowed roles are "user" or "assistant".`, who)
		case i == 0 && who == "assistant":
			return strict.Refuse(`messages: first message must use the "user" role`)
		case len(blocks(m)) == 0 && (i != last || who != "assistant"):
			return strict.Refuse("messages.%d: all messages must have non-empty content except for the optional final assistant message", i)
		}
		if refusal := texts(blocks(m)); refusal != nil {
			return refusal
		}
	}
	if last >= 0 && role(list[last]) == "assistant" {
		return r.prefill(last, blocks(list[last]))
	}
	return nil
}

// texts refuses empty ones, within results as well.
func texts(list []any) *strict.Refusal {
	for _, block := range list {
		text := strict.Text(block, "text")
		switch {
		case strict.Text(block, "type") == "tool_result":
			if refusal := texts(strict.Slice(block, "content")); refusal != nil {
				return refusal
			}
		case strict.Text(block, "type") != "text":
		case text == "":
			return strict.Refuse("messages: text content blocks must be non-empty")
		case strings.TrimSpace(text) == "":
			return strict.Refuse("messages: text content blocks must contain non-whitespace text")
		}
	}
	return nil
}

// prefill is an answer that the call begins, https://platform.claude.com/docs/en/api/errors#prefill-not-supported.
func (r *request) prefill(at int, list []any) *strict.Refusal {
	if !r.model.prefills() {
		return strict.Refuse("This model does not support assistant message prefill. The conversation must end with a user message.")
	}
	if len(list) == 0 {
		return nil
	}
	final := list[len(list)-1]
	switch kind := strict.Text(final, "type"); {
	case kind == "thinking" || kind == "redacted_thinking":
		return strict.Refuse("messages.%d: The final block in an assistant message cannot be `thinking`.", at)
	case kind == "text" && strings.TrimRight(strict.Text(final, "text"), " \n\t") != strict.Text(final, "text"):
		return strict.Refuse("messages: final assistant content cannot end with trailing whitespace")
	}
	return nil
}

// results is about calls and their results: all of a turn's in the next message, before anything else, and none that no call asked for,
// https://platform.claude.com/docs/en/agents-and-tools/tool-use/implement-tool-use#handle-tool-use-and-tool-result-content-blocks.
func (r *request) results() *strict.Refusal {
	id := regexp.MustCompile(`^[a-zA-Z0-9_-]+$`)
	name := regexp.MustCompile(`^[a-zA-Z0-9_-]{1,200}$`)
	seen := map[string]bool{}
	var open []string // calls of the message before
	list := r.messages()
	for i, m := range list {
		answered, first := []string{}, true
		for n, block := range blocks(m) {
			if strict.Text(block, "type") != "tool_result" {
				first = false
				continue
			}
			call := strict.Text(block, "tool_use_id")
			switch {
			case role(m) != "user":
				return strict.Refuse("messages.%d: `tool_result` blocks can only be in `user` messages", i)
			case slices.Contains(answered, call):
				return strict.Refuse("messages.%d.content.%d: each tool_use must have a single result. Found multiple `tool_result` blocks with id: %s",
					i, n, call)
			case !slices.Contains(open, call):
				return strict.Refuse("messages.%d.content.%d: unexpected `tool_use_id` found in `tool_result` blocks: %s. Each `tool_result` block must have a corresponding `tool_use` block in the previous message.", i, n, call)
			}
			if first { // results behind other blocks do not count
				answered = append(answered, call)
			}
		}
		if refusal := unanswered(i-1, open, answered); refusal != nil {
			return refusal
		}
		open = nil
		for n, block := range blocks(m) {
			if strict.Text(block, "type") != "tool_use" {
				continue
			}
			call := strict.Text(block, "id")
			switch {
			case role(m) != "assistant":
				return strict.Refuse("messages.%d: `tool_use` blocks can only be in `assistant` messages", i)
			case !id.MatchString(call):
				return strict.Refuse("messages.%d.content.%d.tool_use.id: String should match pattern '%s'", i, n, id)
			case !name.MatchString(strict.Text(block, "name")):
				return strict.Refuse("messages.%d.content.%d.tool_use.name: String should match pattern '%s'", i, n, name)
			case seen[call]:
				return strict.Refuse("messages: `tool_use` ids must be unique")
			}
			seen[call] = true
			open = append(open, call)
		}
	}
	return unanswered(len(list)-1, open, nil)
}

func unanswered(at int, open, answered []string) *strict.Refusal {
	left := slices.DeleteFunc(slices.Clone(open), func(call string) bool { return slices.Contains(answered, call) })
	if len(left) == 0 {
		return nil
	}
	return strict.Refuse("messages.%d: `tool_use` ids were found without `tool_result` blocks immediately after: %s. Each `tool_use` block must have a corresponding `tool_result` block in the next message.", at, strings.Join(left, ", "))
}

// thoughts is about the thinking in the history: signed here, whole, and in front of calls when the call thinks by budget,
// https://docs.claude.com/en/docs/build-with-claude/extended-thinking#preserving-thinking-blocks.
func (r *request) thoughts() *strict.Refusal {
	list := r.messages()
	latest := -1
	for i, m := range list {
		if role(m) == "assistant" {
			latest = i
		}
	}
	for i, m := range list {
		for n, block := range blocks(m) {
			kind := strict.Text(block, "type")
			var issued, unchanged bool
			switch kind {
			case "thinking":
				issued, unchanged = r.verify(Thinking, strict.Text(block, "thinking"), strict.Text(block, "signature"))
			case "redacted_thinking":
				issued, unchanged = r.verify(Redacted, "", strict.Text(block, "data"))
			default:
				continue
			}
			switch {
			case role(m) != "assistant":
				return strict.Refuse("messages.%d.content.%d: `%s` blocks are only permitted in `assistant` messages", i, n, kind)
			case !issued && kind == "thinking":
				return strict.Refuse("messages.%d.content.%d: Invalid `signature` in `thinking` block", i, n)
			case !issued:
				return strict.Refuse("messages.%d.content.%d: Invalid `data` in `redacted_thinking` block", i, n)
			case !unchanged && i == latest:
				return strict.Refuse("messages.%d.content.%d: `thinking` or `redacted_thinking` blocks in the latest assistant message cannot be modified. These blocks must remain as they were in the original response.", i, n)
			}
		}
	}
	if r.byBudget() {
		return r.leads(list)
	}
	return nil
}

// found is about the searches in the history: what is encrypted was issued here. The words are those of a report,
// https://github.com/router-for-me/CLIProxyAPI (sdk/translator), which repairs histories that other vendors' answers left.
func (r *request) found() *strict.Refusal {
	for i, m := range r.messages() {
		for n, block := range blocks(m) {
			for _, page := range strict.Slice(block, "content") {
				if strict.Text(page, "type") != "web_search_result" {
					continue
				}
				if issued, _ := r.verify(Found, strict.Text(page, "url"), strict.Text(page, "encrypted_content")); !issued {
					return strict.Refuse("messages.%d.content.%d: Invalid `encrypted_content` in `search_result` block", i, n)
				}
			}
			for _, citation := range strict.Slice(block, "citations") {
				if strict.Text(citation, "type") != "web_search_result_location" {
					continue
				}
				if issued, _ := r.verify(Cited, strict.Text(citation, "url"), strict.Text(citation, "encrypted_index")); !issued {
					return strict.Refuse("messages.%d.content.%d: Invalid `encrypted_index` in `web_search_result_location` citation", i, n)
				}
			}
		}
	}
	return nil
}

// leads wants the turn whose results come last to begin with a thought.
func (r *request) leads(list []any) *strict.Refusal {
	begin := -1
	for i := len(list) - 1; i > 0 && hasBlock(list[i], "tool_result"); i -= 2 {
		begin = i - 1
	}
	if begin < 0 {
		return nil
	}
	switch first := strict.Text(blocks(list[begin])[0], "type"); first {
	case "thinking", "redacted_thinking":
		return nil
	default:
		return strict.Refuse("messages.%d.content.0.type: Expected `thinking` or `redacted_thinking`, but found `%s`. When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the lastmost set of `tool_use` and `tool_result` blocks). We recommend you include thinking blocks from previous turns. To avoid this requirement, disable `thinking`. Please consult our documentation at %s", begin, first, thinkingPage) //nolint:misspell // the vendor's own spelling
	}
}

func hasBlock(message any, kind string) bool {
	return slices.ContainsFunc(blocks(message), func(block any) bool { return strict.Text(block, "type") == kind })
}
