// Package messages is Anthropic's Messages API as a dialect of translations: it reads clients' calls and writes those for
// upstreams, and reads upstreams' answers and writes those for clients. It also translates token counts.
//
// Of the product it imports only providers, rawjson and form. The wire is that of the types of
// github.com/anthropics/anthropic-sdk-go and of platform.claude.com/docs/en/api/messages.
package messages

import (
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// Read reads a client's call of a message, or of the count of its tokens, whose body is the same with fewer fields. It records only fields
// in loss that no dialect has. Faults name the client's field.
func Read(call *providers.Call, loss *form.Loss) (*form.Prompt, form.Ask, *providers.Fault) {
	r := &reader{p: &form.Prompt{From: form.Messages}, loss: loss}
	r.p.Fields[form.FieldResultID], r.p.Fields[form.FieldCache] = "tool_use_id", "cache_control"
	for name, value := range rawjson.Trim(call.Body).Members() {
		r.field(string(name.Decoded()), value)
	}
	r.markLast()
	r.settleEffort()
	r.settleChoice()
	ask := form.Ask{
		Model: call.Model, Stream: call.Stream, WantsUsage: true, ShowThought: !r.hideThought,
		Search: r.p.Search != nil,
	}
	return r.p, ask, r.Fault
}

type reader struct {
	form.Failing

	p    *form.Prompt
	loss *form.Loss
	// last is the mark for the last block.
	last        form.Mark
	hideThought bool
}

// set records the name of a field that the client set, and returns its value; absent for null.
func (r *reader) set(field form.Field, name string, value rawjson.Value) rawjson.Value {
	if value.Absent() {
		return nil
	}
	r.p.Fields[field] = name
	return value
}

func (r *reader) field(name string, value rawjson.Value) {
	p := r.p
	switch name {
	case "model", "stream":
	case "messages":
		p.Fields[form.FieldTurns] = name
		r.turns(value)
	case "system":
		p.System = r.system(value)
	case "max_tokens":
		p.Limits.MaxTokens = r.set(form.FieldMaxTokens, name, value)
	case "temperature", "top_p", "top_k":
		if !value.Absent() {
			p.ReadSampling(name, value)
		}
	case "stop_sequences":
		p.Limits.Stop = nil
		for _, text := range value.Items() {
			if text.IsText() {
				p.Limits.Stop = append(p.Limits.Stop, text.Text())
			}
		}
		if len(p.Limits.Stop) > 0 {
			p.Fields[form.FieldStop] = name
		}
	case "tools":
		r.tools(value)
	case "tool_choice":
		r.choice(value)
	case "thinking":
		r.thinking(value)
	case "output_config":
		r.outputConfig(value)
	case "output_format": // the former name of output_config.format
		r.format(name, value)
	case "metadata":
		r.metadata(value)
	case "cache_control":
		r.last = form.MarkOf(value)
	case "service_tier":
		r.ownUnless(name, value, "auto")
	case "speed":
		r.ownUnless(name, value, "standard")
	case "inference_geo", "context_management", "diagnostics":
		r.p.Keep(name, value, false)
	case "container", "mcp_servers":
		r.p.Keep(name, value, true)
	default:
		r.loss.DropUnknown(name, value)
	}
}

func (r *reader) ownUnless(name string, value rawjson.Value, usual string) {
	if !value.Text().Is(usual) {
		r.p.Keep(name, value, false)
	}
}

func (r *reader) metadata(value rawjson.Value) {
	for name, member := range value.Members() {
		if name.Is("user_id") {
			r.p.User = r.set(form.FieldUser, "metadata.user_id", member).Text()
			continue
		}
		r.p.Keep("metadata."+name.String(), member, false)
	}
}

// thinking reads the amount of thinking. See the type ThinkingConfigParamUnion.
func (r *reader) thinking(value rawjson.Value) {
	kind := value.Get("type").Text()
	if kind == nil {
		return
	}
	r.p.Fields[form.FieldThinking] = "thinking"
	t := &r.p.Thinking
	omitted := value.Get("display").Text().Is("omitted")
	r.hideThought, t.Show = omitted, !omitted
	switch {
	case kind.Is("disabled"):
		t.Mode, t.Show, r.hideThought = form.ThinkingOff, false, true
	case kind.Is("enabled"):
		t.Mode = form.ThinkingBudget
		var ok bool
		if t.Budget, ok = value.Get("budget_tokens").Int(); !ok {
			r.Refuse("thinking.budget_tokens", "Invalid request: 'thinking.budget_tokens'. It is required.")
		}
	case kind.Is("adaptive"):
		t.Mode = form.ThinkingAdaptive
	default: // between_tools and unknown types
		t.Mode = form.ThinkingAdaptive
		r.loss.Change("thinking")
	}
}

func (r *reader) outputConfig(value rawjson.Value) {
	for name, member := range value.Members() {
		switch {
		case name.Is("effort"):
			r.effort(member)
		case name.Is("format"):
			r.format("output_config.format", member)
		default:
			r.p.Keep("output_config."+name.String(), member, false)
		}
	}
}

func (r *reader) effort(value rawjson.Value) {
	switch word := value.Text().String(); word {
	case "low", "medium", "high", "xhigh", "max":
		r.p.Thinking.Effort = word
		if r.p.Fields[form.FieldThinking] == "" {
			r.p.Fields[form.FieldThinking] = "output_config.effort"
		}
	default:
		r.p.Keep("output_config.effort", value, false)
	}
}

// settleEffort sets the effort of the thinking. With a budget, or with thinking turned off, it has no effect at another vendor.
func (r *reader) settleEffort() {
	switch t := &r.p.Thinking; {
	case t.Effort == "", t.Mode == form.ThinkingAdaptive:
	case t.Mode == form.ThinkingUnset:
		t.Mode = form.ThinkingEffort
	default:
		t.Effort = ""
		r.loss.Drop("output_config.effort")
	}
}

func (r *reader) format(field string, value rawjson.Value) {
	if schema := value.Get("schema"); value.Get("type").Text().Is("json_schema") && schema.IsObject() {
		r.set(form.FieldOutput, field, value)
		r.p.Output = form.Output{Kind: form.OutputSchema, Schema: schema}
		return
	}
	r.p.Keep(field, value, true)
}

// markLast puts the mark of the whole call on the last block that can have one.
func (r *reader) markLast() {
	if r.last == form.NoMark {
		return
	}
	for i := range slices.Backward(r.p.Turns) {
		blocks := r.p.Turns[i].Blocks
		for j := range slices.Backward(blocks) {
			if b := &blocks[j]; b.Kind != form.BlockThought && (b.Kind != form.BlockText || !b.Text.Blank()) {
				b.Cache = max(b.Cache, r.last)
				return
			}
		}
	}
}
