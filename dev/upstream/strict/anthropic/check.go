package anthropic

import (
	"fmt"
	"slices"
	"strings"

	"modelrelay/dev/upstream/strict"
)

// Verify reports whether a seal was issued here, and whether for what it is bound to: a signature to its text, redacted data to nothing,
// a page's content and a citation's index to the page's address.
type Verify func(kind, bound, seal string) (issued, unchanged bool)

// Checker knows the rules. It is safe for concurrent use.
type Checker struct {
	message, count *strict.Shape
	verify         Verify
}

// The kinds of what is sealed.
const (
	Thinking = "thinking"
	Redacted = "redacted"
	Found    = "found" // the encrypted content of a page that a search found
	Cited    = "cited" // the encrypted index of a citation
)

// New returns a checker that asks verify about signatures.
func New(verify Verify) *Checker {
	return &Checker{message: messageShape(), count: countShape(), verify: verify}
}

// Check judges the body of a message, or of a count of its tokens; nil: it is taken.
func (c *Checker) Check(v map[string]any, counting bool) *strict.Refusal {
	shape := c.message
	if counting {
		shape = c.count
	}
	if found := shape.Check(v); len(found) > 0 {
		return say(found[0])
	}
	r := request{v: v, model: ModelOf(strict.Text(v, "model")), verify: c.verify}
	rules := []func() *strict.Refusal{r.caches, r.tools, r.toolChoice, r.turns, r.results, r.thoughts, r.found, r.thinking, r.output}
	if !counting {
		rules = append(rules, r.bound, r.sampling)
	}
	for _, rule := range rules {
		if refusal := rule(); refusal != nil {
			return refusal
		}
	}
	return nil
}

// say words a finding as the vendor's validator, pydantic, does.
func say(f strict.Finding) *strict.Refusal {
	at := func(steps ...any) string { return f.Path.Add(steps...).Dotted() }
	switch f.Fault {
	case strict.Unknown:
		return strict.Refuse("%s: Extra inputs are not permitted", at(f.Name))
	case strict.Missing:
		return strict.Refuse("%s: Field required", at(f.Name))
	case strict.NoWord:
		return strict.Refuse("%s: Input should be %s", at(), either(f.Shape.Enum))
	case strict.NoTag:
		if f.Got == nil {
			return strict.Refuse("%s: Field required", at(f.Name))
		}
		var tags []string
		for tag := range f.Shape.Of {
			tags = append(tags, "'"+tag+"'")
		}
		slices.Sort(tags)
		return strict.Refuse("%s: Input tag '%v' found using '%s' does not match any of the expected tags: %s", at(), f.Got, f.Name,
			strings.Join(tags, ", "))
	case strict.Mistyped:
	}
	kind := map[strict.Kind]string{
		strict.String: "string", strict.Number: "number", strict.Integer: "integer", strict.Bool: "boolean", strict.Object: "dictionary",
		strict.Array: "list",
	}[f.Shape.Kind]
	return strict.Refuse("%s: Input should be a valid %s", at(), kind)
}

func either(words []string) string {
	quoted := make([]string, len(words))
	for i, w := range words {
		quoted[i] = "'" + w + "'"
	}
	if len(quoted) == 1 {
		return quoted[0]
	}
	return strings.Join(quoted[:len(quoted)-1], ", ") + " or " + quoted[len(quoted)-1]
}

// request is one body whose shape is right.
type request struct {
	v      map[string]any
	model  Model
	verify Verify
}

func (r *request) messages() []any { return strict.Slice(r.v, "messages") }

// blocks are the content of a message; a text is one block.
func blocks(message any) []any {
	if text := strict.Text(message, "content"); text != "" {
		return []any{map[string]any{"type": "text", "text": text}}
	}
	return strict.Slice(message, "content")
}

func role(message any) string { return strict.Text(message, "role") }

// bound is about max_tokens; 0 fills the cache alone.
func (r *request) bound() *strict.Refusal {
	n, _ := strict.Num(r.v, "max_tokens")
	switch most := r.model.maxOutput(); {
	case n < 0:
		return strict.Refuse("max_tokens: Input should be greater than or equal to 0")
	case int(n) > most:
		return strict.Refuse("max_tokens: %d > %d, which is the maximum allowed number of output tokens for %s", int(n), most, r.model.Name)
	}
	return nil
}

// thinks reports whether the call thinks, by budget or by itself.
func (r *request) thinks() bool {
	switch strict.Text(strict.Map(r.v, "thinking"), "type") {
	case "enabled", "adaptive":
		return true
	}
	return r.model.AlwaysThinks()
}

// byBudget reports whether the call thinks by budget.
func (r *request) byBudget() bool {
	return strict.Text(strict.Map(r.v, "thinking"), "type") == "enabled"
}

const thinkingPage = "https://docs.claude.com/en/docs/build-with-claude/extended-thinking"

// sampling is about temperature, top_p and top_k.
func (r *request) sampling() *strict.Refusal {
	temperature, warm := strict.Num(r.v, "temperature")
	topP, cuts := strict.Num(r.v, "top_p")
	_, counts := strict.Num(r.v, "top_k")
	switch {
	case temperature < 0:
		return strict.Refuse("temperature: Input should be greater than or equal to 0")
	case temperature > 1:
		return strict.Refuse("temperature: Input should be less than or equal to 1")
	}
	if !r.model.samples() {
		const deprecated = "`%s` is deprecated for this model."
		switch {
		case warm && temperature != 1:
			return strict.Refuse(deprecated, "temperature")
		case cuts && topP != 1:
			return strict.Refuse(deprecated, "top_p")
		case counts:
			return strict.Refuse(deprecated, "top_k")
		}
	}
	const least = 0.95 // of top_p with thinking
	switch {
	case r.model.oneSampler() && warm && cuts:
		return strict.Refuse("`temperature` and `top_p` cannot both be specified for this model. Please use only one.")
	case !r.thinks():
	case warm && temperature != 1:
		return strict.Refuse("`temperature` may only be set to 1 when thinking is enabled or in adaptive mode. Please consult our documentation at %s#important-considerations-when-using-extended-thinking", thinkingPage)
	case counts:
		return strict.Refuse("`top_k` must be unset when thinking is enabled. Please consult our documentation at %s", thinkingPage)
	case cuts && topP < least:
		return strict.Refuse("`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled. Please consult our documentation at %s", thinkingPage)
	}
	return nil
}

// thinking is about the way the call asks the model to think.
func (r *request) thinking() *strict.Refusal {
	asked := strict.Map(r.v, "thinking")
	choice := strict.Text(strict.Map(r.v, "tool_choice"), "type")
	switch strict.Text(asked, "type") {
	case "enabled":
		if refusal := r.budget(asked); refusal != nil {
			return refusal
		}
	case "adaptive":
		if !r.model.adapts() {
			return strict.Refuse("adaptive thinking is not supported on this model")
		}
	case "disabled":
		if r.model.AlwaysThinks() {
			return strict.Refuse(`"thinking.type.disabled" is not supported for this model.`)
		}
	}
	if r.thinks() && (choice == "any" || choice == "tool") {
		return strict.Refuse("Thinking may not be enabled when tool_choice forces tool use.")
	}
	return nil
}

func (r *request) budget(asked map[string]any) *strict.Refusal {
	const least = 1024
	budget, _ := strict.Num(asked, "budget_tokens")
	most, bounded := strict.Num(r.v, "max_tokens") // a count has none
	switch {
	case r.model.ours() && r.model.version < withThinking:
		return strict.Refuse("'%s' does not support thinking.", r.model.Name)
	case !r.model.budgets(): // https://github.com/earendil-works/pi/issues/3297
		return strict.Refuse(`"thinking.type.enabled" is not supported for this model. Use "thinking.type.adaptive" and "output_config.effort" to control thinking behavior.`)
	case budget < least:
		return strict.Refuse("thinking.enabled.budget_tokens: Input should be greater than or equal to 1024")
	case bounded && budget >= most:
		return strict.Refuse("`max_tokens` must be greater than `thinking.budget_tokens`. Please consult our documentation at %s#max-tokens-and-context-window-size", thinkingPage)
	}
	return nil
}

// output is about effort and the format of the answer.
func (r *request) output() *strict.Refusal {
	config := strict.Map(r.v, "output_config")
	switch effort := strict.Text(config, "effort"); {
	case effort == "":
	case !r.model.effort():
		return strict.Refuse("This model does not support the effort parameter.")
	case effort == "xhigh" && r.model.ours() && r.model.version < withoutSampling:
		return strict.Refuse("output_config.effort: 'xhigh' is not supported for this model")
	}
	format := strict.Map(config, "format")
	if format == nil {
		return nil
	}
	if !r.model.schemas() {
		return strict.Refuse("output_config.format: '%s' does not support structured outputs.", r.model.Name)
	}
	if fault := schemaFault(strict.Map(format, "schema")); fault != "" {
		return strict.Refuse("output_config.format.schema: %s", fault)
	}
	return nil
}

// caches is about cache_control: at most four marks, none on what is empty, long ones first,
// https://platform.claude.com/docs/en/build-with-claude/prompt-caching.
func (r *request) caches() *strict.Refusal {
	const most = 4
	found, short := 0, false
	mark := func(path string, block any) *strict.Refusal {
		cache := strict.Map(block, "cache_control")
		if cache == nil {
			return nil
		}
		found++
		if strict.Text(block, "type") == "text" && strings.TrimSpace(strict.Text(block, "text")) == "" {
			return strict.Refuse("%s.text: cache_control cannot be set for empty text blocks", path)
		}
		long := strict.Text(cache, "ttl") == "1h"
		if long && short {
			return strict.Refuse("%s.cache_control.ttl: a ttl='1h' cache_control block must not come after a ttl='5m' cache_control block. Note that blocks are processed in the following order: `tools`, `system`, `messages`.", path)
		}
		short = short || !long
		return nil
	}
	walk := func(path string, list []any) *strict.Refusal {
		for i, block := range list {
			at := fmt.Sprintf("%s.%d", path, i)
			for n, inner := range strict.Slice(block, "content") { // of a result
				if refusal := mark(fmt.Sprintf("%s.content.%d", at, n), inner); refusal != nil {
					return refusal
				}
			}
			if refusal := mark(at, block); refusal != nil {
				return refusal
			}
		}
		return nil
	}
	if refusal := walk("tools", strict.Slice(r.v, "tools")); refusal != nil {
		return refusal
	}
	if refusal := walk("system", strict.Slice(r.v, "system")); refusal != nil {
		return refusal
	}
	for i, m := range r.messages() {
		if refusal := walk(fmt.Sprintf("messages.%d.content", i), strict.Slice(m, "content")); refusal != nil {
			return refusal
		}
	}
	if strict.Has(r.v, "cache_control") {
		found++
	}
	if found > most {
		return strict.Refuse("A maximum of 4 blocks with cache_control may be provided. Found %d.", found)
	}
	return nil
}
