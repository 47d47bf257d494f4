// Package responses translates OpenAI's Responses API, as the dialect of clients and of upstreams. Its facts are those of
// OpenAI's SDKs (openai-node 7.55 and openai-go 3.95, package responses). Of the product it imports only providers, rawjson and form.
package responses

import (
	"slices"

	"modelrelay/providers"
	"modelrelay/providers/rawjson"
	"modelrelay/providers/translate/form"
)

// keepsNothing is the reason for the refusal of a call that requires the vendor's stored data.
const keepsNothing = "This model's upstream does not store responses: send the earlier items in `input`."

// notStored is the reason for the refusal of a response or an item by its id.
const notStored = "No stored response or item of this API key has this id: send the earlier items in `input`."

// The values of include that a translation answers.
const (
	includeReasoning = "reasoning.encrypted_content"
	includeLogprobs  = "message.output_text.logprobs"
)

type reading struct {
	form.Failing

	prompt   *form.Prompt
	loss     *form.Loss
	ask      form.Ask
	call     *providers.Call
	declared map[string]bool // tools, for the choice among them
	compacts bool            // the call requests a summary
	// Of the choice of tools: the web search is forced; it is allowed; the choice lists the allowed tools.
	forced, searchAllowed, listed bool
}

// Read reads a client's call. It records only fields in loss that no dialect has. Faults name the client's field.
func Read(call *providers.Call, loss *form.Loss) (*form.Prompt, form.Ask, *providers.Fault) {
	r := &reading{prompt: &form.Prompt{From: form.Responses}, loss: loss, call: call, ask: form.Ask{
		Model: call.Model, Stream: call.Stream, WantsUsage: true, Stored: true, Previous: call.Chain.Previous,
		CompactOnly: call.Endpoint.Operation == providers.CompactResponse,
	}}
	r.prompt.Fields[form.FieldTurns] = "input"
	r.prompt.Fields[form.FieldResultID] = "call_id"
	r.prompt.Fields[form.FieldCache] = "prompt_cache_breakpoint"
	root := rawjson.Trim(call.Body).Object()
	for _, member := range root {
		if !member.Value.Absent() {
			r.field(member.Name, member.Value)
		}
	}
	r.readInput(root.Get("input"))
	r.readTools(root.Get("tools"))
	r.readChoice(root.Get("tool_choice"))
	if top := root.Get("top_logprobs"); r.prompt.Sampling.Logprobs && !top.Absent() {
		r.prompt.Sampling.TopLogprobs = top
	}
	for i := range r.prompt.Turns {
		r.prompt.Turns[i].Settle()
	}
	r.settleSearch()
	if r.ask.CompactOnly || r.compacts {
		r.compact()
	}
	r.ask.ShowThought, r.ask.Echo = r.prompt.Thinking.Show, echoed(root)
	return r.prompt, r.ask, r.Fault
}

// set records the client's name of a field.
func (r *reading) set(field form.Field, name string) { r.prompt.Fields[field] = name }

// must keeps a field on which the answer depends, so that a call to another vendor is refused.
func (r *reading) must(name string) {
	r.prompt.Own = append(r.prompt.Own, form.Member{Name: name, Must: true})
}

func (r *reading) field(name rawjson.Text, value rawjson.Value) {
	p := r.prompt
	switch string(name.Decoded()) {
	case "model", "stream", "input", "tools", "tool_choice":
	case "instructions":
		if text := value.Text(); !text.Blank() {
			p.System = append(p.System, form.Block{Kind: form.BlockText, Text: text, At: form.Path{}.Field("instructions")})
		}
	case "max_output_tokens":
		r.set(form.FieldMaxTokens, "max_output_tokens")
		p.Limits.MaxTokens = value
	case "temperature", "top_p":
		p.ReadSampling(name.String(), value)
	case "top_logprobs":
		r.set(form.FieldTopLogprobs, "top_logprobs")
	case "parallel_tool_calls":
		r.set(form.FieldParallel, "parallel_tool_calls")
		p.Parallel = new(value.True())
	case "safety_identifier", "user":
		if text := value.Text(); !text.Empty() && (p.User == nil || name.Is("safety_identifier")) {
			r.set(form.FieldUser, name.String())
			p.User = text
		}
	case "reasoning":
		r.readReasoning(value)
	case "text":
		r.readText(value)
	case "include":
		r.readInclude(value)
	default:
		r.vendorField(name.String(), value)
	}
}

// vendorField reads a member that only the vendor has.
func (r *reading) vendorField(name string, value rawjson.Value) {
	switch name {
	case "previous_response_id": // that of a stored response is replaced before
		if value.IsSet() {
			r.Refuse(name, notStored)
		}
	case "conversation", "prompt", "background":
		if value.IsSet() {
			r.Refuse(name, keepsNothing)
		}
	case "store":
		r.ask.Stored = !value.False()
		r.prompt.Keep(name, value, false)
	case "metadata", "prompt_cache_key", "prompt_cache_retention", "prompt_cache_options", "max_tool_calls",
		"context_management", "access_programs", "image":
		r.prompt.Keep(name, value, false)
	case "moderation": // the answer contains its result
		r.prompt.Own = append(r.prompt.Own, form.Member{Name: name, Value: value, Must: true})
	case "service_tier":
		if !value.Text().Is("auto") {
			r.prompt.Keep(name, value, false)
		}
	case "truncation":
		if !value.Text().Is("disabled") {
			r.prompt.Keep(name, value, false)
		}
	case "stream_options":
		for member, value := range value.Members() {
			if member.Is("include_obfuscation") {
				r.prompt.Keep("stream_options.include_obfuscation", value, false)
			} else {
				r.loss.DropUnknown("stream_options."+member.String(), value)
			}
		}
	default:
		r.loss.DropUnknown(name, value)
	}
}

func (r *reading) readReasoning(reasoning rawjson.Value) {
	thinking := &r.prompt.Thinking
	for name, value := range reasoning.Members() {
		switch {
		case value.Absent():
		case name.Is("effort"):
			r.set(form.FieldThinking, "reasoning.effort")
			if thinking.Mode, thinking.Effort = form.ThinkingEffort, value.Text().String(); thinking.Effort == "none" {
				thinking.Mode, thinking.Effort = form.ThinkingOff, ""
			}
		case name.Is("summary"), name.Is("generate_summary"):
			if thinking.Show = true; r.prompt.Fields[form.FieldThinking] == "" {
				r.set(form.FieldThinking, "reasoning.summary")
			}
		default:
			r.loss.DropUnknown("reasoning."+name.String(), value)
		}
	}
}

func (r *reading) readText(text rawjson.Value) {
	for name, value := range text.Members() {
		switch {
		case value.Absent():
		case name.Is("format"):
			r.readFormat(value)
		case name.Is("verbosity"):
			r.prompt.Keep("text.verbosity", value, false)
		default:
			r.loss.DropUnknown("text."+name.String(), value)
		}
	}
}

func (r *reading) readFormat(format rawjson.Value) {
	output := &r.prompt.Output
	switch kind := format.Get("type").Text(); {
	case kind.Is("text"):
		return
	case kind.Is("json_object"):
		output.Kind = form.OutputJSON
	case kind.Is("json_schema"):
		output.ReadSchema(format)
	default:
		r.must("text.format.type")
	}
	r.set(form.FieldOutput, "text.format")
}

func (r *reading) readInclude(include rawjson.Value) {
	var others bool
	for _, value := range include.Items() {
		switch text := value.Text(); {
		case text.Is(includeReasoning): // answers always have the state
		case text.Is(includeLogprobs):
			r.set(form.FieldLogprobs, "include")
			r.prompt.Sampling.Logprobs = true
		default:
			others = true
		}
	}
	if others {
		r.prompt.Keep("include", include, false)
	}
}

// echoed returns a copy of the members of a call that its response repeats.
func echoed(call rawjson.Object) []byte {
	var out form.Out
	for _, member := range [...]struct{ name, absent string }{
		{"instructions", "null"},
		{"max_output_tokens", "null"},
		{"max_tool_calls", "null"},
		{"metadata", "{}"},
		{"parallel_tool_calls", "true"},
		{"prompt_cache_key", "null"},
		{"reasoning", `{"effort":null,"summary":null}`},
		{"safety_identifier", "null"},
		{"temperature", "null"},
		{"text", `{"format":{"type":"text"}}`},
		{"tool_choice", `"auto"`},
		{"tools", "[]"},
		{"top_logprobs", "null"},
		{"top_p", "null"},
		{"truncation", `"disabled"`},
		{"user", "null"},
	} {
		out.Key(member.name)
		if value := call.Get(member.name); !value.Absent() {
			out.Raw(value)
		} else {
			out.JSON(member.absent)
		}
	}
	return slices.Clip(out.Bytes())
}
